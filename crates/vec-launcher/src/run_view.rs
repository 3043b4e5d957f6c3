//! A run as its directory shows it, read only: for runs whose controller does not answer.

use std::path::{Path, PathBuf};

use vec_search::{CorruptRun, RunState};
use vec_store::{Archive, RunLayout, StoreError, StoredEvent, verify_ledger};
use vec_types::StopReason;

use crate::files::{FileError, read_bytes};

/// Why a run directory cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The archive cannot be read.
    #[error("read the archive of {}", run_dir.display())]
    Archive {
        /// The run directory.
        run_dir: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Its events do not follow from each other.
    #[error("event {seq} of {} does not follow from the events before it", run_dir.display())]
    Corrupt {
        /// The run directory.
        run_dir: PathBuf,
        /// The first wrong event.
        seq: u64,
        /// Why.
        #[source]
        source: CorruptRun,
    },
    /// The ledger or the stop manifest cannot be read.
    #[error("look at {}", run_dir.display())]
    File {
        /// The run directory.
        run_dir: PathBuf,
        /// Why.
        #[source]
        source: FileError,
    },
}

/// The stored events after `after`.
///
/// # Errors
/// [`ViewError::Archive`].
pub async fn events(layout: &RunLayout, after: u64) -> Result<Vec<StoredEvent>, ViewError> {
    let archive = |source| ViewError::Archive {
        run_dir: layout.run_dir().to_owned(),
        source,
    };
    let mut reader = Archive::open_read_only(&layout.archive())
        .await
        .map_err(archive)?;
    reader.events_after(after).await.map_err(archive)
}

/// The state that the stored events fold to.
///
/// # Errors
/// [`ViewError`].
pub async fn state(layout: &RunLayout) -> Result<RunState, ViewError> {
    let stored = events(layout, 0).await?;
    fold(layout.run_dir(), &stored)
}

/// Folds stored events.
///
/// # Errors
/// [`ViewError::Corrupt`] with the first event that does not fit.
pub fn fold(run_dir: &Path, stored: &[StoredEvent]) -> Result<RunState, ViewError> {
    let mut state = RunState::new();
    for row in stored {
        let event = row.event().map_err(|source| ViewError::Archive {
            run_dir: run_dir.to_owned(),
            source,
        })?;
        state
            .apply(row.at, &event)
            .map_err(|source| ViewError::Corrupt {
                run_dir: run_dir.to_owned(),
                seq: row.seq,
                source,
            })?;
    }
    Ok(state)
}

/// Does the ledger end with `close`? A damaged ledger is not closed.
#[must_use]
pub fn is_closed(layout: &RunLayout) -> bool {
    std::fs::read(layout.ledger())
        .ok()
        .and_then(|bytes| verify_ledger(&bytes).ok())
        .is_some_and(|report| report.closed)
}

/// Stop reason of a closed run, from its stop manifest.
///
/// # Errors
/// [`ViewError::File`] when there is none or it is damaged.
pub fn stop_reason(layout: &RunLayout) -> Result<StopReason, ViewError> {
    #[derive(serde::Deserialize)]
    struct Manifest {
        stop_reason: StopReason,
    }
    let path = layout.stop_manifest();
    let file = |source| ViewError::File {
        run_dir: layout.run_dir().to_owned(),
        source,
    };
    let bytes = read_bytes(&path).map_err(file)?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|source| file(FileError::Parse { path, source }))?;
    Ok(manifest.stop_reason)
}

/// One line about a run that may or may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// `running`, `stopped` or `dead`.
    pub state: &'static str,
    /// Only of a stopped run.
    pub stop_reason: Option<StopReason>,
}

/// Where a run stands that no launcher runs.
#[must_use]
pub fn standing(layout: &RunLayout) -> Standing {
    if is_closed(layout) {
        return Standing {
            state: "stopped",
            stop_reason: stop_reason(layout).ok(),
        };
    }
    Standing {
        state: "dead",
        stop_reason: None,
    }
}
