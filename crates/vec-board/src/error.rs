//! Why a board or an environment cannot be built or loaded.

use std::io;
use std::path::{Path, PathBuf};

use vec_types::CanonicalError;

use crate::raw::RawError;
use crate::tree::TreeError;

/// Why a board cannot be built or loaded.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// The raw data is not as the board says.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// Too few rows for the split.
    #[error(
        "{}: {rows} rows give only {got} {share} rows; at least {least} are needed, so add data or \
         change the board's split",
        path.display()
    )]
    TooFewRows {
        /// The raw file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Which share is too small.
        share: &'static str,
        /// Rows in that share.
        got: usize,
        /// Rows that it needs.
        least: usize,
    },
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
    /// A directory cannot be listed or hashed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A record cannot be written as JSON.
    #[error("write {} as JSON", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: CanonicalError,
    },
    /// A record is not what this program writes.
    #[error("{} is not a board record; build the board again with --replace", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Another board of that name is there.
    #[error(
        "{} is there with other content; give --replace to put the new board in its place (runs \
         that are locked keep their own copies)",
        path.display()
    )]
    Different {
        /// The board's directory.
        path: PathBuf,
    },
    /// Nothing built under that name.
    #[error("no board at {}; make it with `vecctl board build`", path.display())]
    NotBuilt {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Built from another definition.
    #[error(
        "{} was built from another definition of the board; build it again with `vecctl board \
         build --replace`",
        path.display()
    )]
    OtherDefinition {
        /// The board's directory.
        path: PathBuf,
    },
    /// A view changed after it was built.
    #[error(
        "view {} has changed since it was built; build the board again with `vecctl board build \
         --replace`",
        path.display()
    )]
    ChangedView {
        /// The view's directory.
        path: PathBuf,
    },
}

impl BoardError {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            operation,
            path,
            source,
        }
    }
}

/// Why an environment cannot be built or opened.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// No usable Python.
    #[error("no Python 3.{least} or newer: {looked}; install one or name it with --python")]
    NoPython {
        /// Least minor version.
        least: u32,
        /// Where it was looked for and what was wrong there.
        looked: String,
    },
    /// The sandbox's user cannot read the Python's files.
    #[error(
        "{} cannot be read by other users (mode {mode:04o}), so the sandbox's user cannot run this \
         Python; allow it with `chmod o+rx` or choose another with --python",
        path.display()
    )]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A command failed, ran too long or could not be started.
    #[error("{step}: {detail}")]
    Command {
        /// What it was for.
        step: &'static str,
        /// Exit code and last lines of its output.
        detail: String,
    },
    /// No pip that can install into another Python.
    #[error("no pip 22.3 or newer (tried {tried}); install python3-pip")]
    NoPip {
        /// What was tried.
        tried: String,
    },
    /// Nothing built for this lock and interpreter.
    #[error("no environment at {}; make it with `vecctl env build {}`", path.display(), lock.display())]
    NotBuilt {
        /// Where it was looked for.
        path: PathBuf,
        /// The requirements lock.
        lock: PathBuf,
    },
    /// A file of the environment changed.
    #[error(
        "{} is not as it was built ({what}); remove {} and build it again",
        path.display(), root.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The environment's directory.
        root: PathBuf,
        /// What is different.
        what: &'static str,
    },
    /// A record is not what this program writes.
    #[error("{} is not an environment record", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Files of the environment cannot be handled.
    #[error(transparent)]
    Board(#[from] BoardError),
}

impl From<TreeError> for EnvError {
    fn from(error: TreeError) -> Self {
        Self::Board(BoardError::Tree(error))
    }
}
