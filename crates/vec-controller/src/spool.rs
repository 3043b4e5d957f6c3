//! Scratch directories of effects, on the run's file system so that results move in by rename.
//! Files moved into the run directory leave it; the rest is removed when the effect's files are
//! stored or the next start cleans up.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use vec_store::RunLayout;
use vec_types::TreeId;

use crate::context::Context;
use crate::effects::EffectError;

/// Scratch of all effects; the rest of the spool is the store's.
pub(crate) fn scratch(layout: &RunLayout) -> PathBuf {
    layout.spool().join("effects")
}

/// One effect's scratch directory.
#[derive(Debug)]
pub(crate) struct Spool {
    root: PathBuf,
}

impl Spool {
    /// Makes `<spool>/<name>`, empty, whatever an earlier start left there.
    pub(crate) async fn make(context: &Context, name: &str) -> Result<Self, EffectError> {
        let root = scratch(&context.layout).join(name);
        let made = root.clone();
        blocking("clean the spool", move || {
            remove(&made)?;
            std::fs::create_dir_all(&made)
        })
        .await?
        .map_err(|error| EffectError::io("make", &root, error))?;
        Ok(Self { root })
    }

    /// Makes an empty directory inside, mode 0755.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, EffectError> {
        let path = self.root.join(name);
        std::fs::create_dir(&path)
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
            .map_err(|error| EffectError::io("make", &path, error))?;
        Ok(path)
    }

    /// Exports a commit of programs.git into a new directory inside.
    pub(crate) async fn checkout(
        &self,
        context: &Context,
        commit: &TreeId,
        name: &str,
    ) -> Result<PathBuf, EffectError> {
        let path = self.root.join(name);
        let (programs, commit, dest) = (context.programs.clone(), commit.clone(), path.clone());
        blocking("export a program", move || programs.export(&commit, &dest))
            .await?
            .map_err(|error| EffectError::failed("export a program", &error))?;
        Ok(path)
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Leaves the directory to whoever stores the files in it.
    pub(crate) fn into_path(mut self) -> PathBuf {
        std::mem::take(&mut self.root)
    }
}

// An effect that was cut or failed leaves nothing behind.
impl Drop for Spool {
    fn drop(&mut self) {
        if self.root.as_os_str().is_empty() {
            return;
        }
        if let Err(error) = remove(&self.root) {
            tracing::warn!(path = %self.root.display(), %error, "scratch was not removed");
        }
    }
}

/// Removes a tree that may be gone already.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs blocking work off the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EffectError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| EffectError::failed(what, &error))
}
