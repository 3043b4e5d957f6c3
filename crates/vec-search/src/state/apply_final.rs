//! Further executions: promotion, final selection, guard.

use std::collections::BTreeMap;

use vec_types::{ExecName, InfraFault, NodeId, UnixMs};

use super::index::ranked;
use super::{Finale, GuardRun, Run, Winner};
use crate::decide::patience::is_check;
use crate::node::{Mean, Node, Promotion, PromotionState, Rerun};
use crate::retry::{Retry, is_cut};
use crate::{Effect, Event, GuardVerdict, PROMOTION_ATTEMPTS_MAX, PromotionFailure};

pub(super) fn start_promotion(run: &mut Run, event: &Event) {
    let Event::PromotionStart {
        node: id,
        epoch,
        execs,
        ..
    } = event
    else {
        return;
    };
    let Some(node) = run.node_mut(*id) else {
        return;
    };
    node.promotion.state = PromotionState::Running {
        epoch: *epoch,
        execs: execs.clone(),
    };
    for exec in execs {
        node.reruns.add(*exec);
    }
    run.promoting = Some(*id);
}

pub(super) fn end_promotion(run: &mut Run, at: UnixMs, event: &Event) {
    let (Event::PromotionDone { node: id, .. } | Event::PromotionFailed { node: id, .. }) = event
    else {
        return;
    };
    run.promoting = None;
    run.in_work.retain(|_, effect| match effect {
        Effect::Execute { node, exec } | Effect::Score { node, exec } => {
            node != id || !exec.is_ranked()
        }
        _ => true,
    });
    let Run { nodes, index, .. } = run;
    let position = usize::try_from(id.0).ok();
    let Some(node) = position.and_then(|position| nodes.get_mut(position)) else {
        return;
    };
    let before = ranked(node);
    let fault = lost_run(node);
    let promotion = &mut node.promotion;
    promotion.generation += 1;
    promotion.state = PromotionState::Idle;
    match event {
        Event::PromotionDone { epoch, mean, .. } => {
            promotion.mean = Some(Mean {
                score: *mean,
                epoch: *epoch,
            });
        }
        Event::PromotionFailed {
            epoch, cause, why, ..
        } => failed(promotion, *epoch, *cause, why),
        _ => {}
    }
    let (lost, _) = promotion.lost;
    index.rank(before, node);
    match fault {
        Some(fault) if is_cut(fault) => run.pause(*id, Retry::Run, at, 1),
        Some(_) => run.pause(*id, Retry::Run, at, lost),
        None => {}
    }
}

/// The fault of ours that a run of the present promotion came to; one that counts before a cut.
fn lost_run(node: &Node) -> Option<InfraFault> {
    let PromotionState::Running { execs, .. } = &node.promotion.state else {
        return None;
    };
    let runs = execs.iter().filter_map(|exec| node.reruns.get(exec));
    runs.filter_map(Rerun::lost)
        .min_by_key(|fault| is_cut(*fault))
}

/// Out for this epoch, or free to start again with the next generation (O-PRO-1, PRO-06).
fn failed(promotion: &mut Promotion, epoch: u32, cause: PromotionFailure, why: &str) {
    let lost = match cause {
        PromotionFailure::Lost if promotion.lost.1 == epoch => promotion.lost.0 + 1,
        PromotionFailure::Lost => 1,
        PromotionFailure::Faulty | PromotionFailure::Abandoned => promotion.lost.0,
    };
    if cause == PromotionFailure::Lost {
        promotion.lost = (lost, epoch);
    }
    let is_over = cause == PromotionFailure::Lost && lost >= PROMOTION_ATTEMPTS_MAX;
    if is_over || cause == PromotionFailure::Faulty {
        promotion.state = PromotionState::Failed {
            epoch,
            why: why.to_owned(),
        };
    }
}

pub(super) fn finale(run: &mut Run, event: &Event) {
    match event {
        Event::FinalStart {
            baseline,
            candidates,
            ..
        } => {
            run.finale = Some(Finale {
                baseline: *baseline,
                candidates: candidates.clone(),
                skipped: BTreeMap::new(),
                guard: None,
                verdict: None,
                placed: BTreeMap::new(),
            });
            drop_checks(run, |node| !candidates.contains(&node));
            add_rerun(run, *baseline, ExecName::Final);
        }
        Event::FinalGuardRefused { why } => run.refused = Some(why.clone()),
        Event::WinnerChosen { node, is_baseline } => {
            run.winner = Some(Winner {
                node: *node,
                is_baseline: *is_baseline,
            });
        }
        Event::CandidateSkipped { node, why } => {
            if let Some(finale) = &mut run.finale {
                finale.skipped.insert(*node, *why);
            }
            drop_checks(run, |skipped| skipped == *node);
        }
        Event::GuardStart {
            candidate,
            baseline,
            seeds,
        } => {
            if let Some(finale) = &mut run.finale {
                finale.guard = Some(GuardRun {
                    candidate: *candidate,
                    seeds: seeds.clone(),
                });
            }
            for seed in seeds {
                add_rerun(run, *candidate, ExecName::Fresh(*seed));
                add_rerun(run, *baseline, ExecName::Fresh(*seed));
            }
        }
        Event::GuardResult { .. } => guard_result(run, event),
        _ => {}
    }
}

/// View checks that nobody waits for any more would only hold up the others (VCK-06).
pub(super) fn drop_checks(run: &mut Run, is_over: impl Fn(NodeId) -> bool) {
    run.in_work
        .retain(|_, effect| !(is_check(effect) && is_over(effect.node())));
}

fn add_rerun(run: &mut Run, node: NodeId, exec: ExecName) {
    if let Some(node) = run.node_mut(node) {
        node.reruns.add(exec);
    }
}

fn guard_result(run: &mut Run, event: &Event) {
    let Event::GuardResult {
        candidate,
        pairs,
        mean,
        sd,
        lower_bound,
        complete,
        replace,
        why,
        ..
    } = event
    else {
        return;
    };
    if let Some(finale) = &mut run.finale {
        finale.verdict = Some(GuardVerdict {
            candidate: *candidate,
            pairs: pairs.clone(),
            mean: *mean,
            sd: *sd,
            lower_bound: *lower_bound,
            complete: *complete,
            replace: *replace,
            why: why.clone(),
        });
    }
    run.in_work.retain(|_, effect| {
        !matches!(
            effect,
            Effect::Execute {
                exec: ExecName::Fresh(_),
                ..
            } | Effect::Score {
                exec: ExecName::Fresh(_),
                ..
            }
        )
    });
    if *replace {
        add_rerun(run, *candidate, ExecName::Final);
    }
}
