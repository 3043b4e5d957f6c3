//! The journal file: read back at start, appended and synced before any answer. A torn last line
//! is what a kill in mid-write or a full disk leaves: it is closed by a mark, never cut (the bytes
//! may be marked in the ledger), and skipped; anything else that does not read is an error. A
//! charge is on disk before its scoring begins, so that a kill may leave one
//! charge without an answer (the query in flight) and can never lose one.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use vec_types::{CanonicalError, canonical_json};

use crate::record::Record;
use crate::state::{CorruptJournal, State};

/// Longest line; a record is far below.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// Why the journal is no use.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading failed.
    #[error("read the scorer's journal")]
    Read(#[source] std::io::Error),
    /// Closing a torn line failed.
    #[error("close the torn last line of the scorer's journal")]
    Cut(#[source] std::io::Error),
    /// Writing or syncing failed: nothing may be answered any more.
    #[error("append to the scorer's journal")]
    Append(#[source] std::io::Error),
    /// A record has no JSON form.
    #[error("encode a journal record")]
    Encode(#[source] CanonicalError),
    /// A whole line is not a record.
    #[error("scorer's journal, line {line}: not a record: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What the reader says.
        why: String,
    },
    /// A line cannot follow those before it.
    #[error("scorer's journal, line {line}")]
    Corrupt {
        /// From 1.
        line: usize,
        /// Why.
        #[source]
        source: CorruptJournal,
    },
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// Ends a line that a crash or a full disk cut short; no record ends so.
const TORN: &[u8] = b" #torn";

impl Journal {
    /// Reads the journal back (`file` is open for reading and appending) and closes a torn last
    /// line with a mark. Nothing is cut off: the ledger may hold a mark over those bytes.
    ///
    /// # Errors
    /// [`JournalError`] when it cannot be read or its lines contradict each other.
    pub fn open(mut file: File) -> Result<(Self, State), JournalError> {
        file.seek(SeekFrom::Start(0)).map_err(JournalError::Read)?;
        let mut state = State::default();
        let mut reader = BufReader::new(&file);
        let (mut whole, mut number) = (0_u64, 0);
        let torn = loop {
            let mut line = Vec::new();
            let mut bounded = (&mut reader).take(LINE_BYTES_MAX as u64);
            let read = bounded
                .read_until(b'\n', &mut line)
                .map_err(JournalError::Read)?;
            number += 1;
            match line.pop() {
                None => break false,
                Some(b'\n') => {}
                Some(_) if read == LINE_BYTES_MAX => {
                    let why = format!("longer than {LINE_BYTES_MAX} bytes");
                    return Err(JournalError::Line { line: number, why });
                }
                Some(_) => break true,
            }
            if line.ends_with(TORN) {
                whole += read as u64;
                continue;
            }
            let record: Record =
                serde_json::from_slice(&line).map_err(|error| JournalError::Line {
                    line: number,
                    why: error.to_string(),
                })?;
            state
                .apply(&record)
                .map_err(|source| JournalError::Corrupt {
                    line: number,
                    source,
                })?;
            whole += read as u64;
        };
        if torn {
            tracing::warn!(
                line = number,
                kept_bytes = whole,
                "closing a torn last line of the journal"
            );
            let closed = [TORN, b"\n"].concat();
            file.write_all(&closed)
                .and_then(|()| file.sync_data())
                .map_err(JournalError::Cut)?;
        }
        Ok((Self { file }, state))
    }

    /// A journal on `file` without reading it.
    #[cfg(test)]
    pub(crate) const fn of(file: File) -> Self {
        Self { file }
    }

    /// One line.
    ///
    /// # Errors
    /// [`JournalError::Encode`].
    pub fn line(record: &Record) -> Result<Vec<u8>, JournalError> {
        let mut line = canonical_json(record).map_err(JournalError::Encode)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Appends whole lines and syncs them.
    ///
    /// # Errors
    /// [`JournalError::Append`].
    pub fn append(&mut self, lines: &[u8]) -> Result<(), JournalError> {
        self.file
            .write_all(lines)
            .and_then(|()| self.file.sync_data())
            .map_err(JournalError::Append)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::Path;

    use proptest::prelude::*;
    use vec_types::{Digest, Parts, Score, ScoreReport, UnixMs};

    use super::*;
    use crate::record::Outcome;

    fn open(path: &Path) -> Result<(Journal, State), JournalError> {
        let mut options = OpenOptions::new();
        Journal::open(
            options
                .read(true)
                .append(true)
                .create(true)
                .open(path)
                .expect("open"),
        )
    }

    fn register(client: &str) -> Record {
        Record::Register {
            at: UnixMs(1),
            client: client.into(),
            dir: "/c".into(),
            quota: 2,
        }
    }

    fn reply(total: f64) -> Record {
        let score = Score::new(total).expect("finite");
        let components = [("main".parse().expect("ruler"), score)].into();
        let report = ScoreReport {
            total: score,
            components,
            parts: Parts::default(),
        };
        Record::Reply {
            at: UnixMs(1),
            request: "r".into(),
            input: Digest::ZERO,
            node: vec_types::NodeId(3),
            exec: "seed0".parse().expect("exec"),
            rows: "B:s0".into(),
            outcome: Outcome::Report { report },
            elapsed_ms: 1,
        }
    }

    #[test]
    fn a_torn_last_line_is_closed_at_every_byte() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("journal");
        let first = Journal::line(&register("1-0")).expect("line");
        let second = Journal::line(&register("2-0")).expect("line");
        for cut in 0..second.len() {
            std::fs::write(&path, [&first, &second[..cut]].concat()).expect("write");
            let (mut journal, state) = open(&path).expect("opens");
            assert_eq!(state.open_clients().count(), 1, "{cut}");
            let bytes = std::fs::read(&path).expect("read");
            let before = [&first, &second[..cut]].concat();
            assert!(bytes.starts_with(&before), "evidence is never cut: {cut}");
            journal.append(&second).expect("append");
            assert_eq!(open(&path).expect("opens").1.open_clients().count(), 2);
        }
    }

    #[test]
    fn other_damage_is_named_by_line() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("journal");
        let first = Journal::line(&register("1-0")).expect("line");
        for (bytes, expected) in [
            (
                [&first, b"{}\n".as_slice()].concat(),
                "line 2: not a record",
            ),
            ([b"\n".as_slice(), &first].concat(), "line 1: not a record"),
            ([first.as_slice(), &first].concat(), "line 2"),
            (
                vec![b'x'; LINE_BYTES_MAX],
                "line 1: not a record: longer than",
            ),
        ] {
            std::fs::write(&path, bytes).expect("write");
            let error = open(&path).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let mut journal = Journal::of(full);
        assert!(matches!(
            journal.append(b"x\n"),
            Err(JournalError::Append(_))
        ));
    }

    proptest! {
        #[test]
        fn stored_scores_keep_their_bits(total in 0.0..100.0_f64) {
            let record = reply(total);
            let line = Journal::line(&record).expect("line");
            let read: Record = serde_json::from_slice(&line).expect("reads");
            prop_assert_eq!(read, record);
        }
    }
}
