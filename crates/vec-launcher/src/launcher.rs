//! The launcher itself: which runs run, and the calls about them. Owns the map of groups; the
//! groups own their daemons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use vec_proto::pb::controller::v1 as controller;
use vec_proto::pb::controller::v1::control_client::ControlClient;
use vec_proto::{Backoff, with_retry};
use vec_store::RunLayout;
use vec_types::{RunId, canonical_json};

use crate::data_root::DataRoot;
use crate::deps::Deps;
use crate::error::LauncherError;
use crate::files::FileError;
use crate::group::Group;
use crate::requests::Requests;
use crate::run_view;
use crate::runtime_dir::RunRuntime;
use crate::service::Service;

/// Deadline of one call to a controller.
const CONTROL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// A run whose daemons are meant to run.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) layout: RunLayout,
    pub(crate) runtime: RunRuntime,
    done: watch::Receiver<bool>,
}

impl Running {
    /// Waits until the group has ended.
    pub(crate) async fn ended(&mut self) {
        // An error means that the group's task is gone, which is an end, too.
        drop(self.done.wait_for(|done| *done).await);
    }

    fn is_over(&self) -> bool {
        *self.done.borrow() || self.done.has_changed().is_err()
    }
}

/// One run for `vecctl list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub run_dir: PathBuf,
    /// `running`, `stopped` or `dead`.
    pub state: &'static str,
    /// Of a stopped run.
    pub stop_reason: Option<vec_types::StopReason>,
}

/// The launcher.
#[derive(Debug)]
pub struct Launcher {
    pub(crate) deps: Arc<Deps>,
    runs: Mutex<BTreeMap<RunId, Running>>,
    /// One launch or resume at a time: they share caches and the books.
    pub(crate) starting: tokio::sync::Mutex<Requests>,
}

impl Launcher {
    /// A launcher that runs nothing yet.
    ///
    /// # Errors
    /// [`FileError`] when the books of an earlier launcher are damaged.
    pub fn new(deps: Deps) -> Result<Self, FileError> {
        let requests = Requests::open(&deps.runtime.launcher().join("requests.json"))?;
        Ok(Self {
            deps: Arc::new(deps),
            runs: Mutex::default(),
            starting: tokio::sync::Mutex::new(requests),
        })
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Running>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, if its daemons are meant to run.
    pub(crate) fn running(&self, run: &RunId) -> Option<Running> {
        self.runs()
            .get(run)
            .filter(|running| !running.is_over())
            .cloned()
    }

    /// Hands a started group to a task of its own.
    pub(crate) fn supervise(&self, layout: RunLayout, runtime: RunRuntime, group: Group) {
        let (done_tx, done) = watch::channel(false);
        let run = layout.run().clone();
        let running = Running {
            layout,
            runtime,
            done,
        };
        let mut runs = self.runs();
        runs.retain(|_, running| !running.is_over());
        runs.insert(run, running);
        tokio::spawn(group.supervise(done_tx));
    }

    /// The directory of a run, running or not.
    ///
    /// # Errors
    /// [`LauncherError::UnknownRun`].
    pub(crate) fn find(
        &self,
        run: &RunId,
        root: Option<&Path>,
    ) -> Result<RunLayout, LauncherError> {
        if let Some(running) = self.running(run) {
            return Ok(running.layout);
        }
        let found = self.deps.data_root.find_run(run, root);
        match found.map_err(LauncherError::File)? {
            Some(dir) => RunLayout::of_run_dir(&dir)
                .map_err(|error| LauncherError::Request(vec_daemon::chain(&error).to_string())),
            None => Err(LauncherError::UnknownRun {
                run: run.clone(),
                known: self.deps.data_root.roots().map_err(LauncherError::File)?,
            }),
        }
    }

    /// Asks the controller to end the run (BUD-08). One that is stopping by itself is left alone.
    ///
    /// # Errors
    /// [`LauncherError`].
    pub async fn stop(&self, run: &RunId, why: &str) -> Result<(), LauncherError> {
        let Some(running) = self.running(run) else {
            let layout = self.find(run, None)?;
            return match run_view::standing(&layout).state {
                "stopped" => Err(LauncherError::Closed { run: run.clone() }),
                state => Err(LauncherError::NotRunning {
                    run: run.clone(),
                    state,
                }),
            };
        };
        let client = self.control(&running)?;
        let why = why.to_owned();
        // The controller may be between two starts.
        let result = with_retry(Backoff::RESTART, || {
            let mut request = tonic::Request::new(controller::StopRequest { why: why.clone() });
            request.set_timeout(CONTROL_TIMEOUT);
            let mut client = client.clone();
            async move { client.stop(request).await }
        })
        .await;
        match result {
            Ok(_) => Ok(()),
            // It stopped by itself meanwhile.
            Err(status) if status.code() == tonic::Code::FailedPrecondition => Ok(()),
            Err(status) => Err(controller_error(run, &status)),
        }
    }

    /// Where the run stands, as the controller's JSON, or folded from its archive.
    ///
    /// # Errors
    /// [`LauncherError`].
    pub async fn status(&self, run: &RunId) -> Result<String, LauncherError> {
        if let Some(running) = self.running(run) {
            let mut client = self.control(&running)?;
            let mut request = tonic::Request::new(controller::StatusRequest {});
            request.set_timeout(CONTROL_TIMEOUT);
            if let Ok(reply) = client.status(request).await {
                return Ok(reply.into_inner().json);
            }
        }
        let layout = self.find(run, None)?;
        let state = run_view::state(&layout)
            .await
            .map_err(LauncherError::View)?;
        let status = state.status(self.deps.clock.now());
        let json =
            canonical_json(&status).map_err(|error| LauncherError::Task(error.to_string()))?;
        String::from_utf8(json).map_err(|error| LauncherError::Task(error.to_string()))
    }

    /// Every run of the known roots and every running one, newest first.
    ///
    /// # Errors
    /// [`LauncherError::File`].
    pub fn list(&self) -> Result<Vec<Listed>, LauncherError> {
        let mut all = known_dirs(&self.deps.data_root).map_err(LauncherError::File)?;
        let running = self.runs().clone();
        for (run, one) in &running {
            all.insert(run.clone(), one.layout.run_dir().to_owned());
        }
        let is_running = |run: &RunId| running.get(run).is_some_and(|one| !one.is_over());
        Ok(listed(all, is_running))
    }

    /// A client of a running run's controller.
    pub(crate) fn control(
        &self,
        running: &Running,
    ) -> Result<ControlClient<tonic::transport::Channel>, LauncherError> {
        let socket = running.runtime.socket(Service::Controller);
        let channel = vec_proto::connect_lazy(&socket)
            .map_err(|error| LauncherError::Request(vec_daemon::chain(&error).to_string()))?;
        Ok(ControlClient::new(channel))
    }
}

pub(crate) fn controller_error(run: &RunId, status: &tonic::Status) -> LauncherError {
    LauncherError::Controller {
        run: run.clone(),
        why: status.message().to_owned(),
    }
}

/// Every run of the known roots, newest first, as their directories show them.
///
/// # Errors
/// [`FileError`] when `roots.json` cannot be read.
pub fn list_known(data_root: &DataRoot) -> Result<Vec<Listed>, FileError> {
    Ok(listed(known_dirs(data_root)?, |_| false))
}

fn known_dirs(data_root: &DataRoot) -> Result<BTreeMap<RunId, PathBuf>, FileError> {
    let mut all = BTreeMap::new();
    for root in data_root.roots()? {
        all.extend(runs_below(&root));
    }
    Ok(all)
}

fn listed(all: BTreeMap<RunId, PathBuf>, is_running: impl Fn(&RunId) -> bool) -> Vec<Listed> {
    let listed = all.into_iter().rev().filter_map(|(run, run_dir)| {
        let standing = if is_running(&run) {
            run_view::Standing {
                state: "running",
                stop_reason: None,
            }
        } else {
            run_view::standing(&RunLayout::of_run_dir(&run_dir).ok()?)
        };
        Some(Listed {
            run,
            run_dir,
            state: standing.state,
            stop_reason: standing.stop_reason,
        })
    });
    listed.collect()
}

fn runs_below(root: &Path) -> BTreeMap<RunId, PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let run: RunId = entry.file_name().to_str()?.parse().ok()?;
            entry.path().is_dir().then(|| (run, entry.path()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
