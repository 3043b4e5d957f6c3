//! The daemons of one run: started together, watched one by one, restarted within limits, ended
//! together. One task owns a group; nobody else starts or ends its daemons.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use vec_config::Lock;
use vec_daemon::chain;
use vec_daemon::spec::PythonSpec;
use vec_scope::{ExitKind, ScopeError, Signal, Unit};
use vec_store::{RunLayout, RunLock};
use vec_types::RunId;

use crate::closing::close_as_infra;
use crate::deps::Deps;
use crate::files::FileError;
use crate::off_thread::off_thread;
use crate::record::RunRecord;
use crate::restart::{RestartDecision, RestartLimit};
use crate::run_view::is_closed;
use crate::runtime_dir::RunRuntime;
use crate::service::Service;
use crate::spawn::{END_GRACE, SpawnError, Stage, exit_words};
use crate::specs::SpecSource;

/// Why a group could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A daemon did not start.
    #[error("start the run's daemons")]
    Spawn(#[source] SpawnError),
    /// `run.json` cannot be written.
    #[error("note the run's daemons")]
    Record(#[source] FileError),
}

/// A process that cannot be taken over writes the run: nothing may be started beside it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "run {run} is being written by process {pid}, which cannot be taken over (its pidfile is damaged or gone); its daemons are left alone. Once that process has ended: vecctl resume {run}"
)]
pub(crate) struct Unadopted {
    /// The run.
    pub(crate) run: RunId,
    /// The writer.
    pub(crate) pid: u32,
}

/// What a group needs to know about its run.
#[derive(Debug, Clone)]
pub(crate) struct RunFacts {
    pub(crate) layout: RunLayout,
    pub(crate) runtime: RunRuntime,
    pub(crate) lock: Arc<Lock>,
    pub(crate) python: PythonSpec,
    pub(crate) truth: PathBuf,
}

/// The daemons of one run.
#[derive(Debug)]
pub(crate) struct Group {
    deps: Arc<Deps>,
    facts: RunFacts,
    record: RunRecord,
    units: BTreeMap<Service, Arc<Unit>>,
    exits: JoinSet<(Service, i32, ExitKind)>,
}

/// Why watching ended.
enum End {
    Closed,
    Exhausted(Service),
}

impl Group {
    pub(crate) fn new(deps: Arc<Deps>, facts: RunFacts, record: RunRecord) -> Self {
        Self {
            deps,
            facts,
            record,
            units: BTreeMap::new(),
            exits: JoinSet::new(),
        }
    }

    /// Starts every daemon that the run needs and that does not run, in order. With `reopen` the
    /// controller reopens a closed segment.
    ///
    /// # Errors
    /// [`GroupError`]; what was started still runs.
    pub(crate) async fn start_missing(&mut self, reopen: bool) -> Result<(), GroupError> {
        for service in self.missing() {
            self.start(service, reopen).await?;
        }
        Ok(())
    }

    fn missing(&self) -> Vec<Service> {
        let scripted = self.specs().playbook(0).is_some();
        let needed = |service: &Service| *service != Service::Playbook || scripted;
        let missing = |service: &Service| needed(service) && !self.units.contains_key(service);
        Service::ALL.into_iter().filter(missing).collect()
    }

    fn specs(&self) -> SpecSource<'_> {
        SpecSource {
            lock: &self.facts.lock,
            layout: &self.facts.layout,
            runtime: &self.facts.runtime,
            python: &self.facts.python,
            uid: self.deps.surroundings.uid,
        }
    }

    /// Takes over what an earlier launcher started.
    ///
    /// # Errors
    /// [`Unadopted`]; then the group must be dropped, and the run's runtime directory be left.
    pub(crate) fn adopt(&mut self) -> Result<(), Unadopted> {
        for service in Service::ALL {
            let pidfile = self.facts.runtime.pidfile(service);
            match self.deps.supervision.supervisor.adopt(&pidfile) {
                Ok(Some(unit)) => self.watch(service, unit),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(run = %self.record.run, service = service.as_str(), error = %chain(&error), "adopt a daemon");
                }
            }
        }
        let is_adopted = self.units.contains_key(&Service::Controller);
        writer_besides(is_adopted, &self.facts.layout)
    }

    async fn start(&mut self, service: Service, reopen: bool) -> Result<(), GroupError> {
        let start = self.record.take_start(service);
        self.record
            .write(&self.facts.runtime.record())
            .map_err(GroupError::Record)?;
        let source = self.specs();
        let stage = Stage {
            supervisor: &self.deps.supervision.supervisor,
            layout: &self.facts.layout,
            runtime: &self.facts.runtime,
            truth: &self.facts.truth,
            uid: self.deps.surroundings.uid,
        };
        let unit = match service {
            Service::Playbook => match source.playbook(start) {
                Some(spec) => stage.start(service, &spec).await,
                None => return Ok(()),
            },
            Service::Egress => stage.start(service, &source.egress(start)).await,
            Service::Scorer => stage.start(service, &source.scorer(start)).await,
            Service::Controller => {
                stage
                    .start(service, &source.controller(start, reopen))
                    .await
            }
        }
        .map_err(GroupError::Spawn)?;
        tracing::info!(run = %self.record.run, service = service.as_str(), start, pid = unit.pid(), "daemon started");
        self.watch(service, unit);
        Ok(())
    }

    fn watch(&mut self, service: Service, unit: Unit) {
        let unit = Arc::new(unit);
        self.units.insert(service, Arc::clone(&unit));
        self.exits.spawn(async move {
            let exit = unit.wait().await;
            (service, unit.pid(), exit)
        });
    }

    /// Watches until the run is closed; `done` becomes true at the very end.
    pub(crate) async fn supervise(mut self, done: watch::Sender<bool>) {
        let end = self.until_over().await;
        if let End::Exhausted(service) = end {
            self.give_up(service).await;
        }
        self.end_all().await;
        let runtime = self.facts.runtime.path();
        if let Err(error) = std::fs::remove_dir_all(runtime) {
            tracing::warn!(run = %self.record.run, %error, "remove the run's runtime directory");
        }
        tracing::info!(run = %self.record.run, "run group ended");
        done.send_replace(true);
    }

    async fn until_over(&mut self) -> End {
        // What an earlier launcher left may lack daemons that died with nobody watching.
        if !self.units.contains_key(&Service::Controller) && is_closed(&self.facts.layout) {
            return End::Closed;
        }
        for service in self.missing() {
            if !self.restart(service).await {
                return End::Exhausted(service);
            }
        }
        while let Some(joined) = self.exits.join_next().await {
            let Ok((service, pid, exit)) = joined else {
                continue;
            };
            if self.units.get(&service).map(|unit| unit.pid()) != Some(pid) {
                continue;
            }
            if is_closed(&self.facts.layout) {
                return End::Closed;
            }
            tracing::warn!(run = %self.record.run, service = service.as_str(), pid, exit = exit_words(exit), "daemon ended before the run was closed");
            self.reap(service).await;
            if !self.restart(service).await {
                return End::Exhausted(service);
            }
        }
        End::Closed
    }

    // Restarts within the locked limit; a start that fails is one more restart.
    async fn restart(&mut self, service: Service) -> bool {
        let limit = RestartLimit::from(&self.facts.lock.config.restarts);
        loop {
            let history = self.record.restarts.entry(service).or_default();
            match history.decide(limit, self.deps.clock.now()) {
                RestartDecision::Exhausted => return false,
                RestartDecision::Restart => {}
            }
            match self.start(service, false).await {
                Ok(()) => return true,
                Err(error) => {
                    tracing::error!(run = %self.record.run, service = service.as_str(), error = %chain(&error), "restart a daemon");
                }
            }
        }
    }

    // What the dead daemon's session still holds must not meet its successor.
    async fn reap(&mut self, service: Service) {
        if let Some(unit) = self.units.remove(&service)
            && let Err(error) = unit.end(Duration::ZERO).await
        {
            tracing::warn!(run = %self.record.run, service = service.as_str(), error = %chain(&error), "reap a daemon's processes");
        }
    }

    async fn give_up(&mut self, service: Service) {
        let restarts = &self.facts.lock.config.restarts;
        let why = format!(
            "{} was restarted {} times within {} minutes",
            service.as_str(),
            restarts.max,
            restarts.window_minutes
        );
        tracing::error!(run = %self.record.run, why, "restarts used up; stopping the run");
        if let Some(controller) = self.units.remove(&Service::Controller)
            && let Err(error) = kill(&controller).await
        {
            tracing::warn!(run = %self.record.run, error = %chain(&error), "kill the controller");
        }
        self.end_all().await;
        // It may have come to its own end meanwhile.
        if is_closed(&self.facts.layout) {
            return;
        }
        let (layout, clock) = (self.facts.layout.clone(), Arc::clone(&self.deps.clock));
        let closed =
            off_thread(move || async move { close_as_infra(&layout, clock.as_ref(), &why).await })
                .await;
        match closed {
            Ok(Ok(head)) => tracing::info!(run = %self.record.run, %head, "run closed"),
            Ok(Err(error)) => {
                tracing::error!(run = %self.record.run, error = %chain(&error), "the run stays open; resume it");
            }
            Err(error) => tracing::error!(run = %self.record.run, %error, "closing was cut short"),
        }
    }

    /// Ends every daemon, the controller first.
    pub(crate) async fn end_all(&mut self) {
        for service in Service::ALL.into_iter().rev() {
            if let Some(unit) = self.units.remove(&service)
                && let Err(error) = unit.end(END_GRACE).await
            {
                tracing::warn!(run = %self.record.run, service = service.as_str(), error = %chain(&error), "end a daemon");
            }
        }
        self.exits.abort_all();
    }
}

// Without TERM: told to end, a controller would stop the run with reason operator.
async fn kill(unit: &Unit) -> Result<ExitKind, ScopeError> {
    unit.signal(Signal::SIGKILL)?;
    unit.end(Duration::ZERO).await
}

fn writer_besides(is_adopted: bool, layout: &RunLayout) -> Result<(), Unadopted> {
    match RunLock::holder(layout) {
        Some(pid) if !is_adopted => Err(Unadopted {
            run: layout.run().clone(),
            pid,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
