//! The log of model calls, `logs/egress.jsonl`: append-only lines, synced before they count.
//! It is also the memory of the call counter.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use vec_types::{Digest, UnixMs};

/// Longest line that is read back in bytes; lines of ours are far shorter.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// Reading the log back at start.
    #[error("read the model call log back, byte {at}")]
    Read {
        /// How far it came.
        at: u64,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A whole line is not a line of ours.
    #[error("model call log, line {line}: {what}")]
    Line {
        /// Its number from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// Appending.
    #[error("append to the model call log")]
    Append(#[source] std::io::Error),
}

/// Who called, as the caller says in its headers (MOD-02).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Caller {
    pub(crate) run: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) attempt: Option<String>,
}

/// Digest and length of bytes that went over a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Sealed {
    pub(crate) sha256: Digest,
    pub(crate) bytes: u64,
}

impl Sealed {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            sha256: Digest::of(bytes),
            bytes: bytes.len() as u64,
        }
    }
}

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A call was admitted and is about to go out. These lines are what is counted.
    Start {
        at: UnixMs,
        call: u64,
        model: String,
        caller: Caller,
        request: Sealed,
    },
    /// It ended. Without this line the gateway died in the call.
    End {
        at: UnixMs,
        call: u64,
        model: String,
        caller: Caller,
        status: u16,
        error: Option<&'static str>,
        request: Sealed,
        reply: Sealed,
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        ms: u64,
    },
    /// A call was not admitted.
    Refused {
        at: UnixMs,
        caller: Caller,
        status: u16,
        error: &'static str,
        model: Option<String>,
        request: Sealed,
    },
}

/// The open log.
#[derive(Debug, Clone)]
pub struct Evidence {
    file: Arc<Mutex<File>>,
}

impl Evidence {
    /// Takes over `file` (open for reading and appending) and counts the calls in it. A torn last
    /// line, left by a kill, is closed with a newline and not counted unless it is whole.
    ///
    /// # Errors
    /// [`EvidenceError`] when the log cannot be read or a whole line in it is not ours.
    pub fn open(mut file: File) -> Result<(Self, u64), EvidenceError> {
        let failed = |at| move |source| EvidenceError::Read { at, source };
        file.seek(SeekFrom::Start(0)).map_err(failed(0))?;
        let (mut calls, mut number, mut at) = (0, 0, 0);
        let mut reader = BufReader::new(&file);
        let mut torn = false;
        loop {
            let mut line = Vec::new();
            let read = (&mut reader)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
                .map_err(failed(at))?;
            if read == 0 {
                break;
            }
            number += 1;
            at += read as u64;
            torn = line.last() != Some(&b'\n');
            if torn && read as u64 == LINE_BYTES_MAX {
                let what = format!("longer than {LINE_BYTES_MAX} bytes");
                return Err(EvidenceError::Line { line: number, what });
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(value) => calls += u64::from(value["event"] == "start"),
                Err(_) if torn || is_closed_tear(&line) => {}
                Err(error) => {
                    let what = error.to_string();
                    return Err(EvidenceError::Line { line: number, what });
                }
            }
        }
        drop(reader);
        if torn {
            file.write_all(b"\n").map_err(EvidenceError::Append)?;
        }
        let file = Arc::new(Mutex::new(file));
        Ok((Self { file }, calls))
    }

    /// Appends and syncs one line.
    pub(crate) async fn append(&self, line: &Line) -> Result<(), EvidenceError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| {
            EvidenceError::Append(std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        })?;
        bytes.push(b'\n');
        let file = Arc::clone(&self.file);
        let write = move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&bytes)?;
            file.sync_data()
        };
        tokio::task::spawn_blocking(write)
            .await
            .map_err(|error| EvidenceError::Append(std::io::Error::other(error)))?
            .map_err(EvidenceError::Append)
    }
}

/// A torn line that an earlier start closed: it begins like one of ours and does not end so.
fn is_closed_tear(line: &[u8]) -> bool {
    line.starts_with(b"{") && !line.trim_ascii_end().ends_with(b"}") || line == b"\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(content: &[u8]) -> (Result<u64, EvidenceError>, Vec<u8>) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("log");
        std::fs::write(&path, content).expect("write");
        let options = File::options().read(true).append(true).open(&path);
        let opened = Evidence::open(options.expect("open")).map(|(_, calls)| calls);
        (opened, std::fs::read(&path).expect("read"))
    }

    #[test]
    fn calls_are_counted_and_torn_tails_closed() {
        let start = br#"{"event":"start","call":0}"#.as_slice();
        let end = br#"{"event":"end","call":0}"#.as_slice();
        let whole = [start, b"\n", end, b"\n", start, b"\n"].concat();
        assert_eq!(open(b"").0.expect("empty"), 0);
        assert_eq!(open(&whole).0.expect("whole"), 2);
        for cut in 1..start.len() {
            let torn = [&whole[..], &start[..cut]].concat();
            let (calls, after) = open(&torn);
            assert_eq!(calls.expect("torn"), 2, "cut at {cut}");
            assert!(after.ends_with(b"\n"));
            let more = [&after[..], start, b"\n"].concat();
            assert_eq!(open(&more).0.expect("continued"), 3, "cut at {cut}");
        }
        let unended = [&whole[..], start].concat();
        assert_eq!(open(&unended).0.expect("whole but for its newline"), 3);
    }

    #[test]
    fn foreign_and_endless_lines_are_refused_by_number() {
        let foreign = open(b"{\"event\":\"end\"}\nhello\n")
            .0
            .expect_err("foreign");
        assert!(foreign.to_string().contains("line 2"), "{foreign}");
        let endless = vec![b'{'; LINE_BYTES_MAX as usize + 1];
        let endless = open(&endless).0.expect_err("endless");
        assert!(endless.to_string().contains("longer than"), "{endless}");
    }
}
