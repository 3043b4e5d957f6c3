//! Checking a run directory after the fact (LED-02, `vecctl verify`): chains, hashes, coverage,
//! programs, lock, and on request a replay of every decision.
//!
//! Invariants: needs no more than the owner's read permission, trusts no daemon, and never writes
//! into the run directory or beside it. Everything that does not hold is a [`Finding`] that names
//! the place, what was expected and what was found; the check goes on.

mod archive;
mod difference;
mod evidence;
mod files;
mod ledger;
mod lock;
mod programs;
mod replay;
mod report;

use std::path::Path;

use vec_store::{RunLayout, StoreError};
use vec_types::Digest;

pub use replay::{KnownEvent, Replay};
pub use report::{Check, Finding, VerifyReport};

/// What to check beyond the always checked.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Accept a run that is not closed: what a crash may leave is then pending, not a finding.
    pub open: bool,
    /// A ledger hash known from elsewhere (mail, journal, successor): the chain must hold it.
    pub anchor: Option<Digest>,
    /// Re-derive every decision from the facts.
    pub replay: bool,
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Not a run directory at all.
    #[error("{} cannot be verified", path.display())]
    NotARun {
        /// The path given.
        path: std::path::PathBuf,
        /// Why not.
        #[source]
        source: StoreError,
    },
    /// The check itself was cut short.
    #[error("the check of {} was cut short", .0.display())]
    CutShort(std::path::PathBuf),
}

/// Checks the run in `run_dir`.
///
/// # Errors
/// [`VerifyError`] when `run_dir` is no run directory; everything else is in the report.
pub async fn verify(run_dir: &Path, options: &VerifyOptions) -> Result<VerifyReport, VerifyError> {
    let not_a_run = |source| VerifyError::NotARun {
        path: run_dir.to_owned(),
        source,
    };
    let layout = RunLayout::of_run_dir(run_dir).map_err(not_a_run)?;
    if !run_dir.is_dir() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(not_a_run(StoreError::Io {
            action: "open",
            path: run_dir.to_owned(),
            source: missing,
        }));
    }
    let (for_files, file_options) = (layout.clone(), options.clone());
    let (mut report, ledger) = blocking(run_dir, move || {
        let mut report = VerifyReport::new(for_files.run());
        let ledger = ledger::check(&for_files, &file_options, &mut report);
        if let Some(ledger) = &ledger {
            files::check(&for_files, ledger, &file_options, &mut report);
        }
        (report, ledger)
    })
    .await?;
    let events = archive::check(&layout, ledger.as_ref(), &mut report).await;
    let replay = options.replay;
    let open = options.open;
    blocking(run_dir, move || {
        if let Some(ledger) = &ledger {
            evidence::check(&layout, ledger, &events, &mut report);
        }
        programs::check(&layout, &events, &mut report);
        lock::check(&layout, &events, &mut report);
        if replay {
            replay::check(&events, open, &mut report);
        }
        report
    })
    .await
}

async fn blocking<T: Send + 'static>(
    run_dir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, VerifyError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_cut| VerifyError::CutShort(run_dir.to_owned()))
}
