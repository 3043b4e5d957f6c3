//! What a run's daemons are started from: its lock, and where Python and truth are on this
//! machine now.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vec_config::{Lock, LockError};
use vec_store::{RunLayout, StoreError};

use crate::data_root::DataRoot;
use crate::group::RunFacts;
use crate::python::{PythonError, python_of};
use crate::runtime_dir::RunRuntime;

/// Why a run's daemons cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// Not a run directory.
    #[error("look at {}", run_dir.display())]
    Layout {
        /// The directory.
        run_dir: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Its lock cannot be read.
    #[error("read the lock of the run")]
    Lock(#[source] LockError),
    /// Its Python is gone or has changed.
    #[error("find the run's Python")]
    Python(#[source] PythonError),
}

/// Facts of an existing run.
///
/// # Errors
/// [`FactsError`].
pub(crate) fn run_facts(
    run_dir: &Path,
    data_root: &Path,
    runtime: RunRuntime,
) -> Result<RunFacts, FactsError> {
    let layout = RunLayout::of_run_dir(run_dir).map_err(|source| FactsError::Layout {
        run_dir: run_dir.to_owned(),
        source,
    })?;
    let lock = Lock::read(&layout.config_lock()).map_err(FactsError::Lock)?;
    let python = python_of(&lock, &layout.code(), data_root).map_err(FactsError::Python)?;
    Ok(RunFacts {
        truth: DataRoot::at(data_root.to_owned()).truth(&lock.board),
        layout,
        runtime,
        lock: Arc::new(lock),
        python,
    })
}
