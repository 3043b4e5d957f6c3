//! What can go wrong with programs.git. Every variant names the operation and the path or id.

use std::io;
use std::path::{Path, PathBuf};

use vec_types::{IdError, NodeId, TreeId};

/// A failed operation on programs.git or on a program directory.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
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
    /// gix refused.
    #[error("cannot {action} {}", path.display())]
    Git {
        /// What was tried.
        action: &'static str,
        /// The repository.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// `init` or `export` onto something that exists.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// Not one of our repositories.
    #[error("{} is not a SHA-256 repository", .0.display())]
    NotSha256(PathBuf),
    /// An object that cannot be trusted.
    #[error("object {id} {what}")]
    BadObject {
        /// Its id.
        id: String,
        /// What is wrong.
        what: &'static str,
    },
    /// gix gave an id that is none.
    #[error("an object id is malformed")]
    BadId(#[source] IdError),
    /// An id that this repository cannot hold.
    #[error("{0} is not a SHA-256 object id")]
    NoSuchId(TreeId),
    /// The node has another program already.
    #[error("node {node} has the program {found} already, so {wanted} cannot be committed for it")]
    Taken {
        /// The node.
        node: NodeId,
        /// Commit in place.
        found: TreeId,
        /// Commit refused.
        wanted: TreeId,
    },
    /// A program directory holds something that a program may not hold.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file, relative to the program directory where it lies in one.
        path: PathBuf,
        /// The rule that it breaks.
        what: String,
    },
    /// Past a limit of program size.
    #[error("{} holds more than {limit} {unit}", path.display())]
    TooBig {
        /// The file or directory.
        path: PathBuf,
        /// The limit.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
}

impl ProgramsError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn git<E>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = path.to_owned();
        move |source| Self::Git {
            action,
            path,
            source: source.into(),
        }
    }

    pub(crate) fn bad_file(path: &Path, what: impl Into<String>) -> Self {
        Self::BadFile {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
