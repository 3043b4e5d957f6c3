//! Continuing a run: after its machine or its launcher went down, or after it was stopped and its
//! time is not over (RSM, architecture §6). Verification first; a refusal is recorded beside the
//! run and leaves it untouched.

use std::path::{Path, PathBuf};
use std::time::Duration;

use vec_config::Supervisor;
use vec_search::ResumeRefused;
use vec_store::{RunLayout, RunLock};
use vec_types::RunId;
use vec_verify::{VerifyError, VerifyOptions, VerifyReport};

use crate::error::LauncherError;
use crate::files::FileError;
use crate::group::{Group, GroupError, RunFacts, Unadopted};
use crate::launcher::Launcher;
use crate::off_thread::off_thread;
use crate::record::{RunRecord, RunStage};
use crate::refusal;
use crate::run_facts::{FactsError, run_facts};
use crate::run_view::{self, ViewError, is_closed};
use crate::runtime_dir::{RunRuntime, RuntimeDirError, private_dir};
use crate::service::Service;

/// Findings that are named in a refusal; the rest is counted.
const FINDINGS_NAMED_MAX: usize = 3;

/// Longest wait for the last writer of a run to let go of it.
const WRITER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two looks at it.
const WRITER_POLL: Duration = Duration::from_millis(50);

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The check could not be made.
    #[error("verify the run")]
    Verify(#[source] VerifyError),
    /// The run does not verify.
    #[error("run {run} does not verify: {findings}")]
    Damaged {
        /// The run.
        run: RunId,
        /// The first findings.
        findings: String,
    },
    /// The run is over.
    #[error("run {run} is over")]
    Over {
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: ResumeRefused,
    },
    /// Somebody else writes it.
    #[error("run {run} is being written by process {pid}, which this launcher did not start")]
    Busy {
        /// The run.
        run: RunId,
        /// The writer.
        pid: u32,
    },
    /// Its events cannot be read.
    #[error("read the run")]
    View(#[source] ViewError),
    /// Its lock, Python or truth cannot be used.
    #[error("prepare the run's daemons")]
    Facts(#[source] FactsError),
    /// Its executions had limits that this launcher does not set.
    #[error(
        "run {run} was locked with supervisor `{locked}`, but this launcher has {here}; a resumed run keeps its limits"
    )]
    Supervisor {
        /// The run.
        run: RunId,
        /// What the lock names.
        locked: &'static str,
        /// What is in force here.
        here: String,
    },
    /// Its runtime directory cannot be made.
    #[error("make the run's runtime directory")]
    Runtime(#[source] RuntimeDirError),
    /// `run.json` cannot be written.
    #[error("note the run")]
    Record(#[source] FileError),
    /// Its daemons did not start.
    #[error(transparent)]
    Group(GroupError),
    /// A task of ours ended without an answer: a bug.
    #[error("verification was cut short: {0}")]
    Task(String),
}

impl Launcher {
    /// Continues a run. One that runs already is left alone. Returns its directory.
    ///
    /// # Errors
    /// [`LauncherError`]; a refusal is recorded as `<run>.refused.jsonl`.
    pub async fn resume(&self, run: &RunId, root: Option<&Path>) -> Result<PathBuf, LauncherError> {
        let _one_at_a_time = self.starting.lock().await;
        if let Some(running) = self.running(run) {
            return Ok(running.layout.run_dir().to_owned());
        }
        let layout = self.find(run, root)?;
        match self.resume_found(&layout).await {
            Ok(()) => {
                if let Err(error) = self.deps.data_root.remember(layout.root()) {
                    tracing::warn!(error = %vec_daemon::chain(&error), "a root is not remembered");
                }
                Ok(layout.run_dir().to_owned())
            }
            Err(error) => {
                let why = vec_daemon::chain(&error).to_string();
                tracing::warn!(%run, why, "resume refused");
                refusal::resume(&layout, &why, self.deps.clock.now());
                Err(LauncherError::Resume(Box::new(error)))
            }
        }
    }

    // `plain` can be had everywhere; `cgroup` must be in force.
    fn check_supervisor(&self, facts: &RunFacts) -> Result<(), ResumeError> {
        let locked = match facts.lock.supervisor {
            Supervisor::Plain => return Ok(()),
            Supervisor::Cgroup => "cgroup",
            Supervisor::Systemd => "systemd",
        };
        let supervision = &self.deps.supervision;
        if supervision.locked() == facts.lock.supervisor {
            return Ok(());
        }
        Err(ResumeError::Supervisor {
            run: facts.lock.run_id.clone(),
            locked,
            here: supervision.words(),
        })
    }

    async fn resume_found(&self, layout: &RunLayout) -> Result<(), ResumeError> {
        wait_for_writer(layout).await?;
        let reopen = is_closed(layout);
        check(layout, reopen).await?;
        let state = run_view::state(layout).await.map_err(ResumeError::View)?;
        if reopen {
            let now = self.deps.clock.now();
            state.resumable(now).map_err(|source| ResumeError::Over {
                run: layout.run().clone(),
                source,
            })?;
        }
        let runtime = self.deps.runtime.run(layout.run());
        let facts = run_facts(
            layout.run_dir(),
            self.deps.data_root.path(),
            runtime.clone(),
        )
        .map_err(ResumeError::Facts)?;
        self.check_supervisor(&facts)?;
        let record = self.record(&facts, state.resumes() + 1)?;
        let mut group = Group::new(self.deps.clone(), facts, record);
        group.adopt().map_err(busy)?;
        if let Err(error) = group.start_missing(reopen).await {
            group.end_all().await;
            remove_runtime(&runtime);
            return Err(ResumeError::Group(error));
        }
        self.supervise(layout.clone(), runtime, group);
        Ok(())
    }

    // The record that an earlier launcher left, or a new one that continues the count of starts.
    fn record(&self, facts: &RunFacts, next_start: u32) -> Result<RunRecord, ResumeError> {
        let uid = self.deps.surroundings.uid;
        for path in [facts.runtime.path().to_owned(), facts.runtime.clients()] {
            private_dir(&path, uid).map_err(ResumeError::Runtime)?;
        }
        let path = facts.runtime.record();
        let mut record = RunRecord::read(&path).unwrap_or_else(|_| {
            let data_root = self.deps.data_root.path().to_owned();
            RunRecord::new(
                facts.layout.run().clone(),
                facts.layout.run_dir().to_owned(),
                data_root,
            )
        });
        record.stage = RunStage::Running;
        let start = record.starts.entry(Service::Controller).or_insert(0);
        *start = (*start).max(next_start);
        record.write(&path).map_err(ResumeError::Record)?;
        Ok(record)
    }
}

fn busy(unadopted: Unadopted) -> ResumeError {
    let Unadopted { run, pid } = unadopted;
    ResumeError::Busy { run, pid }
}

// A writer that has just died may still be on its way out.
async fn wait_for_writer(layout: &RunLayout) -> Result<(), ResumeError> {
    let deadline = tokio::time::Instant::now() + WRITER_TIMEOUT;
    while let Some(pid) = RunLock::holder(layout) {
        if tokio::time::Instant::now() >= deadline {
            return Err(ResumeError::Busy {
                run: layout.run().clone(),
                pid,
            });
        }
        tokio::time::sleep(WRITER_POLL).await;
    }
    Ok(())
}

async fn check(layout: &RunLayout, closed: bool) -> Result<(), ResumeError> {
    let options = VerifyOptions {
        open: !closed,
        anchor: None,
        replay: false,
    };
    let run_dir = layout.run_dir().to_owned();
    let verified =
        off_thread(move || async move { vec_verify::verify(&run_dir, &options).await }).await;
    let report = verified
        .map_err(|error| ResumeError::Task(error.to_string()))?
        .map_err(ResumeError::Verify)?;
    if report.ok() {
        return Ok(());
    }
    Err(ResumeError::Damaged {
        run: layout.run().clone(),
        findings: words(&report),
    })
}

fn words(report: &VerifyReport) -> String {
    let named: Vec<String> = report
        .findings
        .iter()
        .take(FINDINGS_NAMED_MAX)
        .map(ToString::to_string)
        .collect();
    let more = report.findings.len().saturating_sub(FINDINGS_NAMED_MAX);
    let mut text = named.join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

pub(crate) fn remove_runtime(runtime: &RunRuntime) {
    if let Err(error) = std::fs::remove_dir_all(runtime.path()) {
        tracing::warn!(directory = %runtime.path().display(), %error, "remove a run's runtime directory");
    }
}
