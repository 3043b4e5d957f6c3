//! Pinned inputs (LCK-07): what a run reads lies in its own directory. Files above 64 MB are hard
//! links where the file system allows it, so that a big view costs no second copy; below, a copy
//! is cheaper than the risk of a shared inode.

use std::path::{Path, PathBuf};

use vec_config::PinnedInput;
use vec_types::RelPath;

use crate::copy::{copy_file, files_below, hash, make_dir};
use crate::error::SnapshotError;

/// Above this a file is linked.
const LINK_BYTES_MIN: u64 = 64 << 20;

/// One thing to pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// A file, or a directory of regular files.
    pub source: PathBuf,
    /// Its place below the run directory: `views/<view>` or below `inputs/`.
    pub dest: RelPath,
}

/// Puts every pin in its place and says what is there now.
///
/// # Errors
/// [`SnapshotError`]: a place that is taken, a source that is no regular file.
pub fn pin_inputs(run_dir: &Path, pins: &[Pin]) -> Result<Vec<PinnedInput>, SnapshotError> {
    pin_with(run_dir, pins, LINK_BYTES_MIN)
}

fn pin_with(
    run_dir: &Path,
    pins: &[Pin],
    link_bytes_min: u64,
) -> Result<Vec<PinnedInput>, SnapshotError> {
    let mut pinned = Vec::new();
    for pin in pins {
        if pin.source.is_dir() {
            for file in files_below(&pin.source)? {
                let text = format!("{}/{}", pin.dest, file.display());
                let dest = text.parse().map_err(|source| SnapshotError::Name {
                    path: pin.source.join(&file),
                    source,
                })?;
                let source = pin.source.join(file);
                pinned.push(pin_file(run_dir, &source, dest, link_bytes_min)?);
            }
        } else {
            let dest = pin.dest.clone();
            pinned.push(pin_file(run_dir, &pin.source, dest, link_bytes_min)?);
        }
    }
    Ok(pinned)
}

fn pin_file(
    run_dir: &Path,
    source: &Path,
    dest: RelPath,
    link_bytes_min: u64,
) -> Result<PinnedInput, SnapshotError> {
    let place = dest.under(run_dir);
    if place.symlink_metadata().is_ok() {
        return Err(SnapshotError::Exists(dest));
    }
    if let Some(parent) = place.parent() {
        make_dir(parent)?;
    }
    let meta = source
        .symlink_metadata()
        .map_err(SnapshotError::io("read", source))?;
    if !meta.is_file() {
        return Err(SnapshotError::refused(source, "must be a regular file"));
    }
    // Linking fails across file systems; then it is a copy, which shares blocks where it can.
    let linked = meta.len() >= link_bytes_min && std::fs::hard_link(source, &place).is_ok();
    if !linked {
        copy_file(source, &place)?;
    }
    let (size, sha256) = hash(&place)?;
    Ok(PinnedInput {
        path: dest,
        sha256,
        size,
        linked,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn small_files_are_copied_large_ones_linked_and_places_are_kept() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (from, run) = (dir.path().join("from"), dir.path().join("run"));
        std::fs::create_dir_all(from.join("deep")).expect("mkdir");
        std::fs::write(from.join("small"), "1").expect("write");
        std::fs::write(from.join("deep/large"), "12345678").expect("write");
        let pin = Pin {
            source: from.clone(),
            dest: "views/main".parse().expect("path"),
        };
        let pinned = pin_with(&run, std::slice::from_ref(&pin), 8).expect("pin");
        let facts: Vec<(&str, u64, bool)> = pinned
            .iter()
            .map(|input| (input.path.as_str(), input.size, input.linked))
            .collect();
        assert_eq!(
            facts,
            [
                ("views/main/deep/large", 8, true),
                ("views/main/small", 1, false)
            ]
        );
        let inode = |path: PathBuf| std::fs::metadata(path).expect("metadata").ino();
        assert_eq!(
            inode(from.join("deep/large")),
            inode(run.join("views/main/deep/large"))
        );
        assert_ne!(
            inode(from.join("small")),
            inode(run.join("views/main/small"))
        );
        let mode = std::fs::metadata(run.join("views/main/small"))
            .expect("metadata")
            .mode();
        assert_eq!(mode & 0o777, 0o444);
        assert!(matches!(
            pin_inputs(&run, &[pin]),
            Err(SnapshotError::Exists(_))
        ));
    }

    #[test]
    fn links_and_missing_files_are_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).expect("link");
        for (name, word) in [("link", "regular file"), ("none", "read")] {
            let pin = Pin {
                source: dir.path().join(name),
                dest: "inputs/x".parse().expect("path"),
            };
            let error = pin_inputs(&dir.path().join("run"), &[pin]).expect_err(name);
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
