//! Final selection up to the guard: the baseline is written first, then candidates are reviewed,
//! checked, and run their missing seeds (FIN-03..06).

use vec_types::{ExecName, NodeId, Phase, UnixMs};

use super::{checks, guarding, next_rerun, patience, promotion, review, start};
use crate::inputs::tree_digest;
use crate::node::{Node, RerunStage};
use crate::ranking::{final_candidates, is_reviewed};
use crate::retry::Retry;
use crate::state::{Finale, Run};
use crate::{Effect, Event, REVIEW_ATTEMPTS_MAX, ReviewVerdict, SkipReason};

pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    if run.phase != Phase::Final {
        return Vec::new();
    }
    let Some(finale) = &run.finale else {
        return patience::over(run, at).unwrap_or_else(|| begin(run));
    };
    let steps: [fn(&Run, &Finale, UnixMs) -> Step; 4] =
        [place_baseline, reviews, view_checks, missing_seeds];
    for step in steps {
        match step(run, finale, at) {
            Step::Do(batch) => return batch,
            Step::Wait => return Vec::new(),
            Step::Passed => {}
        }
    }
    guarding::advance(run, finale, at)
}

/// What a step of final selection says: decide this, wait for work in flight, or go on.
pub(super) enum Step {
    Do(Vec<Event>),
    Wait,
    Passed,
}

fn begin(run: &Run) -> Vec<Event> {
    let baseline = run.anchor().filter(|anchor| anchor.is_scored());
    let Some(baseline) = baseline.filter(|anchor| anchor.commit().is_some()) else {
        return refused("the baseline has no commit, so nothing can be compared with it");
    };
    let candidates = final_candidates(run);
    vec![Event::FinalStart {
        epoch: run.epoch,
        baseline: baseline.id,
        candidates,
        inputs_digest: tree_digest(run),
    }]
}

fn refused(why: &str) -> Vec<Event> {
    vec![Event::FinalGuardRefused {
        why: why.to_owned(),
    }]
}

/// The baseline's answer is written before anything else (FIN-03); if that fails there is nothing
/// that a guard could fall back to (FIN-04).
fn place_baseline(run: &Run, finale: &Finale, at: UnixMs) -> Step {
    let baseline = finale.baseline;
    if let Some(digest) = finale.placed.get(&(baseline, true)) {
        return match digest {
            Some(_) => Step::Passed,
            None => Step::Do(refused("the baseline's answer could not be written")),
        };
    }
    match run_final(run, baseline) {
        FinalRun::Failed(why) => Step::Do(refused(&format!(
            "the baseline could not be run on the final view: {why}"
        ))),
        FinalRun::Start(_) | FinalRun::Open if at >= run.times.place_deadline => Step::Do(refused(
            "the baseline's run on the final view was not done in time",
        )),
        FinalRun::Start(effect) => Step::Do(start(effect)),
        FinalRun::Open => Step::Wait,
        FinalRun::Done => place(run, baseline, true),
    }
}

/// State of a node's run on the final view.
pub(super) enum FinalRun {
    Start(Effect),
    Open,
    Done,
    Failed(String),
}

pub(super) fn run_final(run: &Run, node: NodeId) -> FinalRun {
    let exec = ExecName::Final;
    match run.rerun(node, exec) {
        Some(rerun) if matches!(rerun.stage, RerunStage::Ran { .. }) => FinalRun::Done,
        Some(rerun) => match rerun.failure() {
            Some(why) => FinalRun::Failed(why),
            None => next_rerun(run, &[(node, exec)], 1).map_or(FinalRun::Open, FinalRun::Start),
        },
        None => FinalRun::Failed("it was never asked for".to_owned()),
    }
}

pub(super) fn place(run: &Run, node: NodeId, provisional: bool) -> Step {
    let effect = Effect::Place { node, provisional };
    if run.is_in_work(&effect) {
        Step::Wait
    } else {
        Step::Do(start(effect))
    }
}

fn skip(node: NodeId, why: SkipReason) -> Step {
    Step::Do(vec![Event::CandidateSkipped { node, why }])
}

/// Missing reviews on the spot, all at once (FIN-05).
fn reviews(run: &Run, finale: &Finale, at: UnixMs) -> Step {
    if finale.guard.is_some() {
        return Step::Passed;
    }
    let mut waits = false;
    for node in finale.remaining().filter_map(|id| run.node(id)) {
        if is_reviewed(node) {
            continue;
        }
        let is_over = node.review.attempts >= REVIEW_ATTEMPTS_MAX;
        if node.review.verdict == Some(ReviewVerdict::Fail) || is_over {
            return skip(node.id, SkipReason::Review);
        }
        if at >= run.deadlines().guard_deadline {
            return skip(node.id, SkipReason::Deadline);
        }
        if run.is_paused(node.id, Retry::Review, at) {
            waits = true;
            continue;
        }
        let effect = review::next_attempt(run, node.id);
        match effect.filter(|effect| !run.is_in_work(effect)) {
            Some(effect) => return Step::Do(start(effect)),
            None => waits = true,
        }
    }
    if waits { Step::Wait } else { Step::Passed }
}

/// Missing view checks, one candidate after another (FIN-05), none of them for longer than final
/// selection waits (VCK-06).
fn view_checks(run: &Run, finale: &Finale, at: UnixMs) -> Step {
    if finale.guard.is_some() {
        return Step::Passed;
    }
    let mut remaining = finale.remaining().filter_map(|id| run.node(id));
    if let Some(node) = remaining.find(|node| node.view.is_out()) {
        return skip(node.id, SkipReason::ViewCheck);
    }
    let Some(node) = patience::turn(run, finale, at) else {
        return Step::Passed;
    };
    if at >= run.deadlines().guard_deadline {
        return skip(node.id, SkipReason::Deadline);
    }
    let batch = patience::over(run, at).unwrap_or_else(|| checks::begin(run, node, at));
    if batch.is_empty() {
        Step::Wait
    } else {
        Step::Do(batch)
    }
}

/// Missing promotion seeds, one candidate after another (FIN-06).
fn missing_seeds(run: &Run, finale: &Finale, at: UnixMs) -> Step {
    if finale.guard.is_some() {
        return Step::Passed;
    }
    if run.promoting.is_some() {
        return Step::Wait;
    }
    let missing = || {
        let remaining = finale.remaining().filter_map(|id| run.node(id));
        remaining.filter(|node| !node.promotion.is_done(run.epoch))
    };
    let is_paused = |node: &&Node| run.is_paused(node.id, Retry::Run, at);
    let ready = missing().find(|node| !is_paused(node));
    let Some(node) = ready.or_else(|| missing().next()) else {
        return Step::Passed;
    };
    if node.promotion.is_out(run.epoch) {
        return skip(node.id, SkipReason::Seeds);
    }
    if at >= run.deadlines().guard_deadline {
        return skip(node.id, SkipReason::Deadline);
    }
    if is_paused(&node) {
        return Step::Wait;
    }
    Step::Do(vec![promotion::started(run, node)])
}
