//! `ledger.jsonl`: append-only, hash-chained, one line per registered file (LED-01, O-LED-1).
//! This file owns the writer; `line` the format, `check` the reading.

mod check;
mod line;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use vec_types::{Digest, RelPath, UnixMs};

pub use check::{LedgerFault, LedgerReport, Registered, covered_hash, verify_ledger};
pub use line::{LedgerEntry, LedgerOp};

use crate::StoreError;
use crate::store::Hook;

/// A line before it has its place in the chain.
#[derive(Debug, Clone)]
pub struct NewLine {
    /// What happened.
    pub op: LedgerOp,
    /// To which path.
    pub path: RelPath,
    /// Bytes; for `archive_mark` the event's number, for `close` the covered files.
    pub size: u64,
    /// Content digest; for `archive_mark` the event's hash.
    pub sha256: Digest,
}

/// The writer. Appends are group commits: one write and one fsync for all lines.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
    len: u64,
    seq: u64,
    head: Digest,
}

impl Ledger {
    /// Starts an empty ledger.
    ///
    /// # Errors
    /// When the file exists or cannot be made.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(StoreError::io("create", path))?;
        file.sync_all().map_err(StoreError::io("sync", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            len: 0,
            seq: 0,
            head: Digest::ZERO,
        })
    }

    /// Opens a ledger and checks all of it. A torn tail is still there: see
    /// [`Ledger::cut_torn_tail`].
    ///
    /// # Errors
    /// [`StoreError::Ledger`] when the chain does not hold; I/O errors.
    pub fn open(path: &Path) -> Result<(Self, LedgerReport), StoreError> {
        let bytes = std::fs::read(path).map_err(StoreError::io("read", path))?;
        let report = verify_ledger(&bytes).map_err(|source| StoreError::Ledger {
            path: path.to_owned(),
            source,
        })?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(StoreError::io("open", path))?;
        let ledger = Self {
            file,
            path: path.to_owned(),
            len: (bytes.len() - report.torn_tail) as u64,
            seq: report.entries.len() as u64,
            head: report.head,
        };
        Ok((ledger, report))
    }

    /// Cuts off what no whole line ends. The caller has kept the bytes.
    ///
    /// # Errors
    /// I/O errors.
    pub fn cut_torn_tail(&mut self) -> Result<(), StoreError> {
        self.file
            .set_len(self.len)
            .and_then(|()| self.file.sync_all())
            .map_err(StoreError::io("truncate", &self.path))
    }

    /// Appends lines and syncs them.
    ///
    /// # Errors
    /// I/O errors; what a failed append wrote is cut off again where the disk lets us.
    pub fn append(&mut self, at: UnixMs, lines: &[NewLine]) -> Result<(), StoreError> {
        self.append_with(at, lines, &Hook::default())
    }

    pub(crate) fn append_with(
        &mut self,
        at: UnixMs,
        lines: &[NewLine],
        hook: &Hook,
    ) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        let (mut seq, mut head) = (self.seq, self.head);
        for line in lines {
            seq += 1;
            let (bytes, hash) = line::render(line, at, seq, head)?;
            text.extend_from_slice(&bytes);
            head = hash;
        }
        let written = self.file.write_all(&text);
        if let Err(source) = written {
            // Without this the next open would find a torn tail; if it fails too, it will.
            let _torn = self.file.set_len(self.len);
            return Err(StoreError::io("append to", &self.path)(source));
        }
        hook.step("ledger_appended");
        self.file
            .sync_data()
            .map_err(StoreError::io("sync", &self.path))?;
        (self.seq, self.head) = (seq, head);
        self.len += text.len() as u64;
        hook.step("ledger_synced");
        Ok(())
    }

    /// Hash of the last line; zeros before the first.
    #[must_use]
    pub const fn head(&self) -> Digest {
        self.head
    }

    /// Number of the last line; 0 before the first.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }
}
