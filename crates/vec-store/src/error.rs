//! What can go wrong with a run directory. Every variant names the operation and the path.

use std::io;
use std::path::{Path, PathBuf};

use crate::{EventFault, LedgerFault};

/// SQLite's primary result code for a full disk.
const SQLITE_FULL: &str = "13";
/// SQLite's primary result code for a database that another connection uses.
const SQLITE_BUSY: u32 = 5;

/// A failed operation on a run directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Somebody else is the writer of this run.
    #[error("{} is locked: {} is writing this run", path.display(), holder_text(*holder))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Process id of the holder, where it wrote one.
        holder: Option<u32>,
    },
    /// `create` found something where the run directory should come to be.
    #[error("{} exists already; a run directory is always made anew", .0.display())]
    Exists(PathBuf),
    /// The path is not `<root>/<run id>`.
    #[error("{} is not a run directory: its name must be a run id", .0.display())]
    NotARunDir(PathBuf),
    /// `open` of a run that is closed: `reopen` it after verification.
    #[error("{} is closed; only a verified resume may reopen it", .0.display())]
    Closed(PathBuf),
    /// `reopen` of a run that is not closed.
    #[error("{} is not closed, so it cannot be reopened; open it", .0.display())]
    NotClosed(PathBuf),
    /// An earlier write failed or was cut short.
    #[error("{} refuses to write after a failed write; open it again to recover", .0.display())]
    Broken(PathBuf),
    /// The ledger's chain does not hold.
    #[error("{} is damaged", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// Where and how.
        #[source]
        source: LedgerFault,
    },
    /// The ledger's chain holds, but it lacks lines that must have been there: it was shortened.
    /// Nothing was moved or written.
    #[error("{}: the ledger {what}; restore it from a copy", path.display())]
    LedgerShort {
        /// The ledger.
        path: PathBuf,
        /// What it lacks.
        what: String,
    },
    /// A database operation failed.
    #[error("cannot {action} in {}", path.display())]
    Database {
        /// What was tried.
        action: &'static str,
        /// The archive.
        path: PathBuf,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
    /// The archive's tables could not be brought to the current version.
    #[error("cannot migrate {}", path.display())]
    Migrate {
        /// The archive.
        path: PathBuf,
        /// Why not.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// The event chain does not hold.
    #[error("the event chain of {} is damaged", path.display())]
    Events {
        /// The archive.
        path: PathBuf,
        /// Where and how.
        #[source]
        source: EventFault,
    },
    /// An event the ledger marks is not in the archive: acknowledged events are lost.
    #[error("{} lacks event {seq}, which ledger line {line} marks with another hash or at all", path.display())]
    LostEvent {
        /// The archive.
        path: PathBuf,
        /// The marked event.
        seq: u64,
        /// The ledger line of the mark.
        line: u64,
    },
    /// A stored event is not one that this version knows.
    #[error("event {seq} cannot be read")]
    EventDecode {
        /// Its number.
        seq: u64,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// A value has no canonical JSON form.
    #[error("cannot write {what} as JSON")]
    Encode {
        /// Which document.
        what: &'static str,
        /// Why not.
        #[source]
        source: vec_types::CanonicalError,
    },
    /// A file that may not enter a run directory, or not in this way.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The rule that it breaks.
        what: String,
    },
    /// A blocking task ended without an answer.
    #[error("a write to {} was cut short", .0.display())]
    CutShort(PathBuf),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl StoreError {
    /// For `map_err` on file operations.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// For `map_err` on queries.
    pub(crate) fn db(action: &'static str, path: &Path) -> impl FnOnce(sqlx::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Database {
            action,
            path,
            source,
        }
    }

    pub(crate) fn bad_file(path: &Path, what: impl Into<String>) -> Self {
        Self::BadFile {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// Is the disk (or the quota) full? Then the run stops with `stop_reason: infra`.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
            Self::Database { source, .. } => source
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code)
                .is_some_and(|code| code == SQLITE_FULL),
            _ => false,
        }
    }

    /// Does another connection keep the database from doing this now?
    pub(crate) fn is_busy(&self) -> bool {
        let Self::Database { source, .. } = self else {
            return false;
        };
        let code = source
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .and_then(|code| code.parse::<u32>().ok());
        // The low byte of an extended code is the primary one.
        code.is_some_and(|code| code & 0xff == SQLITE_BUSY)
    }
}
