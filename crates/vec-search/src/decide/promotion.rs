//! Promotion: the best candidates run further seeds, one candidate at a time (PRO-01..04). Every seed
//! of the ranking score is measured in the current data epoch, seed 0 too (EPO-04).

use vec_types::{ExecName, NodeId, Phase, ProgramSeed, Score, UnixMs};

use super::{checks, first_failure, next_rerun, start};
use crate::inputs::{promotion_digest, tree_digest};
use crate::node::{Node, PromotionState, Rerun, RerunStage, SEED_0};
use crate::planted::{self, Bug};
use crate::ranking::next_promotion;
use crate::retry::is_cut;
use crate::state::Run;
use crate::{Event, PromotionFailure};

/// Starts the next promotion during search (O-PRO-1: after every settlement and completion).
pub(super) fn sweep(run: &Run, at: UnixMs) -> Vec<Event> {
    let may = run.phase == Phase::Search && at < run.times.cutoff && run.promoting.is_none();
    match may.then(|| next_promotion(run, at)).flatten() {
        None => Vec::new(),
        Some(node) if node.view.is_fit() || planted::is(Bug::PromotionUnchecked) => {
            vec![started(run, node)]
        }
        // VCK-03: its view check comes first.
        Some(node) => checks::begin(run, node, at),
    }
}

pub(super) fn started(run: &Run, node: &Node) -> Event {
    Event::PromotionStart {
        node: node.id,
        generation: node.promotion.generation,
        epoch: run.epoch,
        execs: missing_execs(run, node),
        inputs_digest: tree_digest(run),
    }
}

/// Seed 0 and the promotion seeds.
pub(crate) fn ranked_seeds(run: &Run) -> impl Iterator<Item = ProgramSeed> {
    let further = run.policy.promotion_seeds.iter().copied();
    [ProgramSeed(0)].into_iter().chain(further)
}

/// One execution for every seed without a score in this epoch. What an abandoned generation left
/// half done goes on; everything else gets a name of its own, since no execution ends twice.
fn missing_execs(run: &Run, node: &Node) -> Vec<ExecName> {
    ranked_seeds(run)
        .filter(|seed| !is_measured(run, node, *seed))
        .map(|seed| half_done(run, node, seed).unwrap_or_else(|| fresh_name(node, seed)))
        .collect()
}

fn is_measured(run: &Run, node: &Node, seed: ProgramSeed) -> bool {
    let is_old = planted::is(Bug::PromotionOldSeed0) && seed == ProgramSeed(0);
    is_old || node.measured(seed, run.epoch).is_some()
}

fn half_done(run: &Run, node: &Node, seed: ProgramSeed) -> Option<ExecName> {
    let reruns = node.reruns.iter();
    let mut open = reruns.filter(|(exec, rerun)| {
        exec.is_ranked() && exec.program_seed() == seed && rerun.is_open_in(run.epoch)
    });
    open.next().map(|(exec, _)| *exec)
}

fn fresh_name(node: &Node, seed: ProgramSeed) -> ExecName {
    let first = ExecName::Seed(seed);
    if first != SEED_0 && !node.reruns.contains_key(&first) {
        return first;
    }
    ExecName::Again {
        seed,
        generation: node.promotion.generation,
    }
}

/// Moves the running promotion on: ends it, abandons it, or starts its next effect.
pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    let Some(node) = run.promoting.and_then(|id| run.node(id)) else {
        return Vec::new();
    };
    let PromotionState::Running { epoch, execs } = &node.promotion.state else {
        return Vec::new();
    };
    let reruns: Vec<(NodeId, ExecName)> = execs.iter().map(|exec| (node.id, *exec)).collect();
    let ended = |cause, why| vec![failed(node, *epoch, cause, why)];
    if let Some(why) = first_failure(run, &reruns) {
        return ended(cause(node, execs), why);
    }
    if let Some(mean) = mean(run, node, *epoch) {
        return vec![Event::PromotionDone {
            node: node.id,
            generation: node.promotion.generation,
            epoch: *epoch,
            mean,
            inputs_digest: promotion_digest(node),
        }];
    }
    if let Some(why) = abandoned(run, at, *epoch) {
        return ended(PromotionFailure::Abandoned, why.to_owned());
    }
    next_rerun(run, &reruns, run.rerun_limit()).map_or_else(Vec::new, start)
}

fn failed(node: &Node, epoch: u32, cause: PromotionFailure, why: String) -> Event {
    Event::PromotionFailed {
        node: node.id,
        generation: node.promotion.generation,
        epoch,
        cause,
        why,
        inputs_digest: promotion_digest(node),
    }
}

/// A fault of the program weighs more than one of ours: trying again would not help. A run that was
/// only cut for lack of time is no fault.
fn cause(node: &Node, execs: &[ExecName]) -> PromotionFailure {
    let runs = || execs.iter().filter_map(|exec| node.reruns.get(exec));
    let is_faulty = |run: &Rerun| matches!(run.stage, RerunStage::Faulty { .. });
    if runs().any(is_faulty) {
        PromotionFailure::Faulty
    } else if runs().filter_map(Rerun::lost).all(is_cut) {
        PromotionFailure::Abandoned
    } else {
        PromotionFailure::Lost
    }
}

/// PRO-06, PRO-08: one deadline with the nodes; in final selection the guard's. New data in between
/// would mix two epochs in one mean (O-SEL-4).
fn abandoned(run: &Run, at: UnixMs, epoch: u32) -> Option<&'static str> {
    match run.phase {
        _ if run.epoch != epoch => Some("the data epoch moved on"),
        Phase::Final if at >= run.deadlines().guard_deadline => {
            Some("the guard's deadline came first")
        }
        Phase::Search | Phase::Settling if at >= run.times.settle_deadline => {
            Some("the settlement deadline came first")
        }
        _ => None,
    }
}

/// All seeds are in: the ranking score becomes their mean (PRO-02).
fn mean(run: &Run, node: &Node, epoch: u32) -> Option<Score> {
    let totals: Option<Vec<f64>> = ranked_seeds(run)
        .map(|seed| {
            let planted = planted::is(Bug::PromotionOldSeed0) && seed == ProgramSeed(0);
            let score = if planted {
                node.score(SEED_0)?
            } else {
                node.measured(seed, epoch)?.1
            };
            Some(score.total.get())
        })
        .collect();
    finite_mean(&totals?)
}

/// Mean in the order given; divided first when the sum would overflow, so it is always finite.
fn finite_mean(totals: &[f64]) -> Option<Score> {
    let n = f64::from(u32::try_from(totals.len()).ok().filter(|n| *n > 0)?);
    let plain = Score::new(totals.iter().sum::<f64>() / n);
    let divided = || Score::new(totals.iter().map(|total| total / n).sum());
    plain.or_else(|_| divided()).ok()
}
