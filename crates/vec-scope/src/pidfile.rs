//! Pidfiles: which process a unit is, so that a restarted launcher finds it again.
//!
//! Invariants: written to a temporary name and renamed, so a reader sees all or nothing. Holds the
//! start time beside the pid: a recycled pid is recognised.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ScopeError;

/// Content of a pidfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pidfile {
    /// Process id.
    pub pid: i32,
    /// Start of the process in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub start_time_ticks: u64,
}

impl Pidfile {
    /// Writes it atomically.
    ///
    /// # Errors
    /// [`ScopeError::Pidfile`].
    pub fn write(&self, path: &Path) -> Result<(), ScopeError> {
        let failed = |source| ScopeError::Pidfile {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        let temporary = path.with_extension(format!("tmp{}", std::process::id()));
        std::fs::write(&temporary, text).map_err(failed)?;
        std::fs::rename(&temporary, path).map_err(failed)
    }

    /// Reads it; `None` when there is none.
    ///
    /// # Errors
    /// [`ScopeError::Pidfile`], [`ScopeError::BadPidfile`].
    pub fn read(path: &Path) -> Result<Option<Self>, ScopeError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(ScopeError::Pidfile {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|source| ScopeError::BadPidfile {
                path: path.to_owned(),
                source,
            })
    }
}
