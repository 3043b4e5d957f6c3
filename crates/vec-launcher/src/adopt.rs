//! What a restarted launcher finds: runs whose daemons still run, runs whose daemons died with
//! nobody watching, run directories that were never finished.

use std::path::Path;

use vec_daemon::chain;
use vec_store::RunLayout;

use crate::group::{Group, Unadopted};
use crate::launcher::Launcher;
use crate::record::{RunRecord, RunStage};
use crate::run_facts::{FactsError, run_facts};
use crate::runtime_dir::RunRuntime;

/// Why a run cannot be taken over.
#[derive(Debug, thiserror::Error)]
enum AdoptError {
    /// Its lock, Python or truth cannot be used.
    #[error(transparent)]
    Facts(FactsError),
    /// Its writer is unknown.
    #[error(transparent)]
    Unadopted(Unadopted),
}

impl Launcher {
    /// Takes over every run of the runtime directory. A run that cannot be taken over is logged
    /// and left as it is.
    pub(crate) async fn adopt_all(&self) {
        let Ok(entries) = std::fs::read_dir(self.deps.runtime.runs()) else {
            return;
        };
        for entry in entries.flatten() {
            let runtime = RunRuntime::at(entry.path());
            match RunRecord::read(&runtime.record()) {
                Ok(record) if record.stage == RunStage::Creating => {
                    tracing::warn!(run = %record.run, "removing a run that was never finished");
                    remove_unfinished(&record, &runtime);
                }
                Ok(record) => {
                    let run = record.run.clone();
                    if let Err(error) = self.adopt(record, runtime) {
                        tracing::error!(%run, error = %chain(&error), "a run cannot be taken over");
                    }
                }
                Err(error) => {
                    tracing::error!(directory = %runtime.path().display(), error = %chain(&error), "not a run's runtime directory");
                }
            }
        }
    }

    fn adopt(&self, record: RunRecord, runtime: RunRuntime) -> Result<(), AdoptError> {
        let facts = run_facts(&record.run_dir, &record.data_root, runtime.clone())
            .map_err(AdoptError::Facts)?;
        let layout = facts.layout.clone();
        let mut group = Group::new(self.deps.clone(), facts, record);
        group.adopt().map_err(AdoptError::Unadopted)?;
        tracing::info!(run = %layout.run(), "run taken over");
        self.supervise(layout, runtime, group);
        Ok(())
    }
}

/// Removes everything of a run that never started.
pub(crate) fn remove_unfinished(record: &RunRecord, runtime: &RunRuntime) {
    if let Ok(layout) = RunLayout::of_run_dir(&record.run_dir) {
        remove(&layout.spool());
        remove(layout.run_dir());
    }
    remove(runtime.path());
}

// Snapshots are read-only files in directories that may be read-only, too.
fn remove(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => {
            make_writable(path);
            if let Err(error) = std::fs::remove_dir_all(path) {
                tracing::error!(path = %path.display(), %error, "remove a half-made run");
            }
        }
    }
}

fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = path.symlink_metadata() else {
        return;
    };
    if !found.is_dir() {
        return;
    }
    drop(std::fs::set_permissions(
        path,
        std::fs::Permissions::from_mode(0o700),
    ));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        make_writable(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nothing_of_an_unfinished_run_is_left() {
        let dir = tempfile::tempdir().expect("dir");
        let run: vec_types::RunId = "20261130-101010-diabetes-abcd".parse().expect("id");
        let layout = RunLayout::new(&dir.path().join("runs"), &run);
        let code = layout.code().join("bin");
        std::fs::create_dir_all(&code).expect("code");
        std::fs::create_dir_all(layout.spool()).expect("spool");
        std::fs::write(code.join("x"), "").expect("file");
        std::fs::set_permissions(&code, std::fs::Permissions::from_mode(0o555)).expect("mode");
        let runtime = RunRuntime::at(dir.path().join("r"));
        std::fs::create_dir_all(runtime.path()).expect("runtime");
        let record = RunRecord::new(run, layout.run_dir().to_owned(), "/data".into());
        remove_unfinished(&record, &runtime);
        assert!(!layout.run_dir().exists() && !layout.spool().exists());
        assert!(!runtime.path().exists());
    }
}
