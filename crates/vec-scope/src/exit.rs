//! How a unit ended, and how supervision fails.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::NoCgroups;

/// How a unit's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    /// It called exit.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It is gone, but it was not our child (adopted): nobody told us how.
    Unknown,
}

/// What failed in supervision.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The program cannot be started.
    #[error("cannot start {name} ({program:?})")]
    Spawn {
        /// Name of the unit.
        name: String,
        /// Its program.
        program: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// Descriptors cannot be passed.
    #[error("cannot pass descriptors to {name}")]
    Descriptors {
        /// Name of the unit.
        name: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A pidfile cannot be read or written.
    #[error("cannot {action} the pidfile {path:?}")]
    Pidfile {
        /// `read` or `write`.
        action: &'static str,
        /// Its path.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A pidfile that is no pidfile.
    #[error("the pidfile {path:?} is malformed")]
    BadPidfile {
        /// Its path.
        path: PathBuf,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The process cannot be watched.
    #[error("cannot watch process {pid}")]
    Watch {
        /// Its pid.
        pid: i32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A signal was refused.
    #[error("cannot signal process {pid}")]
    Signal {
        /// Its pid.
        pid: i32,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// Some process survives SIGKILL (uninterruptible in the kernel).
    #[error("{left} processes of {name} survive SIGKILL")]
    Unkillable {
        /// Name of the unit.
        name: String,
        /// How many.
        left: usize,
    },
    /// A control group cannot be made or read.
    #[error("cannot use the control group of {name}")]
    Cgroup {
        /// Name of the group.
        name: String,
        /// Cause.
        #[source]
        source: NoCgroups,
    },
    /// No group may have that name.
    #[error("{name:?} is no name of a group")]
    Name {
        /// The name.
        name: String,
    },
}
