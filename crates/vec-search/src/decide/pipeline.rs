//! The pipeline of running nodes: start what the stage calls for, settle what has ended, cut what
//! is out of time (BUD-03, BUD-04).

use vec_types::{InfraFault, NodeStatus, UnixMs};

use super::{checks, start};
use crate::identity::has_same_output;
use crate::inputs::settlement_digest;
use crate::node::{Ending, GenFault, Node, Stage};
use crate::state::Run;
use crate::{Event, MethodState};

/// First line of a METHOD.md that claims there is nothing to change (MTH-07).
const NO_CHANGE_PREFIX: &str = "NO_CHANGE:";

pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    run.running
        .iter()
        .filter_map(|id| run.node(*id))
        .map(|node| step(run, node, at))
        .find(|batch| !batch.is_empty())
        .unwrap_or_default()
}

fn step(run: &Run, node: &Node, at: UnixMs) -> Vec<Event> {
    if let Stage::Ending { ending } = &node.stage {
        return settle(run, node, ending);
    }
    if at >= run.times.settle_deadline {
        return settle_now(run, node, "not settled by the settlement deadline", true);
    }
    if let Some(batch) = checks::before_analysis(run, node, at) {
        return batch;
    }
    let Some(effect) = node.due_effect().filter(|effect| !run.is_in_work(effect)) else {
        return Vec::new();
    };
    match too_late(run, node, at) {
        Some(why) => settle_now(run, node, why, true),
        None => start(effect),
    }
}

/// May the stage still begin?
fn too_late(run: &Run, node: &Node, at: UnixMs) -> Option<&'static str> {
    match node.stage {
        Stage::Plan | Stage::Comply { .. } | Stage::Engineer { .. } if at >= run.times.handoff => {
            Some("the hand-off point came before its program was written")
        }
        Stage::Import | Stage::Execute { .. } if at >= run.times.cutoff => {
            Some("the end of search came before its execution")
        }
        _ => None,
    }
}

/// Ends a node wherever it stands: with its own ending if it has one, else as interrupted.
pub(super) fn settle_now(run: &Run, node: &Node, why: &str, budget_cut: bool) -> Vec<Event> {
    if let Some(ending) = node.stage.ending() {
        let cut = checks::is_open(run, node).then(|| checks::cut(node));
        return cut.into_iter().chain(settle(run, node, ending)).collect();
    }
    if !node.is_own() {
        return rescore_cut(node, why);
    }
    vec![Event::NodeSettled {
        node: node.id,
        status: NodeStatus::Interrupted,
        no_progress: false,
        same_as_parent: false,
        budget_cut,
        epoch: settled_epoch(run, node),
        detail: format!("{why} (stage: {})", node.stage.word()),
        inputs_digest: settlement_digest(run, node),
    }]
}

/// CON-03: an import that could not be scored again waits for the next run.
fn rescore_cut(node: &Node, why: &str) -> Vec<Event> {
    vec![Event::RescoreCut {
        node: node.id,
        why: why.to_owned(),
    }]
}

/// EPO-02: the epoch in which it was executed, or now if nothing was.
fn settled_epoch(run: &Run, node: &Node) -> u32 {
    if node.is_executed {
        node.epoch
    } else {
        run.epoch
    }
}

fn settle(run: &Run, node: &Node, ending: &Ending) -> Vec<Event> {
    if let (false, Ending::Shelved { ended, .. }) = (node.is_own(), ending) {
        return rescore_cut(node, &ended.detail);
    }
    let same_as_parent = matches!(
        ending,
        Ending::NoProgram {
            fault: GenFault::SameAsParent,
            ..
        }
    );
    let no_progress = same_as_parent || has_parents_output(run, node, ending);
    let settled = Event::NodeSettled {
        node: node.id,
        status: ending.status(),
        no_progress,
        same_as_parent,
        budget_cut: matches!(
            ending,
            Ending::Shelved {
                fault: InfraFault::BudgetCut,
                ..
            }
        ),
        epoch: settled_epoch(run, node),
        detail: ending.detail().to_owned(),
        inputs_digest: settlement_digest(run, node),
    };
    let mut batch = vec![settled];
    batch.extend(refuted_direction(node, ending, no_progress));
    batch
}

/// SEL-11: the prediction equals the parent's on every objective view.
fn has_parents_output(run: &Run, node: &Node, ending: &Ending) -> bool {
    let parent = node.parent.and_then(|parent| run.node(parent));
    let Some(parent) = parent.filter(|parent| parent.is_scored()) else {
        return false;
    };
    matches!(ending, Ending::Scored(_)) && has_same_output(run, node, parent)
}

/// REF-01: output or program equal to the parent's, or METHOD says so.
fn refuted_direction(node: &Node, ending: &Ending, no_progress: bool) -> Option<Event> {
    let (parent, plan) = (node.parent?, node.plan()?);
    let first_line = node.session().and_then(|session| match &session.method {
        MethodState::Written { first_line } => Some(first_line.as_str()),
        MethodState::Placeholder | MethodState::Missing => None,
    });
    let says_so = first_line.is_some_and(|line| line.starts_with(NO_CHANGE_PREFIX));
    if ending.status().is_shelved() || !(no_progress || says_so) {
        return None;
    }
    let text = match first_line {
        Some(line) => format!("{}: {line}", plan.name),
        None => plan.name.to_owned(),
    };
    Some(Event::RefutedDirection {
        node: node.id,
        parent,
        text,
    })
}
