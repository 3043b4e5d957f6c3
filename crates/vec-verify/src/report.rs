//! What a check says.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use vec_types::{Digest, RunId};

/// Which check found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The ledger has no final `close`.
    Open,
    /// The ledger's chain.
    Ledger,
    /// The hash known from elsewhere.
    Anchor,
    /// A registered file's bytes.
    File,
    /// A file that no ledger line covers.
    Coverage,
    /// The archive's event chain.
    Events,
    /// Marks of the archive in the ledger.
    ArchiveMark,
    /// Tables derived from events.
    Projections,
    /// programs.git.
    Programs,
    /// The lock and what it hashes.
    Lock,
    /// Decisions re-derived from facts.
    Replay,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which check.
    pub check: Check,
    /// Path, ledger line or event.
    pub place: String,
    /// The rule that a stored decision does not follow (replay only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// Where in the event's JSON the first difference is (replay only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            rule,
            path,
            expected,
            found,
            check: _,
        } = self;
        write!(f, "{place}")?;
        if let Some(rule) = rule {
            write!(f, ", {rule}")?;
        }
        write!(f, ": ")?;
        if let Some(path) = path {
            write!(f, "{path} ")?;
        }
        write!(f, "expected {expected}, found {found}")
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The run, from the directory's name.
    pub run: RunId,
    /// What does not hold; empty = the run verifies.
    pub findings: Vec<Finding>,
    /// What a crash left and the next start sets right; only with `open`.
    pub pending: Vec<String>,
    /// Is the ledger closed.
    pub closed: bool,
    /// Ledger lines whose chain holds.
    pub ledger_lines: u64,
    /// Hash of the last of them.
    pub ledger_head: Digest,
    /// Line with the anchor's hash, where an anchor was given and found.
    pub anchored_line: Option<u64>,
    /// Files hashed.
    pub files: u64,
    /// Bytes hashed.
    pub bytes: u64,
    /// Events whose chain holds.
    pub events: u64,
    /// Hash of the last of them.
    pub event_head: Digest,
    /// Objects of programs.git re-hashed.
    pub program_objects: u64,
    /// Decision batches re-derived, where a replay was asked for.
    pub replayed_batches: Option<u64>,
}

impl VerifyReport {
    pub(crate) fn new(run: &RunId) -> Self {
        Self {
            run: run.clone(),
            findings: Vec::new(),
            pending: Vec::new(),
            closed: false,
            ledger_lines: 0,
            ledger_head: Digest::ZERO,
            anchored_line: None,
            files: 0,
            bytes: 0,
            events: 0,
            event_head: Digest::ZERO,
            program_objects: 0,
            replayed_batches: None,
        }
    }

    /// Does everything hold?
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(
        &mut self,
        check: Check,
        place: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) {
        self.findings.push(Finding {
            check,
            place: place.to_string(),
            rule: None,
            path: None,
            expected: expected.to_string(),
            found: found.to_string(),
        });
    }
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
