//! Directories that appear as a whole: built beside their place under a name of this process,
//! then renamed. What a dead process left behind is swept away.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::BoardError;

/// A directory in the making; removed when dropped before [`Staged::publish`].
pub(crate) struct Staged {
    place: PathBuf,
    staging: PathBuf,
    published: bool,
}

impl Staged {
    /// Starts a directory that shall stand at `place`.
    pub(crate) fn start(place: &Path, mode: u32) -> Result<Self, BoardError> {
        let parent = place.parent().unwrap_or(Path::new("/"));
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.building-");
        sweep(parent, &prefix);
        let staging = parent.join(format!("{prefix}{}", std::process::id()));
        make_dir(&staging, mode)?;
        Ok(Self {
            place: place.to_owned(),
            staging,
            published: false,
        })
    }

    /// Where to write.
    pub(crate) fn path(&self) -> &Path {
        &self.staging
    }

    /// Puts the directory in its place; what stands there is removed.
    pub(crate) fn publish(mut self) -> Result<(), BoardError> {
        let old = self.staging.with_extension("old");
        let had_old = self.place.symlink_metadata().is_ok();
        if had_old {
            fs::rename(&self.place, &old).map_err(BoardError::io("move away", &self.place))?;
        }
        fs::rename(&self.staging, &self.place)
            .map_err(BoardError::io("put in place", &self.place))?;
        self.published = true;
        sync_dir(self.place.parent().unwrap_or(Path::new("/")))?;
        if had_old {
            fs::remove_dir_all(&old).map_err(BoardError::io("remove", &old))?;
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            make_removable(&self.staging);
            // Best effort: a later build sweeps what is left.
            let _ = fs::remove_dir_all(&self.staging);
        }
    }
}

fn sweep(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(prefix) else {
            continue;
        };
        let pid = rest.split('.').next().unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            make_removable(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

// Environments have no write bits; their directories need them to be emptied.
fn make_removable(root: &Path) {
    let _ = fs::set_permissions(root, Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_removable(&entry.path());
        }
    }
}

/// Makes a directory and what is missing above it; `mode` holds whatever the umask is.
pub(crate) fn make_dir(path: &Path, mode: u32) -> Result<(), BoardError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(BoardError::io("make directory", path))?;
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(BoardError::io("set the mode of", path))
}

/// Writes a new file and syncs it.
pub(crate) fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), BoardError> {
    let write = |path: &Path| {
        let mut file = File::create_new(path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write(path).map_err(BoardError::io("write", path))
}

/// Syncs a directory's entries.
pub(crate) fn sync_dir(path: &Path) -> Result<(), BoardError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(BoardError::io("sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appears_as_a_whole_and_leaves_nothing_when_dropped() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let place = dir.path().join("x");
        let leftover = dir.path().join(".x.building-4194304999");
        fs::create_dir(&leftover).expect("mkdir");
        let staged = Staged::start(&place, 0o755).expect("start");
        assert!(!leftover.exists(), "swept");
        write_file(&staged.path().join("f"), b"1", 0o600).expect("write");
        assert!(!place.exists());
        drop(staged);
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0);

        for text in [b"1", b"2"] {
            let staged = Staged::start(&place, 0o755).expect("start");
            write_file(&staged.path().join("f"), text, 0o600).expect("write");
            staged.publish().expect("publish");
            assert_eq!(fs::read(place.join("f")).expect("read"), text);
            assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 1);
        }
    }
}
