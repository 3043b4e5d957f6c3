//! Copying files into a run directory: regular files only, read-only, bounded.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use vec_types::Digest;
use walkdir::WalkDir;

use crate::error::SnapshotError;

/// Most files that one source directory may hold.
const FILES_MAX: usize = 20_000;
/// Deepest directory that is followed.
const DEPTH_MAX: usize = 32;

/// Regular files below `root` as paths below it, sorted.
pub(crate) fn files_below(root: &Path) -> Result<Vec<PathBuf>, SnapshotError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(root).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(root).to_owned();
            SnapshotError::io("read", &path)(error.into())
        })?;
        let kind = entry.file_type();
        if kind.is_dir() {
            if entry.depth() > DEPTH_MAX {
                return Err(SnapshotError::refused(entry.path(), "too deep a directory"));
            }
            continue;
        }
        if !kind.is_file() {
            let what = "neither file nor directory; a run takes no links or devices";
            return Err(SnapshotError::refused(entry.path(), what));
        }
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        files.push(below.to_owned());
        if files.len() > FILES_MAX {
            let what = format!("more than {FILES_MAX} files");
            return Err(SnapshotError::refused(root, what));
        }
    }
    Ok(files)
}

/// Copies the regular files below `from` to `to`, read-only; execution bits stay.
pub(crate) fn copy_dir(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    for file in files_below(from)? {
        copy_file(&from.join(&file), &to.join(&file))?;
    }
    Ok(())
}

/// Copies one file to a place where nothing is, read-only, and makes the directories above it.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    if let Some(parent) = to.parent() {
        make_dir(parent)?;
    }
    let meta = fs::symlink_metadata(from).map_err(SnapshotError::io("read", from))?;
    if !meta.is_file() {
        return Err(SnapshotError::refused(from, "must be a regular file"));
    }
    // std copies through copy_file_range, which shares blocks where the file system can.
    fs::copy(from, to).map_err(SnapshotError::io("copy to", to))?;
    let execute = if meta.permissions().mode() & 0o100 == 0 {
        0
    } else {
        0o111
    };
    fs::set_permissions(to, Permissions::from_mode(0o444 | execute))
        .map_err(SnapshotError::io("make read-only", to))
}

/// Makes a directory and those above it; readable for the sandbox's user whatever the umask.
pub(crate) fn make_dir(path: &Path) -> Result<(), SnapshotError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    fs::create_dir(path).map_err(SnapshotError::io("make directory", path))?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .map_err(SnapshotError::io("set the mode of", path))
}

/// Digest of a file, streamed, with its length.
pub(crate) fn hash(path: &Path) -> Result<(u64, Digest), SnapshotError> {
    vec_store::hash_file(path).map_err(|error| SnapshotError::Io {
        operation: "hash",
        path: path.to_owned(),
        source: std::io::Error::other(error),
    })
}
