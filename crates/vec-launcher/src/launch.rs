//! Making a run: prepare, self-test, lock, snapshot, start. Until the daemons answer, everything
//! that was made can be and is removed again; a refused launch leaves a record, never a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vec_config::ConfigError;
use vec_daemon::chain;
use vec_store::{RunLayout, Store, StoreError};
use vec_types::{RunId, UnixMs};

use crate::adopt::remove_unfinished;
use crate::error::LauncherError;
use crate::files::FileError;
use crate::group::{Group, GroupError, RunFacts};
use crate::launcher::Launcher;
use crate::locking::{LockingError, lock_run};
use crate::off_thread::off_thread;
use crate::preflight::{Findings, Item, preflight};
pub use crate::prepare::ConfigSource;
use crate::prepare::{PrepareError, Prepared};
use crate::python;
use crate::record::{RunRecord, RunStage};
use crate::refusal;
use crate::requests::{Launched, Requests};
use crate::runtime_dir::{RunRuntime, RuntimeDirError, private_dir};

/// Tries to find a run id that nobody has.
const ID_TRIES_MAX: u32 = 8;

/// A checked Launch or Preflight call.
#[derive(Debug, Clone)]
pub struct LaunchCall {
    /// Empty for Preflight.
    pub request_id: String,
    /// What to run.
    pub config: ConfigSource,
    /// Where to; the default root if absent.
    pub root: Option<PathBuf>,
    /// D.
    pub data_root: PathBuf,
}

/// Why a launch fails.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// What it starts from is wrong or missing.
    #[error(transparent)]
    Prepare(PrepareError),
    /// No home directory and no `--root`.
    #[error("no home directory: pass --root")]
    NoRoot,
    /// The root cannot be made.
    #[error("make the root {}", root.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The self-test found something.
    #[error("preflight item `{item}` failed: {detail}")]
    Preflight {
        /// The first item that failed.
        item: String,
        /// What is wrong and what to do.
        detail: String,
    },
    /// No random bytes.
    #[error("make a run id")]
    Random(#[source] getrandom::Error),
    /// Every id was taken.
    #[error("no free run id after {ID_TRIES_MAX} tries")]
    NoFreeId,
    /// The run's runtime directory cannot be made.
    #[error("make the run's runtime directory")]
    Runtime(#[source] RuntimeDirError),
    /// The run directory cannot be made or written.
    #[error("make the run directory")]
    Store(#[source] StoreError),
    /// The run cannot be locked.
    #[error("lock the run")]
    Locking(#[source] LockingError),
    /// The launcher's notes cannot be written.
    #[error("note the run")]
    Record(#[source] FileError),
    /// The daemons did not start.
    #[error(transparent)]
    Group(GroupError),
    /// A task of ours ended without an answer: a bug.
    #[error("the launch was cut short: {0}")]
    Task(String),
}

impl LaunchError {
    /// What is wrong with the caller's configuration, one problem per line, if that is it.
    #[must_use]
    pub const fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Prepare(PrepareError::Config(error)) => Some(error),
            _ => None,
        }
    }
}

/// Removes what was made unless the run is started.
struct Unfinished {
    record: RunRecord,
    runtime: RunRuntime,
    is_started: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_started {
            remove_unfinished(&self.record, &self.runtime);
        }
    }
}

impl Launcher {
    /// Launches a run, or returns the run that the same request has led to before.
    ///
    /// # Errors
    /// [`LauncherError`]; nothing of the run is left then, and the refusal is recorded.
    pub async fn launch(&self, call: LaunchCall) -> Result<Launched, LauncherError> {
        // Not under the lock: files that are slow to read delay no other launch.
        let prepared = self.prepare(&call).await;
        let mut requests = self.starting.lock().await;
        if let Some(launched) = requests.find(&call.request_id) {
            return Ok(launched.clone());
        }
        let default = || self.deps.surroundings.root(false);
        let Some(root) = call.root.clone().or_else(default) else {
            return Err(LauncherError::Launch(Box::new(LaunchError::NoRoot)));
        };
        let launched = match prepared {
            Ok(prepared) => self.launch_in(&mut requests, &call, prepared, &root).await,
            Err(error) => Err(error),
        };
        match launched {
            Ok(launched) => Ok(launched),
            Err(error) => {
                let why = chain(&error).to_string();
                tracing::warn!(why, "launch refused");
                refusal::launch(&root, &call.config.path, &why, self.deps.clock.now());
                Err(LauncherError::Launch(Box::new(error)))
            }
        }
    }

    /// The self-test of a launch, without a run.
    ///
    /// # Errors
    /// [`LauncherError::Launch`] when it cannot even be prepared.
    pub async fn preflight(&self, call: LaunchCall) -> Result<Vec<Item>, LauncherError> {
        let root = call
            .root
            .clone()
            .or_else(|| self.deps.surroundings.root(false));
        let failed = |error| LauncherError::Launch(Box::new(error));
        let root = root.ok_or(LaunchError::NoRoot).map_err(failed)?;
        let prepared = self.prepare(&call).await.map_err(failed)?;
        // The scorer and the sandbox of two preflights would share scratch space.
        let _one_at_a_time = self.starting.lock().await;
        Ok(preflight(&self.deps, &prepared, &root).await.items)
    }

    async fn prepare(&self, call: &LaunchCall) -> Result<Prepared, LaunchError> {
        let (deps, source) = (Arc::clone(&self.deps), call.config.clone());
        let data_root = call.data_root.clone();
        blocking(move || Prepared::read(&deps, source, data_root))
            .await?
            .map_err(LaunchError::Prepare)
    }

    async fn launch_in(
        &self,
        requests: &mut Requests,
        call: &LaunchCall,
        prepared: Prepared,
        root: &Path,
    ) -> Result<Launched, LaunchError> {
        std::fs::create_dir_all(root).map_err(|source| LaunchError::Root {
            root: root.to_owned(),
            source,
        })?;
        let findings = preflight(&self.deps, &prepared, root).await;
        if let Some(Item { name, detail, .. }) = findings.failed() {
            return Err(LaunchError::Preflight {
                item: name.clone(),
                detail: detail.clone(),
            });
        }
        let (mut unfinished, group, launched) = self.make(prepared, findings, root).await?;
        self.start(requests, call, (&mut unfinished, group, &launched))
            .await?;
        unfinished.is_started = true;
        if let Err(error) = self.deps.data_root.remember(root) {
            tracing::warn!(error = %chain(&error), "a root is not remembered");
        }
        tracing::info!(run = %launched.run, directory = %launched.run_dir.display(), "run launched");
        Ok(launched)
    }

    async fn make(
        &self,
        prepared: Prepared,
        findings: Findings,
        root: &Path,
    ) -> Result<(Unfinished, Group, Launched), LaunchError> {
        let at = self.deps.clock.now();
        let (unfinished, store) = self.reserve(&prepared, root, at).await?;
        let layout = store.layout().clone();
        let truth = prepared.built.truth_dir.clone();
        let python = python::spec(prepared.python.clone());
        let lock = lock_run(
            store,
            prepared,
            findings,
            self.deps.supervision.locked(),
            at,
        )
        .await
        .map_err(LaunchError::Locking)?;
        let launched = Launched {
            run: layout.run().clone(),
            run_dir: layout.run_dir().to_owned(),
            reasons: lock.reasons.iter().map(ToString::to_string).collect(),
        };
        let facts = RunFacts {
            layout,
            runtime: unfinished.runtime.clone(),
            lock: Arc::new(lock),
            python,
            truth,
        };
        let mut record = unfinished.record.clone();
        record.stage = RunStage::Running;
        let group = Group::new(Arc::clone(&self.deps), facts, record);
        Ok((unfinished, group, launched))
    }

    // A run id, its runtime directory and its run directory, each made exclusively.
    async fn reserve(
        &self,
        prepared: &Prepared,
        root: &Path,
        at: UnixMs,
    ) -> Result<(Unfinished, Store), LaunchError> {
        let uid = self.deps.surroundings.uid;
        for _ in 0..ID_TRIES_MAX {
            let run = RunId::generate(&prepared.board.board, at).map_err(LaunchError::Random)?;
            let layout = RunLayout::new(root, &run);
            let runtime = self.deps.runtime.run(&run);
            if runtime.path().exists() || layout.run_dir().exists() {
                continue;
            }
            private_dir(runtime.path(), uid).map_err(LaunchError::Runtime)?;
            private_dir(&runtime.clients(), uid).map_err(LaunchError::Runtime)?;
            let data_root = prepared.data_root.path().to_owned();
            let record = RunRecord::new(run.clone(), layout.run_dir().to_owned(), data_root);
            let unfinished = Unfinished {
                record,
                runtime,
                is_started: false,
            };
            let path = unfinished.runtime.record();
            unfinished
                .record
                .write(&path)
                .map_err(LaunchError::Record)?;
            let root = root.to_owned();
            let created =
                off_thread(move || async move { Store::create(&root, &run, at).await }).await;
            let store = created
                .map_err(|error| LaunchError::Task(error.to_string()))?
                .map_err(LaunchError::Store)?;
            return Ok((unfinished, store));
        }
        Err(LaunchError::NoFreeId)
    }

    // The request is remembered first: a launcher that dies from here on has a run to take over.
    async fn start(
        &self,
        requests: &mut Requests,
        call: &LaunchCall,
        (unfinished, mut group, launched): (&mut Unfinished, Group, &Launched),
    ) -> Result<(), LaunchError> {
        requests
            .remember(call.request_id.clone(), launched.clone())
            .map_err(LaunchError::Record)?;
        if let Err(error) = group.start_missing(false).await {
            group.end_all().await;
            requests
                .forget(&call.request_id)
                .map_err(LaunchError::Record)?;
            return Err(LaunchError::Group(error));
        }
        let layout = RunLayout::of_run_dir(&launched.run_dir).map_err(LaunchError::Store)?;
        self.supervise(layout, unfinished.runtime.clone(), group);
        Ok(())
    }
}

/// Runs blocking work off the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LaunchError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| LaunchError::Task(error.to_string()))
}
