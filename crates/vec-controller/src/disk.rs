//! Room on the run's disk. A full disk must end the run, never decide it: what fails for want of
//! room is no fault of a candidate and no reason to keep a baseline.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use vec_store::RunLayout;

/// Kept free so that a full disk can still be written down.
const BALLAST_BYTES: usize = 4 << 20;
const BALLAST: &str = "ballast";
/// What must be writable after something failed, or the disk counts as full.
const PROBE_BYTES: usize = 256 << 10;
const PROBE: &str = "probe";

/// Is this the error of a full disk or an exhausted quota?
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Makes the ballast whole. On a disk that is full already there is none; the run then says so in
/// its log and goes on for as long as it can.
pub(crate) fn keep_ballast(layout: &RunLayout) {
    let path = layout.spool().join(BALLAST);
    if fs::metadata(&path).is_ok_and(|meta| meta.len() == BALLAST_BYTES as u64) {
        return;
    }
    if let Err(error) = write_synced(&path, BALLAST_BYTES) {
        tracing::warn!(path = %path.display(), %error, "no room for the ballast");
        drop_ballast(layout);
    }
}

/// Gives the ballast's room back.
pub(crate) fn drop_ballast(layout: &RunLayout) {
    let path = layout.spool().join(BALLAST);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "the ballast was not removed");
        }
        _ => {}
    }
}

/// Is there room for the next small step? Asked after anything failed.
pub(crate) fn has_room(layout: &RunLayout) -> bool {
    let path = layout.spool().join(PROBE);
    let written = write_synced(&path, PROBE_BYTES);
    if let Err(error) = fs::remove_file(&path) {
        tracing::debug!(%error, "the probe was not removed");
    }
    !written.is_err_and(|error| is_full(&error))
}

fn write_synced(path: &Path, bytes: usize) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(&vec![0; bytes])?;
    file.sync_all()
}
