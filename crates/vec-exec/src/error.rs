//! What can go wrong, with whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

use vec_types::Digest;

/// A refusal or a failure around one execution.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The program declares its artifacts wrongly.
    #[error("ARTIFACTS.json: {0}")]
    Artifacts(String),
    /// The program declares its training seed wrongly.
    #[error("EXECUTION.json: {0}")]
    Execution(String),
    /// What a first run left as its declared weights is no use: the program's fault (PVW-06).
    #[error("declared weight {path}: {what}")]
    Untrained {
        /// Path below `solution/`.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// Registered weights are not as registered: nobody's run may go on from them (PVW-06).
    #[error("registered weights are damaged: {} {what}", path.display())]
    Damaged {
        /// Index or artifact.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Somebody else trained the same weights for longer than this execution could wait (EXE-11).
    #[error("training lock {}: not free within the time left", key.short(16))]
    LockTimeout {
        /// Key of the weights.
        key: Digest,
    },
    /// A view cannot be shown in disguise.
    #[error("disguise the view {}: {what}", path.display())]
    View {
        /// The view's directory or a file in it.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A document of ours has no canonical form.
    #[error("write a canonical document")]
    Canonical(#[source] vec_types::CanonicalError),
    /// A file operation of ours failed.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl ExecError {
    /// Is it the program's own fault? All else is ours and shelves the execution.
    #[must_use]
    pub const fn is_candidates(&self) -> bool {
        matches!(
            self,
            Self::Artifacts(_) | Self::Execution(_) | Self::Untrained { .. }
        )
    }

    /// Did the deadline end a wait, rather than anything being broken (EXE-11)?
    #[must_use]
    pub const fn is_budget_cut(&self) -> bool {
        matches!(self, Self::LockTimeout { .. })
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn view(path: &Path, what: impl Into<String>) -> Self {
        Self::View {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
