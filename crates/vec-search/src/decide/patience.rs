//! How long final selection waits for a view check (VCK-06): for one that somebody else began the
//! locked wait, for one of its own also the time that its program was measured to take.

use vec_types::{ExecName, NodeId, Phase, UnixMs};

use super::reserve::{CHECK_RUNS, cold_ms};
use crate::checks::Course;
use crate::inputs::checks_digest;
use crate::node::Node;
use crate::ranking::is_reviewed;
use crate::retry::Retry;
use crate::state::{Finale, Run};
use crate::{Effect, Event, SkipReason, ViewTrigger, ViewVerdict};

/// The candidate whose view check final selection waits for, as far as the state says. The fold
/// notes since when.
pub(crate) fn awaited(run: &Run, at: UnixMs) -> Option<NodeId> {
    if run.phase != Phase::Final {
        return None;
    }
    let Some(finale) = &run.finale else {
        // With one node at a time final selection cannot even begin beside a check.
        let is_alone = run.policy.concurrency_nodes == 1;
        return run
            .in_work
            .values()
            .find(|effect| is_alone && is_check(effect))
            .map(Effect::node);
    };
    let is_written = finale
        .placed
        .get(&(finale.baseline, true))
        .is_some_and(Option::is_some);
    let mut remaining = finale.remaining().filter_map(|id| run.node(id));
    let is_next = is_written && finale.guard.is_none() && remaining.all(is_reviewed);
    turn(run, finale, at)
        .filter(|node| is_next && !run.is_paused(node.id, Retry::Run, at))
        .map(|candidate| candidate.id)
}

/// Whose turn it is among the candidates without an outcome: one check at a time, so the one that is
/// under way, else the best that no fault of ours makes wait, else the best.
pub(super) fn turn<'a>(run: &'a Run, finale: &Finale, at: UnixMs) -> Option<&'a Node> {
    let open = || {
        let remaining = finale.remaining().filter_map(|id| run.node(id));
        remaining.filter(|node| !node.view.is_fit() && !node.view.is_out())
    };
    let is_under_way = |node: &&Node| match crate::checks::course(run, node) {
        Course::Needs(effect) => run.is_in_work(&effect),
        Course::Over(..) => false,
    };
    let is_ready = |node: &&Node| !run.is_paused(node.id, Retry::Run, at);
    open()
        .find(is_under_way)
        .or_else(|| open().find(is_ready))
        .or_else(|| open().next())
}

/// When final selection stops waiting for the check that it waits for.
pub(crate) fn until(run: &Run) -> Option<UnixMs> {
    let (id, since) = run.awaited?;
    let node = run.node(id)?;
    let is_held = run.checking.contains(&id) && node.view.trigger != ViewTrigger::Final;
    let own_ms = if is_held { 0 } else { own_ms(run, node) };
    let wait_ms = run.policy.view_check.lock_wait_ms.saturating_add(own_ms);
    Some(since.plus_ms(wait_ms))
}

/// The runs of one check as the reserve counts them (RSV-02).
fn own_ms(run: &Run, node: &Node) -> i64 {
    let views = run.policy.view_check.views.iter();
    let once = views.map(|view| node.longest_ms(view)).sum();
    cold_ms(once).saturating_mul(CHECK_RUNS)
}

/// The wait is over: the check has no result, and its candidate is passed over.
pub(super) fn over(run: &Run, at: UnixMs) -> Option<Vec<Event>> {
    let (id, since) = run.awaited?;
    if at < until(run)? {
        return None;
    }
    let node = run.node(id)?;
    let waited = at.since_ms(since) / 1_000;
    let result = run.checking.contains(&id).then(|| Event::ViewCheckResult {
        node: id,
        attempt: node.view.attempts,
        verdict: ViewVerdict::Unknown,
        trigger: node.view.trigger,
        why: format!("final selection waited {waited} s for it and goes on without"),
        inputs_digest: checks_digest(node),
    });
    let skipped = run.finale.as_ref().map(|_| Event::CandidateSkipped {
        node: id,
        why: SkipReason::ViewCheck,
    });
    let batch: Vec<Event> = result.into_iter().chain(skipped).collect();
    (!batch.is_empty()).then_some(batch)
}

/// Is it an execution of a view check?
pub(crate) const fn is_check(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Execute {
            exec: ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. },
            ..
        }
    )
}
