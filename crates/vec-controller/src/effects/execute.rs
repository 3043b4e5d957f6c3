//! Execute: the committed program, once on each of its views, in the sandbox without network
//! (EXE-01). The result is what the sandbox's own clock and exit record say, never what the
//! program prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vec_config::Limits as ViewLimits;
use vec_sandbox::{
    ExecInputs, Limits as SandboxLimits, OutputCaps, RunControl, SandboxPlan, SandboxRun,
    TimeLimits, ViewBind, collect,
};
use vec_search::{ExecReport, ExecResult, Outcome, RunState};
use vec_store::{NewFile, TreeLimits, rel};
use vec_types::{CandidateFault, Digest, ExecName, InfraFault, NodeId, RelPath, TreeId, ViewId};

use crate::context::Context;
use crate::effects::{Done, EffectError, Limits};
use crate::python;
use crate::spool::Spool;

/// The prediction's file name in the output directory.
pub(crate) const PREDICTION: &str = "pred.csv";
/// Most files that one execution leaves in the run directory.
const FILES_MAX: usize = 64;
/// What the last lines of stderr may add to a fault's detail.
const ERROR_TAIL_CHARS: usize = 1_500;

/// What to run.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    exec: ExecName,
    commit: TreeId,
    views: Vec<ViewId>,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
    exec: ExecName,
) -> Result<Input, EffectError> {
    let commit = state
        .node(node)
        .and_then(|view| view.commit.map(|info| info.commit.clone()));
    let commit = commit.ok_or_else(|| EffectError::Failed {
        what: "execute",
        cause: format!("node {node} has no commit"),
    })?;
    let views = match exec {
        ExecName::Final => vec![context.board().final_view.clone()],
        ExecName::Seed(_) | ExecName::Again { .. } | ExecName::Fresh(_) => {
            context.objective_views()
        }
    };
    Ok(Input {
        node,
        exec,
        commit,
        views,
    })
}

/// Where an execution's prediction on a view lies in the run directory.
pub(crate) fn prediction_file(
    context: &Context,
    node: NodeId,
    exec: ExecName,
    view: &ViewId,
) -> Result<PathBuf, EffectError> {
    let directory = rel::join(&rel::exec_dir(node, exec), view.as_str())
        .and_then(|directory| rel::join(&directory, PREDICTION))
        .map_err(|error| EffectError::failed("name a prediction", &error))?;
    Ok(context.layout.at(&directory))
}

/// One view's part of an execution.
#[derive(Debug)]
enum Ran {
    Predicted(Digest),
    Fault(CandidateFault, String),
    Infra(InfraFault, String),
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let began = Instant::now();
    let spool = Spool::make(context, &format!("exec-{}-{}", input.node, input.exec)).await?;
    let solution = spool.checkout(context, &input.commit, "solution").await?;
    let results = spool.directory("results")?;
    let mut wall_ms = BTreeMap::new();
    let mut digests = BTreeMap::new();
    let mut program = Duration::ZERO;
    let mut max_rss_kib = None;
    let mut fault = None;
    for view in &input.views {
        let at = ViewRun {
            context,
            input: &input,
            view,
            solution: &solution,
            results: &results,
        };
        let Some((run, ran)) = at.run(&spool, limits).await? else {
            return Ok(limits.cut());
        };
        program += Duration::from_millis(run.report.wall_ms);
        wall_ms.insert(
            view.clone(),
            i64::try_from(run.report.wall_ms).unwrap_or(i64::MAX),
        );
        max_rss_kib = max_rss_kib.max(Some(run.report.max_rss_kib));
        match ran {
            Ran::Predicted(digest) => {
                digests.insert(view.clone(), digest);
            }
            Ran::Fault(kind, detail) => {
                fault = Some((kind, detail));
                break;
            }
            Ran::Infra(kind, detail) => return Ok(Done::interrupted(kind, &detail)),
        }
    }
    let result = match fault {
        None => ExecResult::Done {
            digests: digests.into(),
        },
        Some((fault, detail)) => ExecResult::Fault { fault, detail },
    };
    let ours = began.elapsed().saturating_sub(program);
    let harness_ms = i64::try_from(ours.as_millis()).unwrap_or(i64::MAX);
    let report = ExecReport {
        result,
        wall_ms: wall_ms.into(),
        max_rss_kib,
        harness_ms,
    };
    let files = files(context, &input, &results, &report)?;
    Ok(Done::new(Outcome::Executed { report })
        .with_files(files)
        .with_scratch(spool)
        .with_span("execute.program", program))
}

struct ViewRun<'a> {
    context: &'a Context,
    input: &'a Input,
    view: &'a ViewId,
    solution: &'a Path,
    results: &'a Path,
}

impl ViewRun<'_> {
    // `None`: cut by the phase's end or given up.
    async fn run(
        &self,
        spool: &Spool,
        limits: &Limits,
    ) -> Result<Option<(SandboxRun, Ran)>, EffectError> {
        let view_limits = self.context.limits(self.view);
        let out = spool.directory(&format!("out-{}", self.view))?;
        let plan = self.plan(&view_limits, &out, limits)?;
        let control = RunControl::new();
        let running = self.context.runner.run(&plan, control.clone());
        tokio::pin!(running);
        let (finished, cut) = tokio::select! {
            finished = &mut running => (finished, false),
            () = limits.cancel.cancelled() => {
                // TERM, grace, KILL (EXE-04); the helper bounds the rest.
                control.terminate();
                (running.await, true)
            }
        };
        let run = finished.map_err(|error| EffectError::failed("run the sandbox", &error))?;
        if cut {
            return Ok(None);
        }
        let kept = self.keep(&run)?;
        let ran = self.judge(&run, &view_limits, &out, &kept)?;
        Ok(Some((run, ran)))
    }

    fn plan(
        &self,
        view_limits: &ViewLimits,
        out: &Path,
        limits: &Limits,
    ) -> Result<SandboxPlan, EffectError> {
        let wanted = Duration::from_secs(u64::from(view_limits.time_limit_s));
        let deadline_ms = u64::try_from(limits.at_most(wanted).as_millis()).unwrap_or(u64::MAX);
        let output_bytes = u64::from(view_limits.output_max_mb) << 20;
        let argv = [
            python::argv0(self.context),
            "/solution/run.py".to_owned(),
            "--data".to_owned(),
            format!("/views/{}", self.view),
            "--out".to_owned(),
            format!("/out/{PREDICTION}"),
            "--seed".to_owned(),
            self.input.exec.program_seed().to_string(),
        ];
        let inputs = ExecInputs {
            solution: self.solution.to_owned(),
            views: vec![ViewBind {
                id: self.view.clone(),
                source: self.context.layout.view(self.view),
            }],
            out: vec_sandbox::WorkKind::Host {
                source: out.to_owned(),
            },
            python: python::binds(self.context),
            argv: argv.to_vec(),
            env: self.context.lock.eval_spec.environment.variables.clone(),
            limits: SandboxLimits::of_memory(
                python::memory_bytes(view_limits.memory_gb),
                output_bytes,
                view_limits.threads,
            ),
            time: TimeLimits {
                deadline_ms,
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

    fn judge(
        &self,
        run: &SandboxRun,
        view_limits: &ViewLimits,
        out: &Path,
        kept: &Path,
    ) -> Result<Ran, EffectError> {
        let report = &run.report;
        if let Some(error) = &report.setup_error {
            let detail = format!(
                "sandbox set-up: {:?}: {}. {}",
                error.step, error.message, error.advice
            );
            return Ok(Ran::Infra(InfraFault::Interrupted, detail));
        }
        if !report.tree_gone {
            let detail = "processes of the sandbox could not be ended".to_owned();
            return Ok(Ran::Infra(InfraFault::Interrupted, detail));
        }
        if let Some((fault, detail)) = fault_of(run, view_limits) {
            return Ok(Ran::Fault(fault, detail));
        }
        let name: RelPath = PREDICTION
            .parse()
            .map_err(|error| EffectError::failed("name the prediction", &error))?;
        let dest = kept.join(PREDICTION);
        let cap = u64::from(view_limits.output_max_mb) << 20;
        match collect::copy_file(out, &name, &dest, cap) {
            Ok(_) => {
                let (_, digest) = vec_store::hash_file(&dest)
                    .map_err(|error| EffectError::failed("hash the prediction", &error))?;
                Ok(Ran::Predicted(digest))
            }
            Err(collect::CollectError::Io { .. }) => {
                let detail = format!("cannot read {PREDICTION} of view {}", self.view);
                Ok(Ran::Infra(InfraFault::Interrupted, detail))
            }
            Err(error) => {
                let detail = format!(
                    "{PREDICTION} on view {}: {}",
                    self.view,
                    vec_daemon::chain(&error)
                );
                Ok(Ran::Fault(CandidateFault::InvalidFormat, detail))
            }
        }
    }
}

/// The candidate's fault, if its run shows one (EXE-05).
pub(crate) fn fault_of(run: &SandboxRun, limits: &ViewLimits) -> Option<(CandidateFault, String)> {
    let report = &run.report;
    let tail = tail(&String::from_utf8_lossy(&run.stderr.bytes));
    if run.output_killed {
        return Some((
            CandidateFault::Crash,
            "printed more than the output limit".to_owned(),
        ));
    }
    if report.timed_out {
        let detail = format!("ran longer than {} s", limits.time_limit_s);
        return Some((CandidateFault::Timeout, detail));
    }
    if report.succeeded() {
        return None;
    }
    // What a program prints decides nothing: a MemoryError at the address-space limit is a crash.
    if report.killed_by_other() {
        return Some((
            CandidateFault::Oom,
            format!("memory limit {} GB; {tail}", limits.memory_gb),
        ));
    }
    Some((CandidateFault::Crash, format!("{:?}; {tail}", report.exit)))
}

fn tail(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(ERROR_TAIL_CHARS);
    text.chars()
        .skip(skip)
        .collect::<String>()
        .trim()
        .to_owned()
}

fn files(
    context: &Context,
    input: &Input,
    results: &Path,
    report: &ExecReport,
) -> Result<Vec<NewFile>, EffectError> {
    let bytes_max = input
        .views
        .iter()
        .map(|view| u64::from(context.limits(view).output_max_mb) << 20)
        .sum::<u64>();
    let tree_limits = TreeLimits {
        files_max: FILES_MAX,
        bytes_max: bytes_max + (64 << 20),
    };
    let directory = rel::exec_dir(input.node, input.exec);
    let mut files = NewFile::tree(&directory, results, tree_limits)
        .map_err(|error| EffectError::failed("collect the execution's files", &error))?;
    let path = rel::join(&directory, "report.json")
        .map_err(|error| EffectError::failed("name the report", &error))?;
    let bytes = vec_types::pretty_json(report)
        .map_err(|error| EffectError::failed("write the execution's report", &error))?;
    files.push(NewFile::create(path, bytes));
    Ok(files)
}
