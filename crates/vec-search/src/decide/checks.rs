//! Control runs and view checks: begin them when something asks for one, move them on, conclude
//! (ABL-01, VCK-01..06). One view check at a time is moved by promotion and final selection; sampled
//! ones belong to their node's pipeline.

use vec_types::{ExecName, Phase, UnixMs};

use super::start;
use crate::checks::{self, Course};
use crate::inputs::checks_digest;
use crate::node::Node;
use crate::retry::Retry;
use crate::state::Run;
use crate::{Effect, Event, MechanismActive};

/// Moves every begun view check on.
pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    run.checking
        .iter()
        .filter_map(|id| run.node(*id))
        .map(|node| move_on(run, node, at))
        .find(|batch| !batch.is_empty())
        .unwrap_or_default()
}

fn move_on(run: &Run, node: &Node, at: UnixMs) -> Vec<Event> {
    match checks::course(run, node) {
        Course::Needs(effect) if run.is_in_work(&effect) => Vec::new(),
        // Final selection has an order of its own, the baseline's answer first (FIN-03).
        Course::Needs(_) if run.phase == Phase::Final => Vec::new(),
        Course::Needs(_) if at >= run.deadlines().guard_deadline => Vec::new(),
        Course::Needs(effect) => start(effect),
        Course::Over(verdict, why) => vec![Event::ViewCheckResult {
            node: node.id,
            attempt: node.view.attempts,
            verdict,
            trigger: node.view.trigger,
            why,
            inputs_digest: checks_digest(node),
        }],
    }
}

/// Begins a node's view check or goes on with it, unless one that promotion or final selection asked
/// for is under way or a fault of ours makes it wait.
pub(super) fn begin(run: &Run, node: &Node, at: UnixMs) -> Vec<Event> {
    let begun = run.checking.iter().filter_map(|id| run.node(*id));
    let mut settled = begun.filter(|other| other.settled().is_some());
    let is_busy = |other: &Node| match checks::course(run, other) {
        Course::Needs(effect) => run.is_in_work(&effect),
        Course::Over(..) => false,
    };
    if settled.any(is_busy) || run.is_paused(node.id, Retry::Run, at) {
        return Vec::new();
    }
    match checks::course(run, node) {
        Course::Needs(effect) if !run.is_in_work(&effect) => start(effect),
        Course::Needs(_) | Course::Over(..) => Vec::new(),
    }
}

/// What a scored node still needs before its analysis; `Some` of nothing: it waits.
pub(super) fn before_analysis(run: &Run, node: &Node, at: UnixMs) -> Option<Vec<Event>> {
    control(run, node, at).or_else(|| sampled(run, node, at))
}

/// ABL-01, O-ABL-2.
fn control(run: &Run, node: &Node, at: UnixMs) -> Option<Vec<Event>> {
    if !is_open(run, node) {
        return None;
    }
    let exec = ExecName::Ablate;
    let next = match node.reruns.get(&exec) {
        None if at >= run.times.cutoff => return Some(vec![cut(node)]),
        None => Some(Effect::Execute {
            node: node.id,
            exec,
        }),
        Some(rerun) => rerun.effect(node.id, exec),
    };
    Some(match next {
        Some(effect) if run.is_in_work(&effect) => Vec::new(),
        Some(effect) => start(effect),
        None => checks::ablation(run, node)
            .map(|(active, why)| result(node, active, why))
            .into_iter()
            .collect(),
    })
}

/// Does the node owe a result of its control run?
pub(super) fn is_open(run: &Run, node: &Node) -> bool {
    run.policy.ablation && node.ablation.is_none() && checks::takes_ablation(node)
}

/// The control run is not there in time.
pub(super) fn cut(node: &Node) -> Event {
    let why = "budget_cut: the search ended before its control run".to_owned();
    result(node, MechanismActive::Unclear, why)
}

fn result(node: &Node, mechanism_active: MechanismActive, why: String) -> Event {
    Event::AblationResult {
        node: node.id,
        mechanism_active,
        why,
        inputs_digest: checks_digest(node),
    }
}

/// VCK-03: a share of all nodes, each once.
fn sampled(run: &Run, node: &Node, at: UnixMs) -> Option<Vec<Event>> {
    if run.checking.contains(&node.id) {
        return Some(Vec::new());
    }
    let is_new = node.view.verdict.is_none() && node.view.attempts == 0;
    let is_wanted = is_new && checks::takes_ablation(node) && checks::is_sampled(run, node.id);
    if !is_wanted || at >= run.times.cutoff {
        return None;
    }
    match checks::course(run, node) {
        Course::Needs(effect) => Some(start(effect)),
        Course::Over(..) => None,
    }
}
