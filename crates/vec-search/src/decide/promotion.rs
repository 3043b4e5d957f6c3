//! Promotion: the best candidates run further seeds, one candidate at a time (PRO-01..04).

use vec_types::{ExecName, NodeId, Phase, ProgramSeed, Score, UnixMs};

use super::{first_failure, next_rerun, start};
use crate::Event;
use crate::inputs::{scores_digest, tree_digest};
use crate::node::{Node, Promotion, SEED_0};
use crate::ranking::next_promotion;
use crate::state::Run;

/// Starts the next promotion during search (O-PRO-1: after every settlement and completion).
pub(super) fn sweep(run: &Run, at: UnixMs) -> Vec<Event> {
    let may = run.phase == Phase::Search && at < run.times.cutoff && run.promoting.is_none();
    let node = may.then(|| next_promotion(run)).flatten();
    node.map_or_else(Vec::new, |node| vec![started(run, node)])
}

pub(super) fn started(run: &Run, node: &Node) -> Event {
    Event::PromotionStart {
        node: node.id,
        generation: node.promotion.generation(),
        seeds: missing_seeds(run, node),
        inputs_digest: tree_digest(run),
    }
}

/// Results of an earlier, abandoned generation are kept.
fn missing_seeds(run: &Run, node: &Node) -> Vec<ProgramSeed> {
    let seeds = run.policy.promotion_seeds.iter().copied();
    seeds
        .filter(|seed| node.score(ExecName::Seed(*seed)).is_none())
        .collect()
}

/// Moves the running promotion on: ends it, abandons it, or starts its next effect.
pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    let Some(node) = run.promoting.and_then(|id| run.node(id)) else {
        return Vec::new();
    };
    let seeds = run.policy.promotion_seeds.iter();
    let execs: Vec<ExecName> = seeds.map(|seed| ExecName::Seed(*seed)).collect();
    let reruns: Vec<(NodeId, ExecName)> = execs.iter().map(|exec| (node.id, *exec)).collect();
    if let Some(why) = first_failure(run, &reruns) {
        return vec![failed(node, why)];
    }
    if let Some(end) = done(node, &execs) {
        return vec![end];
    }
    if let Some(why) = abandoned(run, at) {
        return vec![failed(node, why.to_owned())];
    }
    next_rerun(run, &reruns, run.rerun_limit()).map_or_else(Vec::new, start)
}

fn failed(node: &Node, why: String) -> Event {
    Event::PromotionFailed {
        node: node.id,
        generation: node.promotion.generation(),
        why,
    }
}

/// PRO-06, PRO-08: one deadline with the nodes; in final selection the guard's.
fn abandoned(run: &Run, at: UnixMs) -> Option<&'static str> {
    match run.phase {
        Phase::Final if at >= run.deadlines().guard_deadline => {
            Some("promotion_abandoned: the guard's deadline came first")
        }
        Phase::Search | Phase::Settling if at >= run.times.settle_deadline => {
            Some("promotion_abandoned: the settlement deadline came first")
        }
        _ => None,
    }
}

/// All seeds are in: the ranking score becomes their mean (PRO-02).
fn done(node: &Node, execs: &[ExecName]) -> Option<Event> {
    let all: Vec<ExecName> = [SEED_0].into_iter().chain(execs.iter().copied()).collect();
    let totals: Option<Vec<f64>> = all
        .iter()
        .map(|exec| node.score(*exec).map(|report| report.total.get()))
        .collect();
    let mean = mean(&totals?)?;
    Some(Event::PromotionDone {
        node: node.id,
        generation: node.promotion.generation(),
        mean,
        inputs_digest: scores_digest(node, all),
    })
}

/// Mean in the order given; divided first when the sum would overflow, so it is always finite.
fn mean(totals: &[f64]) -> Option<Score> {
    let n = f64::from(u32::try_from(totals.len()).ok().filter(|n| *n > 0)?);
    let plain = Score::new(totals.iter().sum::<f64>() / n);
    let divided = || Score::new(totals.iter().map(|total| total / n).sum());
    plain.or_else(|_| divided()).ok()
}

/// Has the node every score that final selection orders by?
pub(super) fn is_done(node: &Node) -> bool {
    matches!(node.promotion, Promotion::Done { .. })
}
