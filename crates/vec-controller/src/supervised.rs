//! A sandbox inside a group of its own: the whole tree is limited, accounted and ended as one
//! (EXE-02, EXE-06, EXE-09).

use tokio::sync::{mpsc, oneshot};
use vec_sandbox::{Line, RunControl, RunOptions, SandboxPlan, SandboxRun};
use vec_scope::{Accounting, GroupLimits};
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

/// Runs a plan in the group `name`, to the end of its whole tree.
pub(crate) async fn run(
    context: &Context,
    name: &str,
    limits: GroupLimits,
    plan: &SandboxPlan,
    control: RunControl,
    lines: Option<mpsc::Sender<Line>>,
) -> Result<Supervised, EffectError> {
    let group = context
        .supervisor
        .group(name, limits)
        .map_err(|error| EffectError::failed("make a group", &error))?;
    let (tell, mut started) = oneshot::channel();
    let options = RunOptions {
        lines,
        started: Some(tell),
        ..RunOptions::default()
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
