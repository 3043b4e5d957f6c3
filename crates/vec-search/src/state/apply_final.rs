//! Further executions: promotion, final selection, guard.

use std::collections::BTreeMap;

use vec_types::{ExecName, NodeId, ProgramSeed};

use super::{Finale, GuardRun, Run, Winner};
use crate::node::{Promotion, Rerun};
use crate::{Effect, Event, GuardVerdict};

pub(super) fn start_promotion(run: &mut Run, id: NodeId, seeds: &[ProgramSeed]) {
    let Some(node) = run.node_mut(id) else { return };
    node.promotion = Promotion::Running {
        generation: node.promotion.generation(),
    };
    for seed in seeds {
        let exec = ExecName::Seed(*seed);
        node.reruns.entry(exec).or_insert(Rerun::Execute);
    }
    run.promoting = Some(id);
}

pub(super) fn end_promotion(run: &mut Run, event: &Event) {
    let (Event::PromotionDone { node: id, .. } | Event::PromotionFailed { node: id, .. }) = event
    else {
        return;
    };
    run.promoting = None;
    run.in_work.retain(|_, effect| {
        let is_seed_run = matches!(
            effect,
            Effect::Execute {
                exec: ExecName::Seed(_),
                ..
            } | Effect::Score {
                exec: ExecName::Seed(_),
                ..
            }
        );
        effect.node() != *id || !is_seed_run
    });
    let Some(node) = run.node_mut(*id) else {
        return;
    };
    node.promotion = match event {
        Event::PromotionDone {
            generation, mean, ..
        } => Promotion::Done {
            generation: *generation,
            mean: *mean,
        },
        Event::PromotionFailed {
            generation, why, ..
        } if node.reruns.values().any(|rerun| rerun.failure().is_some()) => Promotion::Failed {
            generation: *generation,
            why: why.clone(),
        },
        // Abandoned for lack of time (PRO-06): it may start again with the next generation.
        _ => Promotion::None {
            generation: node.promotion.generation() + 1,
        },
    };
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

fn add_rerun(run: &mut Run, node: NodeId, exec: ExecName) {
    if let Some(node) = run.node_mut(node) {
        node.reruns.entry(exec).or_insert(Rerun::Execute);
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
