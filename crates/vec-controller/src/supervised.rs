//! A sandbox inside a group of its own: the whole tree is limited, accounted and ended as one
//! (EXE-02, EXE-06, EXE-09).

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use vec_sandbox::{Line, RunControl, RunOptions, SandboxPlan, SandboxRun, WorkKind};
use vec_scope::{Accounting, GroupLimits, Supervisor};
use vec_types::{ExecName, NodeId};

use crate::context::Context;
use crate::effects::EffectError;

/// What a tree of processes left.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// The sandbox's own account and output.
    pub(crate) run: SandboxRun,
    /// The group's account of the whole tree.
    pub(crate) accounting: Accounting,
}

impl Supervised {
    /// Is everything of it dead? If not, nothing of it is registered or sealed.
    pub(crate) const fn is_gone(&self) -> bool {
        self.run.report.tree_gone && self.accounting.left == 0
    }
}

/// Name of an execution's group.
pub(crate) fn exec_name(context: &Context, node: NodeId, exec: ExecName) -> String {
    format!("vec-exec-{}-{node}-{exec}", context.lock.run_id.run8())
}

/// Name of a session's group.
pub(crate) fn session_name(context: &Context, node: NodeId) -> String {
    format!("vec-eng-{}-{node}", context.lock.run_id.run8())
}

/// Where the groups that live are noted, in the run's runtime directory.
pub(crate) fn records(run_runtime_dir: &Path) -> PathBuf {
    run_runtime_dir.join("groups")
}

/// Ends what a killed controller of this run left (EXE-09). The caller holds the run's lock.
pub(crate) async fn reap(context: &Context) {
    let run8 = context.lock.run_id.run8();
    let prefixes = ["exec", "eng"].map(|what| format!("vec-{what}-{run8}-"));
    match context.supervisor.reap(&prefixes, &context.records).await {
        Ok(orphans) => {
            for orphan in orphans {
                tracing::warn!(
                    group = orphan.name,
                    killed = orphan.killed,
                    left = orphan.left,
                    "an orphan of an earlier controller was ended"
                );
            }
        }
        Err(error) => tracing::error!(%error, "orphans cannot be looked for"),
    }
}

/// The limits of the whole tree. A control group counts files in memory: the work directory, which
/// has a bound of its own, comes on top of the program's memory.
fn limits_of(supervisor: &Supervisor, limits: GroupLimits, plan: &SandboxPlan) -> GroupLimits {
    let files = match (supervisor, &plan.work.kind) {
        (Supervisor::Cgroup(_), WorkKind::Memory { size, .. }) => size.bytes,
        _ => 0,
    };
    let memory_bytes = limits.memory_bytes;
    GroupLimits {
        memory_bytes: memory_bytes.map(|bytes| bytes.saturating_add(files)),
        // The sandbox's init is one of them.
        tasks: limits.tasks.map(|tasks| tasks.saturating_add(1)),
    }
}

/// Runs a plan in the group `name`, to the end of its whole tree.
pub(crate) async fn run(
    context: &Context,
    name: &str,
    limits: GroupLimits,
    plan: &SandboxPlan,
    control: RunControl,
    lines: Option<mpsc::Sender<Line>>,
) -> Result<Supervised, EffectError> {
    let supervisor = &context.supervisor;
    let limits = limits_of(supervisor, limits, plan);
    let group = supervisor
        .group(name, limits, &context.records)
        .await
        .map_err(|error| EffectError::failed("make a group", &error))?;
    let entries = group
        .entries()
        .map_err(|error| EffectError::failed("enter a group", &error))?;
    let (tell, mut started) = oneshot::channel();
    let options = RunOptions {
        lines,
        groups: entries,
        started: Some(tell),
    };
    let running = context.runner.run_with(plan, control, options);
    tokio::pin!(running);
    let mut is_waiting = true;
    let finished = loop {
        tokio::select! {
            biased;
            begun = &mut started, if is_waiting => {
                is_waiting = false;
                if let Ok(begun) = begun {
                    group.watch(begun.init);
                }
            }
            finished = &mut running => break finished,
        }
    };
    let accounting = group.finish().await;
    let run = finished.map_err(|error| EffectError::failed("run the sandbox", &error))?;
    let done = Supervised { run, accounting };
    if !done.is_gone() {
        tracing::error!(
            group = name,
            left = done.accounting.left,
            "processes could not be ended: nothing of this execution is used (EXE-09)"
        );
    }
    Ok(done)
}
