//! Why a call to the launcher fails, and which gRPC code that is.

use std::path::PathBuf;

use tonic::{Code, Status};
use vec_daemon::chain;
use vec_types::RunId;

use crate::files::FileError;
use crate::launch::LaunchError;
use crate::resume::ResumeError;
use crate::run_view::ViewError;

/// A call that fails.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// The request itself is wrong.
    #[error("{0}")]
    Request(String),
    /// No known root holds the run.
    #[error("run {run} is in none of the known roots ({})", roots(.known))]
    UnknownRun {
        /// The run.
        run: RunId,
        /// Where it was searched.
        known: Vec<PathBuf>,
    },
    /// The run exists but is not running.
    #[error("run {run} is not running; it is {state}")]
    NotRunning {
        /// The run.
        run: RunId,
        /// What it is.
        state: &'static str,
    },
    /// The run has ended.
    #[error("run {run} is closed already")]
    Closed {
        /// The run.
        run: RunId,
    },
    /// A launch failed or was refused.
    #[error("launch refused")]
    Launch(#[source] Box<LaunchError>),
    /// A resume failed or was refused.
    #[error("resume refused")]
    Resume(#[source] Box<ResumeError>),
    /// The run's directory cannot be shown.
    #[error("show the run")]
    View(#[source] ViewError),
    /// A file of the launcher's own cannot be used.
    #[error("keep the launcher's books")]
    File(#[source] FileError),
    /// The controller does not answer.
    #[error("run {run}: the controller does not answer: {why}")]
    Controller {
        /// The run.
        run: RunId,
        /// What the connection says.
        why: String,
    },
    /// A task of ours ended without an answer: a bug.
    #[error("the launcher's task failed: {0}")]
    Task(String),
}

fn roots(known: &[PathBuf]) -> String {
    if known.is_empty() {
        return "none is known".to_owned();
    }
    let words: Vec<String> = known
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    words.join(", ")
}

impl From<LauncherError> for Status {
    fn from(error: LauncherError) -> Self {
        let code = match &error {
            LauncherError::Request(_) => Code::InvalidArgument,
            LauncherError::UnknownRun { .. } => Code::NotFound,
            LauncherError::NotRunning { .. } | LauncherError::Closed { .. } => {
                Code::FailedPrecondition
            }
            LauncherError::Launch(error) if error.config().is_some() => {
                // Its lines stand for themselves.
                let problems = error.config().map(ToString::to_string).unwrap_or_default();
                return Self::invalid_argument(problems);
            }
            LauncherError::Launch(_) | LauncherError::Resume(_) => Code::FailedPrecondition,
            LauncherError::Controller { .. } => Code::Unavailable,
            LauncherError::View(_) | LauncherError::File(_) | LauncherError::Task(_) => {
                Code::Internal
            }
        };
        Self::new(code, chain(&error).to_string())
    }
}
