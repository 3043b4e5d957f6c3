//! How a run ends: after its answer, on request, at the hard end (STP-02, BUD-01, BUD-08).

use vec_types::{StopReason, UnixMs};

use super::pipeline;
use crate::inputs::run_digest;
use crate::state::{Finale, Run};
use crate::{Effect, Event};

pub(super) fn stop(run: &Run, reason: StopReason, detail: impl Into<String>) -> Vec<Event> {
    vec![Event::Stop {
        reason,
        detail: detail.into(),
        inputs_digest: run_digest(run),
    }]
}

/// The answer is chosen or refused: nothing more happens.
pub(super) fn after_answer(run: &Run, _: UnixMs) -> Vec<Event> {
    let reason = run.search_end.unwrap_or(StopReason::Budget);
    if let Some(winner) = run.winner {
        let what = if winner.is_baseline {
            "the baseline is kept"
        } else {
            "the candidate replaces the baseline"
        };
        return stop(run, reason, format!("{what}: node {}", winner.node));
    }
    match &run.refused {
        Some(why) => stop(run, reason, format!("no answer: {why}")),
        None => Vec::new(),
    }
}

/// Somebody asked: nodes in flight are settled at once, final selection is skipped. Reviews,
/// promotions and final runs in flight stay started and go on if the run is resumed.
pub(super) fn on_request(run: &Run, _: UnixMs) -> Vec<Event> {
    let Some((reason, detail)) = &run.stop_requested else {
        return Vec::new();
    };
    match first_running(run, "the run was stopped", false) {
        Some(batch) => batch,
        None => stop(run, *reason, detail.clone()),
    }
}

/// The hard end: a baseline that is written stays the answer (FIN-03), unless its replacement
/// was being written at that moment.
pub(super) fn at_hard_end(run: &Run, at: UnixMs) -> Vec<Event> {
    if at < run.times.stop_at {
        return Vec::new();
    }
    if let Some(batch) = first_running(run, "the run's time is over", true) {
        return batch;
    }
    let Some(finale) = &run.finale else {
        return stop(
            run,
            StopReason::Budget,
            "time was over before final selection",
        );
    };
    let baseline = finale.baseline;
    let is_written = finale
        .placed
        .get(&(baseline, true))
        .is_some_and(Option::is_some);
    if let Some(winner) = replaced(finale) {
        return winner;
    }
    let is_replacing = finale.guard.as_ref().is_some_and(|guard| {
        run.is_in_work(&Effect::Place {
            node: guard.candidate,
            provisional: false,
        })
    });
    if is_replacing {
        stop(
            run,
            StopReason::Budget,
            "time was over while the candidate's answer was written; see final/SELECTION.md",
        )
    } else if is_written {
        vec![Event::WinnerChosen {
            node: baseline,
            is_baseline: true,
        }]
    } else {
        stop(
            run,
            StopReason::Budget,
            "time was over before the baseline was written",
        )
    }
}

fn first_running(run: &Run, why: &str, budget_cut: bool) -> Option<Vec<Event>> {
    let id = run.running.first()?;
    let node = run.node(*id)?;
    Some(pipeline::settle_now(run, node, why, budget_cut))
}

/// The candidate's answer was written, only the last event is missing.
fn replaced(finale: &Finale) -> Option<Vec<Event>> {
    let node = finale.guard.as_ref()?.candidate;
    finale.placed.get(&(node, false))?.as_ref()?;
    Some(vec![Event::WinnerChosen {
        node,
        is_baseline: false,
    }])
}
