//! Why a lock, a snapshot or a set of inputs cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use vec_programs::ProgramsError;
use vec_types::{CanonicalError, Digest, PathError, RelPath, TreeId};

/// Why a lock cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LockBuildError {
    /// A document cannot be written canonically.
    #[error("write the {what} as canonical JSON")]
    Encode {
        /// Which document.
        what: &'static str,
        /// Why.
        #[source]
        source: CanonicalError,
    },
    /// Configuration and board do not make a run.
    #[error("configuration and board do not fit: {}", .0.join("; "))]
    Policy(Vec<String>),
    /// Parts of the inputs contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

/// Why code or inputs cannot be copied into a run directory.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file operation failed.
    #[error("{operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// BUILD.json is not what `cargo xtask dist` writes.
    #[error("{} is not a build record; the installation is damaged", path.display())]
    BuildRecord {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Bytes are not those that were built, or that were locked.
    #[error("{} has sha256 {found}, expected {expected}", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// As recorded.
        expected: Digest,
        /// As found.
        found: Digest,
    },
    /// `code/` is not the one that was locked (LCK-06).
    #[error("{} has tree id {found}, but the lock says {expected}", path.display())]
    Tree {
        /// `code/`.
        path: PathBuf,
        /// As locked.
        expected: TreeId,
        /// As found.
        found: TreeId,
    },
    /// The tree id cannot be computed.
    #[error("hash {}", path.display())]
    TreeId {
        /// `code/`.
        path: PathBuf,
        /// Why.
        #[source]
        source: ProgramsError,
    },
    /// A file of a kind, name or number that a run does not take.
    #[error("{}: {what}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// A seed program is not as the board says (SED-01).
    #[error("seed program {}: {what}", path.display())]
    Seed {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
    /// A name that cannot stand in a run directory.
    #[error("{}: bad name for a run directory", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PathError,
    },
    /// Something is already there.
    #[error("{0} is there already")]
    Exists(RelPath),
}

impl SnapshotError {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            operation,
            path,
            source,
        }
    }

    pub(crate) fn refused(path: &Path, what: impl Into<String>) -> Self {
        Self::Refused {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
