//! Execute: the committed program, once on each of its views, in the sandbox without network
//! (EXE-01). The result is what the sandbox's own clock and exit record say, never what the
//! program prints.
//!
//! `manner` says what the execution's name decides, `view_run` does one view, `weights` sees to what
//! is trained per view, `record` is what is kept about it.

mod manner;
mod record;
mod repro;
mod view_run;
mod weights;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vec_search::{ExecReport, ExecResult, Outcome, RunState};
use vec_store::{NewFile, TreeLimits, rel};
use vec_types::{ExecName, NodeId, TreeId, ViewId};

use crate::context::Context;
use crate::effects::{Done, EffectError, Limits};
use crate::spool::Spool;
use manner::Manner;
use record::{ExecutionRecord, ViewRecord};
use view_run::{Ran, ViewRun};
use weights::Trained;

/// The prediction's file name in the output directory.
pub(crate) const PREDICTION: &str = "pred.csv";
/// The output directory inside: writable, and the working directory.
const OUT_INSIDE: &str = "/out";
/// Most files that one execution leaves in the run directory.
const FILES_MAX: usize = 64;

/// What to run.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    exec: ExecName,
    commit: TreeId,
    tree: TreeId,
    views: Vec<ViewId>,
    epoch: u32,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
    exec: ExecName,
) -> Result<Input, EffectError> {
    let commit = state.node(node).and_then(|view| {
        view.commit
            .map(|info| (info.commit.clone(), info.tree.clone()))
    });
    let (commit, tree) = commit.ok_or_else(|| EffectError::Failed {
        what: "execute",
        cause: format!("node {node} has no commit"),
    })?;
    let views = match exec {
        ExecName::Final => vec![context.board().final_view.clone()],
        ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. } => state
            .policy()
            .map(|policy| policy.view_check.views.iter().cloned().collect())
            .unwrap_or_default(),
        _ => context.objective_views(),
    };
    Ok(Input {
        node,
        exec,
        commit,
        tree,
        views,
        epoch: state.epoch(),
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

/// What the views gave so far.
#[derive(Debug, Default)]
struct Account {
    records: BTreeMap<ViewId, ViewRecord>,
    digests: BTreeMap<ViewId, vec_types::Digest>,
    trained: Trained,
    fault: Option<(vec_types::CandidateFault, String)>,
    program: Duration,
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let began = Instant::now();
    let spool = Spool::make(context, &format!("exec-{}-{}", input.node, input.exec)).await?;
    let results = spool.directory("results")?;
    let manner = Manner::of(context, input.node, input.exec);
    let mut account = Account::default();
    for view in &input.views {
        let at = ViewRun {
            context,
            input: &input,
            manner: &manner,
            view,
            results: &results,
        };
        let (record, ran) = at.run(&spool, limits).await?;
        if let Some(record) = record {
            account.program += Duration::from_millis(record.wall_ms);
            account.records.insert(view.clone(), record);
        }
        match ran {
            Ran::Predicted(digest, trained) => {
                account.digests.insert(view.clone(), digest);
                account.trained.files.extend(trained.files);
                account.trained.locks.extend(trained.locks);
            }
            Ran::Fault(kind, detail) => {
                account.fault = Some((kind, detail));
                break;
            }
            Ran::Infra(kind, detail) => return Ok(Done::interrupted(kind, &detail)),
        }
    }
    let harness = began.elapsed().saturating_sub(account.program);
    let report = report(&mut account, harness);
    let mut files = files(context, &input, &results)?;
    files.push(report_file(&input, &manner, &report, &account.records)?);
    // Weights of a program that failed on another view are of no use to anybody.
    let Trained {
        files: weights,
        locks,
    } = std::mem::take(&mut account.trained);
    if matches!(report.result, ExecResult::Done { .. }) {
        files.extend(weights);
        if input.exec == ExecName::Repro {
            files.push(repro::file(context, &input, &results)?);
        }
    }
    Ok(Done::new(Outcome::Executed { report })
        .with_files(files)
        .with_locks(locks)
        .with_scratch(spool)
        .with_span("execute.program", account.program))
}

fn report(account: &mut Account, harness: Duration) -> ExecReport {
    let result = match account.fault.take() {
        None => ExecResult::Done {
            digests: std::mem::take(&mut account.digests).into(),
        },
        Some((fault, detail)) => ExecResult::Fault { fault, detail },
    };
    let wall_ms: BTreeMap<ViewId, i64> = account
        .records
        .iter()
        .map(|(view, record)| {
            let wall = i64::try_from(record.wall_ms).unwrap_or(i64::MAX);
            (view.clone(), wall)
        })
        .collect();
    let peaks = account.records.values().map(|record| record.max_rss_kib);
    ExecReport {
        result,
        wall_ms: wall_ms.into(),
        max_rss_kib: peaks.max(),
        harness_ms: i64::try_from(harness.as_millis()).unwrap_or(i64::MAX),
    }
}

fn files(context: &Context, input: &Input, results: &Path) -> Result<Vec<NewFile>, EffectError> {
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
    NewFile::tree(&directory, results, tree_limits)
        .map_err(|error| EffectError::failed("collect the execution's files", &error))
}

fn report_file(
    input: &Input,
    manner: &Manner,
    report: &ExecReport,
    views: &BTreeMap<ViewId, ViewRecord>,
) -> Result<NewFile, EffectError> {
    let path = rel::join(&rel::exec_dir(input.node, input.exec), "report.json")
        .map_err(|error| EffectError::failed("name the report", &error))?;
    let record = ExecutionRecord {
        report,
        extra_args: &manner.extra_args,
        data_epoch: input.epoch,
        views,
    };
    let bytes = vec_types::pretty_json(&record)
        .map_err(|error| EffectError::failed("write the execution's report", &error))?;
    Ok(NewFile::create(path, bytes))
}
