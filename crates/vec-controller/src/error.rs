//! What can end a controller.

use std::path::PathBuf;

use vec_daemon::InheritError;
use vec_search::CorruptRun;
use vec_store::StoreError;

/// Why the controller cannot go on. The launcher restarts it as resume, at most as often as the
/// lock allows.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The descriptors or the launch spec are no use.
    #[error("take the launch spec")]
    Inherit(#[source] InheritError),
    /// The run directory refuses reading or writing.
    #[error("use the run directory")]
    Store(#[source] StoreError),
    /// A stored event does not fit the events before it.
    #[error("fold event {seq}")]
    Corrupt {
        /// Its sequence number.
        seq: u64,
        /// What does not fit.
        #[source]
        source: CorruptRun,
    },
    /// A decision of ours does not fit the state that it was made from: a bug.
    #[error("apply our own decision {kind}")]
    Decision {
        /// Event kind.
        kind: String,
        /// What does not fit.
        #[source]
        source: CorruptRun,
    },
    /// The stored run does not allow this start.
    #[error("continue the run: {0}")]
    NotResumable(String),
    /// A file of the run cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A directory of the run cannot be made.
    #[error("make {path}")]
    Write {
        /// The directory.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The locked supervisor is not to be had here.
    #[error("the run's lock names a supervisor that cannot be had here: {0}")]
    Supervisor(String),
    /// A file of the run does not parse.
    #[error("{path} is not valid: {what}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The disk is full: an effect failed for want of room.
    #[error("no space left on the run's file system: {0}")]
    NoSpace(String),
    /// Listening failed.
    #[error("listen for control calls")]
    Listen(#[source] std::io::Error),
}

impl ControllerError {
    /// Does the file system have no room left?
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::Store(error) => error.is_no_space(),
            Self::NoSpace(_) => true,
            _ => false,
        }
    }
}
