//! The change that each event makes. Events have passed [`super::check`], so nothing fails here;
//! a value that the check has shown to exist is read by `if let`.

use vec_types::{InfraFault, Operator, Phase, StopReason, UnixMs};

use super::{Drawn, Run, RunOutcome, apply_effect, apply_final, apply_import, apply_tree};
use crate::checks;
use crate::decide::patience;
use crate::node::{Ended, Ending, Stage};
use crate::retry::{Retry, is_cut};
use crate::{DraftMode, Effect, Event, ViewVerdict};

pub(super) fn apply(run: &mut Run, at: UnixMs, event: &Event) {
    match event {
        Event::RunStart { .. } => {}
        Event::RunResume { start } => resume(run, at, *start),
        Event::Imported { import, .. } => apply_import::import(run, at, import),
        Event::EpochAdvance { epoch, added } => {
            run.epoch = *epoch;
            run.epoch_data.extend(added.iter().cloned());
        }
        Event::Plateau { active, .. } => run.plateau = *active,
        Event::ResumePick { .. } => apply_import::resume_pick(run, event),
        Event::ResumeRefused { work, .. } => {
            run.works.insert(work.clone());
        }
        Event::RescoreStart { node } => apply_import::rescore_start(run, *node),
        Event::RescoreCut { node, .. } => apply_import::rescore_cut(run, *node),
        Event::FinalReserve { reserve_ms, .. } => {
            run.reserve_ms = *reserve_ms;
            run.times = run.times.with_reserve(&run.policy.budget, *reserve_ms);
        }
        Event::StopRequested { reason, detail } => {
            if run.stop_requested.is_none() {
                run.stop_requested = Some((*reason, detail.clone()));
            }
        }
        Event::EffectStarted { effect } => {
            run.in_work.insert(effect.id(), effect.clone());
            apply_effect::started(run, at, effect);
        }
        Event::EffectEnded { effect, end } => {
            run.in_work.remove(&effect.id());
            apply_effect::ended(run, at, effect, end);
        }
        Event::PhaseChange { to, .. } => change_phase(run, at, *to),
        Event::Draw { node, operator, .. } => {
            run.rng.random();
            run.draws += 1;
            run.drawn = Some(Drawn {
                node: *node,
                operator: *operator,
                parent: None,
                family: None,
                carried: None,
            });
        }
        Event::FallbackToImprove { .. }
        | Event::FallbackToDraft { .. }
        | Event::Select { .. }
        | Event::DraftPick { .. } => refine_draw(run, event),
        Event::NodeCreated { .. } => apply_tree::create(run, at, event),
        Event::NodeSettled { .. } => apply_tree::settle(run, at, event),
        Event::RefutedDirection { node, text, .. } => {
            if let Some(node) = run.node_mut(*node) {
                node.refuted = Some(text.clone());
            }
        }
        Event::AblationResult { .. } | Event::ViewCheckResult { .. } => conclude(run, at, event),
        Event::PromotionStart { .. } => apply_final::start_promotion(run, event),
        Event::PromotionDone { .. } | Event::PromotionFailed { .. } => {
            apply_final::end_promotion(run, at, event);
        }
        Event::Stop { reason, detail, .. } => stop(run, at, *reason, detail),
        Event::FinalStart { .. }
        | Event::CandidateSkipped { .. }
        | Event::GuardStart { .. }
        | Event::GuardResult { .. }
        | Event::FinalGuardRefused { .. }
        | Event::WinnerChosen { .. } => apply_final::finale(run, event),
    }
    note_wait(run, at);
}

/// Since when final selection waits for the view check that it waits for now.
fn note_wait(run: &mut Run, at: UnixMs) {
    let before = run.awaited;
    run.awaited = patience::awaited(run, at).map(|node| match before {
        Some((same, since)) if same == node => (node, since),
        _ => (node, at),
    });
}

/// Sessions of the dead process end as interrupted (ENG-14, b.2 item 10); the rest stays wanted.
fn resume(run: &mut Run, at: UnixMs, start: u32) {
    run.resumes = start;
    // Time without a controller is not time of a review.
    run.review_since.values_mut().for_each(|since| *since = at);
    // Nor is it time that final selection waited.
    run.awaited = None;
    // A request that was carried out is done with; one that a dead controller left still holds.
    if run.outcome.take().is_some() {
        run.stop_requested = None;
    }
    let lost: Vec<Effect> = run
        .in_work
        .values()
        .filter(|effect| effect.is_interrupted_by_restart())
        .cloned()
        .collect();
    for effect in lost {
        run.in_work.remove(&effect.id());
        if let Some(node) = run.node_mut(effect.node()) {
            let kept = std::mem::replace(&mut node.stage, Stage::Plan).kept();
            node.stage = Stage::Ending {
                ending: Ending::Shelved {
                    fault: InfraFault::Interrupted,
                    ended: Box::new(Ended {
                        detail: format!("the controller was restarted during {}", effect.kind()),
                        kept,
                    }),
                },
            };
        }
    }
}

/// What a check found.
fn conclude(run: &mut Run, at: UnixMs, event: &Event) {
    match event {
        Event::AblationResult {
            node,
            mechanism_active,
            ..
        } => {
            if let Some(node) = run.node_mut(*node) {
                node.ablation = Some(*mechanism_active);
            }
        }
        Event::ViewCheckResult {
            node: id, verdict, ..
        } => {
            run.checking.remove(id);
            apply_final::drop_checks(run, |node| node == *id);
            let Some(node) = run.node_mut(*id) else {
                return;
            };
            if *verdict != ViewVerdict::Unknown {
                node.view.verdict = Some(*verdict);
                return;
            }
            let fault = checks::fault(node);
            node.view.attempts += 1;
            node.view.cuts += u32::from(fault.is_some_and(is_cut));
            let counted = node.view.counted();
            if fault.is_some() {
                run.pause(*id, Retry::Run, at, counted);
            }
        }
        _ => {}
    }
}

fn change_phase(run: &mut Run, at: UnixMs, to: Phase) {
    if to == Phase::Settling {
        let is_budget = run.created >= run.policy.budget.max_nodes || at >= run.times.handoff;
        run.search_end = Some(if is_budget {
            StopReason::Budget
        } else {
            StopReason::AgentEarlyExit
        });
    }
    if run.phase == Phase::Launching {
        apply_import::close_imports(run);
    }
    run.phase = to;
}

fn refine_draw(run: &mut Run, event: &Event) {
    let Some(drawn) = &mut run.drawn else { return };
    match event {
        Event::FallbackToImprove { .. } => drawn.operator = Operator::Improve,
        Event::FallbackToDraft { .. } => drawn.operator = Operator::Draft,
        Event::Select { parent, .. } => drawn.parent = Some(*parent),
        Event::DraftPick { family, mode, .. } => {
            drawn.family = Some(family.clone());
            run.bandit_picks += u32::from(matches!(mode, DraftMode::Explore | DraftMode::Exploit));
        }
        _ => {}
    }
}

fn stop(run: &mut Run, at: UnixMs, reason: StopReason, detail: &str) {
    run.outcome = Some(RunOutcome {
        reason,
        detail: detail.to_owned(),
        winner: run.winner.map(|winner| winner.node),
        winner_is_baseline: run.winner.is_some_and(|winner| winner.is_baseline),
        at,
    });
}
