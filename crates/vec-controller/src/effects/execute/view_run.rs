//! One program on one view: plan, sandbox, results, and whose fault the end was.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vec_config::Limits as ViewLimits;
use vec_exec::{
    Attribution, Collection, Ending, ExecError, Oom, Scoring, TimeBound, UNSUPPORTED,
    WEIGHT_BYTES_MAX, attribute, disguise, is_unsupported,
};
use vec_sandbox::{
    ExecInputs, Limits as SandboxLimits, OutputCaps, RunControl, SandboxPlan, SandboxRun,
    TimeLimits, TmpfsSize, ViewBind, WorkKind, collect,
};
use vec_scope::{GroupLimits, OomVerdict, oom_verdict};
use vec_types::{CandidateFault, Digest, InfraFault, RelPath, ViewId};

use super::manner::Manner;
use super::record::ViewRecord;
use super::weights::{NotReady, Ready, Trained, Wanted};
use super::{Input, OUT_INSIDE, PREDICTION};
use crate::context::Context;
use crate::effects::{EffectError, Limits};
use crate::python;
use crate::spool::{Spool, blocking};
use crate::supervised::{self, Supervised};

/// Room in the work directory beside the output: scratch of the program, which runs in it.
const WORK_MARGIN_BYTES: u64 = 64 << 20;
/// Files and directories of a work directory.
const WORK_INODES: u64 = 16_384;
/// What the last lines of stderr may add to a fault's detail.
const ERROR_TAIL_CHARS: usize = 1_500;

/// One view's part of an execution.
#[derive(Debug)]
pub(crate) enum Ran {
    /// A prediction.
    Predicted(Digest, Trained),
    /// The program's fault.
    Fault(CandidateFault, String),
    /// Ours.
    Infra(InfraFault, String),
}

/// A view as the program sees it.
struct Shown {
    bind: ViewBind,
    disguise: Option<Vec<&'static str>>,
}

/// What to run on which view.
pub(crate) struct ViewRun<'a> {
    pub(crate) context: &'a Context,
    pub(crate) input: &'a Input,
    pub(crate) manner: &'a Manner,
    pub(crate) view: &'a ViewId,
    pub(crate) results: &'a Path,
}

impl ViewRun<'_> {
    /// Runs it. The record is absent where the program never started.
    pub(crate) async fn run(
        &self,
        spool: &Spool,
        limits: &Limits,
    ) -> Result<(Option<ViewRecord>, Ran), EffectError> {
        let view_limits = self.context.limits(self.view);
        let fill = spool.directory(&format!("fill-{}", self.view))?;
        let wanted = Wanted {
            commit: &self.input.commit,
            tree: &self.input.tree,
            node: self.input.node,
            exec: self.input.exec,
            view: self.view,
            extra_args: &self.manner.extra_args,
            fresh: self.manner.fresh,
            fill: &fill,
        };
        let mut ready = match wanted.ready(self.context, spool, limits).await {
            Ok(ready) => ready,
            Err(NotReady::Cut) => return Ok((None, cut())),
            Err(NotReady::Refused(error)) => return Ok((None, refused(&error))),
            Err(NotReady::Failed(error)) => return Err(error),
        };
        let shown = self.shown(spool).await?;
        let (deadline, bound) = deadline(&view_limits, limits);
        let plan = self.plan(&view_limits, &fill, &ready, &shown.bind, deadline)?;
        let control = RunControl::new();
        let name = supervised::exec_name(self.context, self.input.node, self.input.exec);
        let group = GroupLimits {
            memory_bytes: Some(python::memory_bytes(view_limits.memory_gb)),
            tasks: Some(plan.limits.processes),
        };
        let running = supervised::run(self.context, &name, group, &plan, control.clone(), None);
        tokio::pin!(running);
        let (finished, was_cut) = tokio::select! {
            finished = &mut running => (finished, false),
            () = limits.cancel.cancelled() => {
                // TERM, grace, KILL (EXE-04); the helper bounds the rest.
                control.terminate();
                (running.await, true)
            }
        };
        let done = finished?;
        let run = &done.run;
        let record = ViewRecord {
            weights: ready.mode,
            weights_key: ready.key,
            shown_as: shown.bind.id,
            disguise: shown.disguise,
            accounting: done.accounting.clone(),
            wall_ms: run.report.wall_ms,
            cpu_ms: run.report.user_ms + run.report.sys_ms,
            max_rss_kib: run.report.max_rss_kib,
        };
        let kept = self.keep(run)?;
        let ending = Ending {
            report: Some(&run.report),
            left: done.accounting.left,
            cut: was_cut,
            bound,
            oom: oom(&done),
            output_killed: run.output_killed,
            collection: Collection::Done,
            scoring: Scoring::NotAsked,
        };
        let ran = match attribute(&ending) {
            Attribution::Done => self.collected(&wanted, &mut ready, run, &kept, &view_limits)?,
            ended => self.ended(ended, &done, &view_limits),
        };
        Ok((Some(record), ran))
    }

    async fn shown(&self, spool: &Spool) -> Result<Shown, EffectError> {
        let source = self.context.layout.view(self.view);
        if !self.manner.disguised {
            return Ok(Shown {
                bind: ViewBind {
                    id: self.view.clone(),
                    source,
                },
                disguise: None,
            });
        }
        let parent = spool.directory(&format!("shown-{}", self.view))?;
        let salt = format!("{}-{}", self.context.lock.run_id, self.input.node);
        let view = self.view.clone();
        let done = blocking("disguise a view", move || {
            disguise(&source, &view, &parent, &salt)
        })
        .await?
        .map_err(|error| EffectError::failed("disguise a view", &error))?;
        Ok(Shown {
            bind: ViewBind {
                id: done.view,
                source: done.dir,
            },
            disguise: Some(done.changed),
        })
    }

    fn plan(
        &self,
        view_limits: &ViewLimits,
        fill: &Path,
        ready: &Ready,
        view: &ViewBind,
        deadline: Duration,
    ) -> Result<SandboxPlan, EffectError> {
        let memory_bytes = python::memory_bytes(view_limits.memory_gb);
        let output_bytes = u64::from(view_limits.output_max_mb) << 20;
        // Pages of the work directory are memory of the execution: more than that is of no use. (A
        // control group counts them; sampling does not.)
        let (file_bytes, weight_bytes) = if ready.trains() {
            let weights = WEIGHT_BYTES_MAX.min(memory_bytes);
            (output_bytes.max(weights), weights)
        } else {
            (output_bytes, 0)
        };
        let work = WorkKind::Memory {
            size: TmpfsSize {
                bytes: output_bytes + weight_bytes + WORK_MARGIN_BYTES,
                inodes: WORK_INODES,
            },
            fill: ready.trains().then(|| fill.to_owned()),
        };
        let argv = [
            python::argv0(self.context),
            "/solution/run.py".to_owned(),
            "--data".to_owned(),
            format!("/views/{}", view.id),
            "--out".to_owned(),
            format!("{OUT_INSIDE}/{PREDICTION}"),
            "--seed".to_owned(),
            self.input.exec.program_seed().to_string(),
        ];
        let inputs = ExecInputs {
            solution: ready.solution.clone(),
            views: vec![view.clone()],
            out: work,
            python: python::binds(self.context),
            argv: argv
                .into_iter()
                .chain(self.manner.extra_args.iter().cloned())
                .collect(),
            env: self.context.lock.eval_spec.environment.variables.clone(),
            limits: SandboxLimits::of_memory(memory_bytes, file_bytes, view_limits.threads),
            time: TimeLimits {
                deadline_ms: u64::try_from(deadline.as_millis())
                    .unwrap_or(u64::MAX)
                    .max(1),
                grace_ms: u64::try_from(self.context.term_grace.as_millis()).unwrap_or(u64::MAX),
            },
            output: OutputCaps::standard(),
        };
        python::resolved(SandboxPlan::exec(&inputs, &self.context.host), self.context)
    }

    fn keep(&self, run: &SandboxRun) -> Result<PathBuf, EffectError> {
        let directory = self.results.join(self.view.as_str());
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, bytes).map_err(|error| EffectError::io("write", &path, error))
        };
        std::fs::create_dir_all(&directory)
            .map_err(|error| EffectError::io("make", &directory, error))?;
        write("stdout", &run.stdout.bytes)?;
        write("stderr", &run.stderr.bytes)?;
        let report = vec_types::pretty_json(&run.report)
            .map_err(|error| EffectError::failed("write the sandbox's report", &error))?;
        write("report.json", &report)?;
        Ok(directory)
    }

    /// The prediction, and the weights of a first run; both or neither.
    fn collected(
        &self,
        wanted: &Wanted<'_>,
        ready: &mut Ready,
        run: &SandboxRun,
        kept: &Path,
        view_limits: &ViewLimits,
    ) -> Result<Ran, EffectError> {
        let name: RelPath = PREDICTION
            .parse()
            .map_err(|error| EffectError::failed("name the prediction", &error))?;
        let Some(work) = run.work.as_ref().map(AsFd::as_fd) else {
            let detail = "the sandbox left no work directory".to_owned();
            return Ok(Ran::Infra(InfraFault::Interrupted, detail));
        };
        let dest = kept.join(PREDICTION);
        let cap = u64::from(view_limits.output_max_mb) << 20;
        match collect::copy_file(work, &name, &dest, cap) {
            Ok(_) => {}
            Err(collect::CollectError::Io { .. }) => {
                let detail = format!("cannot read {PREDICTION} of view {}", self.view);
                return Ok(Ran::Infra(InfraFault::Interrupted, detail));
            }
            Err(error) => {
                let detail = format!(
                    "{PREDICTION} on view {}: {}",
                    self.view,
                    vec_daemon::chain(&error)
                );
                return Ok(Ran::Fault(CandidateFault::InvalidFormat, detail));
            }
        }
        let (_, digest) = vec_store::hash_file(&dest)
            .map_err(|error| EffectError::failed("hash the prediction", &error))?;
        // Beside the results, which all become evidence; the weights go elsewhere.
        let weights = self
            .results
            .with_file_name(format!("weights-{}", self.view));
        std::fs::create_dir_all(&weights)
            .map_err(|error| EffectError::io("make", &weights, error))?;
        Ok(match ready.collect(self.context, wanted, work, &weights) {
            Ok(trained) => Ran::Predicted(digest, trained),
            Err(error) => refused(&error),
        })
    }

    fn ended(&self, ended: Attribution, done: &Supervised, limits: &ViewLimits) -> Ran {
        let run = &done.run;
        let report = &run.report;
        match ended {
            Attribution::Candidate(fault) => {
                let tail = tail(&String::from_utf8_lossy(&run.stderr.bytes));
                let args = &self.manner.extra_args;
                let detail = match fault {
                    CandidateFault::Timeout => format!("ran longer than {} s", limits.time_limit_s),
                    CandidateFault::Oom => format!("memory limit {} GB; {tail}", limits.memory_gb),
                    _ if run.output_killed => "printed more than the output limit".to_owned(),
                    // The control says nothing then (ABL-04).
                    _ if !args.is_empty() && is_unsupported(report.exit, &run.stderr.bytes) => {
                        format!("{UNSUPPORTED}: {}", args.join(" "))
                    }
                    _ => format!("{:?}; {tail}", report.exit),
                };
                Ran::Fault(fault, detail)
            }
            Attribution::Infra(InfraFault::BudgetCut) => cut(),
            Attribution::Infra(fault) => Ran::Infra(fault, infra_detail(done)),
            Attribution::Done => Ran::Infra(InfraFault::Interrupted, "nothing collected".into()),
        }
    }
}

fn oom(done: &Supervised) -> Oom {
    match oom_verdict(&done.accounting, done.run.report.killed_by_other()) {
        OomVerdict::None => Oom::None,
        OomVerdict::Candidate => Oom::Candidate,
        OomVerdict::Infra => Oom::Infra,
    }
}

fn infra_detail(done: &Supervised) -> String {
    let run = &done.run;
    if let Some(error) = &run.report.setup_error {
        return format!("sandbox set-up: {:?}: {error}", error.step);
    }
    if !done.is_gone() {
        return "processes of the sandbox could not be ended".to_owned();
    }
    format!("the execution ended by {:?}", run.report.ended_by)
}

fn cut() -> Ran {
    Ran::Infra(
        InfraFault::BudgetCut,
        "cut at the phase's end or given up by the run".to_owned(),
    )
}

/// What the rules of an execution refuse, by whose fault it is (PVW-06, EXE-11).
fn refused(error: &ExecError) -> Ran {
    let detail = vec_daemon::chain(error).to_string();
    if error.is_candidates() {
        Ran::Fault(CandidateFault::Crash, detail)
    } else if error.is_budget_cut() {
        Ran::Infra(InfraFault::BudgetCut, detail)
    } else {
        Ran::Infra(InfraFault::Interrupted, detail)
    }
}

// The program's own limit, or the end of the phase if that comes first (EXE-03).
fn deadline(view: &ViewLimits, limits: &Limits) -> (Duration, TimeBound) {
    let own = Duration::from_secs(u64::from(view.time_limit_s));
    match limits.left() {
        Some(left) if left < own => (left, TimeBound::Phase),
        _ => (own, TimeBound::Program),
    }
}

fn tail(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(ERROR_TAIL_CHARS);
    text.chars()
        .skip(skip)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio_util::sync::CancellationToken;
    use vec_types::UnixMs;

    use super::*;

    #[test]
    fn the_phases_end_bounds_a_program_without_being_its_limit() {
        let view = ViewLimits {
            memory_gb: 1.0,
            time_limit_s: 10,
            threads: 1,
            output_max_mb: 1,
        };
        let limits = |deadline: Option<i64>| Limits {
            cancel: CancellationToken::new(),
            deadline: deadline.map(UnixMs),
            now: UnixMs(0),
            started: Instant::now(),
        };
        let own = Duration::from_secs(10);
        assert_eq!(deadline(&view, &limits(None)), (own, TimeBound::Program));
        let far = limits(Some(3_600_000));
        assert_eq!(deadline(&view, &far), (own, TimeBound::Program));
        let (left, bound) = deadline(&view, &limits(Some(5_000)));
        assert!(left <= Duration::from_secs(5) && bound == TimeBound::Phase);
        let (left, bound) = deadline(&view, &limits(Some(-1)));
        assert_eq!((left, bound), (Duration::ZERO, TimeBound::Phase));
    }

    #[test]
    fn what_the_rules_refuse_is_told_apart() {
        let damaged = ExecError::Damaged {
            path: PathBuf::from("artifacts/x"),
            what: "is missing".to_owned(),
        };
        let late = ExecError::LockTimeout {
            key: Digest::of(b"k"),
        };
        let declared = ExecError::Artifacts("is no list".to_owned());
        assert!(matches!(
            refused(&damaged),
            Ran::Infra(InfraFault::Interrupted, _)
        ));
        assert!(matches!(
            refused(&late),
            Ran::Infra(InfraFault::BudgetCut, _)
        ));
        assert!(matches!(
            refused(&declared),
            Ran::Fault(CandidateFault::Crash, _)
        ));
    }
}
