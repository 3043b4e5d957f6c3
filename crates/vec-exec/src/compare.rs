//! Are two predictions the same? The primitive of the cold-start reproduction check (PVW-11):
//! equality of bytes decides; the difference of numbers is for people.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Serialize;
use vec_types::Digest;

use crate::ExecError;

/// Longest line of a table that is compared by number.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Two files beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Every byte is the same.
    pub equal: bool,
    /// Content of the first and the second.
    pub sha256: [Digest; 2],
    /// Sizes.
    pub bytes: [u64; 2],
    /// Lines that differ, where both are tables of the same shape.
    pub lines_differ: Option<u64>,
    /// Largest difference between two numbers in the same place; absent where the shapes differ
    /// or a place holds a text that differs.
    pub max_abs_difference: Option<f64>,
}

/// Compares two regular files. Tables are compared line by line in bounded memory.
///
/// # Errors
/// [`ExecError::Io`].
pub fn compare(first: &Path, second: &Path) -> Result<Comparison, ExecError> {
    let (bytes_a, sha_a) = hash(first)?;
    let (bytes_b, sha_b) = hash(second)?;
    let equal = sha_a == sha_b;
    let (lines_differ, max_abs_difference) = if equal {
        (Some(0), Some(0.0))
    } else {
        match differences(first, second)? {
            Some((lines, most)) => (Some(lines), most),
            None => (None, None),
        }
    };
    Ok(Comparison {
        equal,
        sha256: [sha_a, sha_b],
        bytes: [bytes_a, bytes_b],
        lines_differ,
        max_abs_difference,
    })
}

fn hash(path: &Path) -> Result<(u64, Digest), ExecError> {
    vec_store::hash_file(path).map_err(|error| ExecError::Io {
        action: "hash",
        path: path.to_owned(),
        source: std::io::Error::other(error.to_string()),
    })
}

// `None`: not two tables of one shape.
fn differences(first: &Path, second: &Path) -> Result<Option<(u64, Option<f64>)>, ExecError> {
    let open = |path: &Path| {
        File::open(path)
            .map(BufReader::new)
            .map_err(ExecError::io("open", path))
    };
    let (mut a, mut b) = (open(first)?, open(second)?);
    let (mut lines, mut most, mut texts_equal) = (0_u64, 0.0_f64, true);
    loop {
        let (Some(left), Some(right)) = (line(&mut a, first)?, line(&mut b, second)?) else {
            return Ok(None);
        };
        match (left.is_empty(), right.is_empty()) {
            (true, true) => return Ok(Some((lines, texts_equal.then_some(most)))),
            (false, false) => {}
            _ => return Ok(None),
        }
        if left == right {
            continue;
        }
        lines += 1;
        let (left, right): (Vec<&str>, Vec<&str>) = (fields(&left), fields(&right));
        if left.len() != right.len() {
            return Ok(None);
        }
        for (x, y) in left.iter().zip(&right).filter(|(x, y)| x != y) {
            match (x.parse::<f64>(), y.parse::<f64>()) {
                (Ok(x), Ok(y)) if (x - y).is_finite() => most = most.max((x - y).abs()),
                _ => texts_equal = false,
            }
        }
    }
}

fn fields(line: &str) -> Vec<&str> {
    line.trim_end().split(',').collect()
}

// With its end; empty = the file's end; `None` = no line of a table.
fn line(reader: &mut BufReader<File>, path: &Path) -> Result<Option<String>, ExecError> {
    let mut bytes = Vec::new();
    let read = reader
        .by_ref()
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut bytes)
        .map_err(ExecError::io("read", path))?;
    let whole = (read as u64) < LINE_BYTES_MAX;
    Ok(String::from_utf8(bytes).ok().filter(|_| whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(a: &[u8], b: &[u8]) -> Comparison {
        let dir = tempfile::tempdir().expect("tempdir");
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&first, a).expect("write");
        std::fs::write(&second, b).expect("write");
        compare(&first, &second).expect("compares")
    }

    #[test]
    fn equality_is_of_bytes_and_differences_are_of_numbers() {
        let base = b"id,prediction\n1,0.5\n2,1.5\n";
        let same = compared(base, base);
        assert!(same.equal && same.max_abs_difference == Some(0.0));
        type Row = (&'static [u8], Option<u64>, Option<f64>);
        let rows: [Row; 7] = [
            (b"id,prediction\n1,0.5\n2,1.25\n", Some(1), Some(0.25)),
            (b"id,prediction\n1,0.50\n2,1.5\n", Some(1), Some(0.0)),
            (b"id,prediction\n1,0.5\n2,x\n", Some(1), None),
            (b"id,prediction\n1,0.5\n2,nan\n", Some(1), None),
            (b"id,prediction\n1,0.5\n", None, None),
            (b"id,prediction\n1,0.5\n2,1.5,3\n", None, None),
            (b"id,prediction\n1,0.5\n2,\xff\n", None, None),
        ];
        for (other, lines, most) in rows {
            let found = compared(base, other);
            assert!(!found.equal, "{other:?}");
            assert_eq!(found.lines_differ, lines, "{other:?}");
            assert_eq!(found.max_abs_difference, most, "{other:?}");
        }
        let binary = compared(&[b'x'; 100_000], &[b'y'; 100_000]);
        assert_eq!(binary.lines_differ, None);
    }
}
