//! Truth files: read only through the truth directory's descriptor, checked against their
//! digests, parsed strictly. Errors name file and line, never a value.

use std::fmt;
use std::io::Read;
use std::os::fd::AsFd;

use vec_metrics::VALUE_MAX;
use vec_types::{Digest, TruthHalf};

/// Longest accepted truth file.
pub const TRUTH_BYTES_MAX: u64 = 1 << 30;

const FILE_NAME: &str = "truth.csv";

/// Why there is no truth.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// A file cannot be opened or read.
    #[error("read truth file {file}")]
    Read {
        /// `A/truth.csv` or `B/truth.csv`.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is longer than [`TRUTH_BYTES_MAX`].
    #[error("truth file {file} is longer than {TRUTH_BYTES_MAX} bytes")]
    TooLarge {
        /// Which.
        file: String,
    },
    /// A file is not the one that was locked.
    #[error("truth file {file} has sha256 {found}, but the lock says {locked}")]
    Digest {
        /// Which.
        file: String,
        /// Of the bytes on disk.
        found: Digest,
        /// Of the lock.
        locked: Digest,
    },
    /// The lock names no digest for a half.
    #[error("the launch spec has no truth_sha256 for half {half}")]
    NoDigest {
        /// `A` or `B`.
        half: &'static str,
    },
    /// A line does not say what it must.
    #[error("truth file {file}, line {line}: {problem}")]
    Malformed {
        /// Which.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong, without the value.
        problem: &'static str,
    },
    /// An id stands in both halves, or twice in one.
    #[error("truth file {file}: id {id} stands twice in halves A and B")]
    Twice {
        /// The file of the second one.
        file: String,
        /// The id (not secret: test files hold it).
        id: u64,
    },
}

/// One hidden row.
#[derive(Clone, Copy, PartialEq)]
#[expect(missing_debug_implementations, reason = "truth never reaches a log")]
pub struct Row {
    /// Test id.
    pub id: u64,
    /// The hidden target.
    pub target: f64,
}

/// Hidden rows by purpose, each sorted by id.
#[derive(Clone, PartialEq, Default)]
pub struct TruthRows {
    /// Half A.
    pub a: Vec<Row>,
    /// Half B, search rows.
    pub search: Vec<Row>,
    /// Half B, guard rows.
    pub guard: Vec<Row>,
}

impl fmt::Debug for TruthRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, search, guard) = (self.a.len(), self.search.len(), self.guard.len());
        write!(f, "TruthRows(A {a}, search {search}, guard {guard})")
    }
}

/// Name of a half in paths and keys.
#[must_use]
pub(crate) const fn half_name(half: TruthHalf) -> &'static str {
    match half {
        TruthHalf::A => "A",
        TruthHalf::B => "B",
        TruthHalf::Whole => "W",
    }
}

fn file_name(half: TruthHalf) -> String {
    format!("{}/{FILE_NAME}", half_name(half))
}

/// Reads `<half>/truth.csv` below `directory`; follows no links.
///
/// # Errors
/// [`TruthError::Read`] and [`TruthError::TooLarge`].
pub(crate) fn read_half(directory: &impl AsFd, half: TruthHalf) -> Result<Vec<u8>, TruthError> {
    let file = file_name(half);
    let failed = |source: std::io::Error| TruthError::Read {
        file: file.clone(),
        source,
    };
    let folder = vec_daemon::directory_at(directory, half_name(half)).map_err(failed)?;
    let opened = vec_daemon::file_at(&folder, FILE_NAME).map_err(failed)?;
    if opened.metadata().map_err(failed)?.len() > TRUTH_BYTES_MAX {
        return Err(TruthError::TooLarge { file });
    }
    let mut bytes = Vec::new();
    let mut bounded = opened.take(TRUTH_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > TRUTH_BYTES_MAX {
        return Err(TruthError::TooLarge { file });
    }
    Ok(bytes)
}

/// Parses both halves: A has the header `id,target`, B has `id,target,rows` with `rows` one of
/// `search` and `guard`.
///
/// # Errors
/// [`TruthError::Malformed`] and [`TruthError::Twice`].
pub fn parse_truth(a: &[u8], b: &[u8]) -> Result<TruthRows, TruthError> {
    let mut rows = TruthRows::default();
    parse_half(TruthHalf::A, a, |row, share| {
        rows.a.push(row);
        if share.is_some() {
            Err("two fields are expected")
        } else {
            Ok(())
        }
    })?;
    parse_half(TruthHalf::B, b, |row, share| {
        match share {
            Some("search") => rows.search.push(row),
            Some("guard") => rows.guard.push(row),
            _ => return Err("the third field must be `search` or `guard`"),
        }
        Ok(())
    })?;
    for part in [&mut rows.a, &mut rows.search, &mut rows.guard] {
        part.sort_by_key(|row| row.id);
    }
    refuse_twice(&rows)?;
    Ok(rows)
}

fn parse_half(
    half: TruthHalf,
    bytes: &[u8],
    mut keep: impl FnMut(Row, Option<&str>) -> Result<(), &'static str>,
) -> Result<(), TruthError> {
    let malformed = |line: usize, problem| TruthError::Malformed {
        file: file_name(half),
        line,
        problem,
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        let line = bytes
            .utf8_chunks()
            .next()
            .map_or(1, |chunk| chunk.valid().lines().count());
        return Err(malformed(line.max(1), "not UTF-8"));
    };
    let mut lines = text.lines().enumerate();
    let header = match half {
        TruthHalf::A => "id,target",
        TruthHalf::B | TruthHalf::Whole => "id,target,rows",
    };
    if lines.next().map(|(_, line)| line) != Some(header) {
        let problem = match half {
            TruthHalf::A => "the header must be `id,target`",
            TruthHalf::B | TruthHalf::Whole => "the header must be `id,target,rows`",
        };
        return Err(malformed(1, problem));
    }
    for (index, line) in lines {
        let (row, share) = parse_line(line).map_err(|problem| malformed(index + 1, problem))?;
        keep(row, share).map_err(|problem| malformed(index + 1, problem))?;
    }
    Ok(())
}

fn parse_line(line: &str) -> Result<(Row, Option<&str>), &'static str> {
    let mut fields = line.split(',');
    let id = fields.next().unwrap_or_default();
    let id = id.parse().map_err(|_| "the id is not a whole number")?;
    let target = fields.next().ok_or("a field is missing")?;
    let target: f64 = target.parse().map_err(|_| "the target is not a number")?;
    if !(target.is_finite() && target.abs() <= VALUE_MAX) {
        return Err("the target is not finite");
    }
    let share = fields.next();
    if fields.next().is_some() {
        return Err("there are too many fields");
    }
    Ok((Row { id, target }, share))
}

fn refuse_twice(rows: &TruthRows) -> Result<(), TruthError> {
    let half = |rows: &[Row], half| {
        rows.iter()
            .map(move |row| (row.id, half))
            .collect::<Vec<_>>()
    };
    let mut ids = half(&rows.a, TruthHalf::A);
    ids.extend(half(&rows.search, TruthHalf::B));
    ids.extend(half(&rows.guard, TruthHalf::B));
    ids.sort_by_key(|(id, half)| (*id, *half));
    match ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(TruthError::Twice {
            file: file_name(pair[1].1),
            id: pair[1].0,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use super::*;

    const A: &str = "id,target\n2,5.5\n0,1\n";
    const B: &str = "id,target,rows\n3,7,guard\n1,4,search\n";

    #[test]
    fn halves_are_sorted_by_id() {
        let rows = parse_truth(A.as_bytes(), B.as_bytes()).expect("truth");
        assert_eq!(rows.a.iter().map(|row| row.id).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((rows.search[0].id, rows.guard[0].target), (1, 7.0));
        assert_eq!(format!("{rows:?}"), "TruthRows(A 2, search 1, guard 1)");
    }

    #[test]
    fn malformed_truth_names_file_and_line_but_no_value() {
        for (a, b, expected) in [
            (
                "id,y\n",
                B,
                "A/truth.csv, line 1: the header must be `id,target`",
            ),
            ("", B, "A/truth.csv, line 1: the header must be `id,target`"),
            (
                "id,target\n0,98765x\n",
                B,
                "A/truth.csv, line 2: the target is not a number",
            ),
            (
                "id,target\n0,1\n1,nan\n",
                B,
                "A/truth.csv, line 3: the target is not finite",
            ),
            (
                "id,target\n0\n",
                B,
                "A/truth.csv, line 2: a field is missing",
            ),
            (
                "id,target\n98765.5,1\n",
                B,
                "A/truth.csv, line 2: the id is not a whole number",
            ),
            (
                "id,target\n0,98765,search\n",
                B,
                "A/truth.csv, line 2: two fields are expected",
            ),
            (
                A,
                "id,target,rows\n1,98765\n",
                "B/truth.csv, line 2: the third field must be `search` or `guard`",
            ),
            (
                A,
                "id,target,rows\n1,98765,guard,x\n",
                "B/truth.csv, line 2: there are too many fields",
            ),
            (
                A,
                "id,target,rows\n2,98765,guard\n",
                "B/truth.csv: id 2 stands twice in halves A and B",
            ),
        ] {
            let error = parse_truth(a.as_bytes(), b.as_bytes())
                .expect_err(expected)
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("98765"), "{error}");
        }
        let error = parse_truth(b"id,target\n0,1\n\xff,1\n", B.as_bytes()).expect_err("not UTF-8");
        assert!(
            error.to_string().contains("A/truth.csv, line 2: not UTF-8"),
            "{error}"
        );
    }

    #[test]
    fn links_are_not_followed_and_long_files_not_read() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("A")).expect("A");
        std::fs::write(dir.path().join("other"), A).expect("write");
        std::os::unix::fs::symlink("../other", dir.path().join("A/truth.csv")).expect("link");
        let fd = OwnedFd::from(File::open(dir.path()).expect("open"));
        assert!(matches!(
            read_half(&fd, TruthHalf::A),
            Err(TruthError::Read { .. })
        ));
        assert!(matches!(
            read_half(&fd, TruthHalf::B),
            Err(TruthError::Read { .. })
        ));
        std::fs::remove_file(dir.path().join("A/truth.csv")).expect("unlink");
        std::fs::write(dir.path().join("A/truth.csv"), A).expect("write");
        assert_eq!(read_half(&fd, TruthHalf::A).expect("read"), A.as_bytes());
        let sparse = File::options()
            .write(true)
            .open(dir.path().join("A/truth.csv"));
        sparse
            .expect("open")
            .set_len(TRUTH_BYTES_MAX + 1)
            .expect("length");
        assert!(matches!(
            read_half(&fd, TruthHalf::A),
            Err(TruthError::TooLarge { .. })
        ));
    }
}
