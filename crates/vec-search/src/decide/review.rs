//! Reviews during search: whoever ranks high is read by the Reviewer (REV-02).

use vec_types::{NodeId, Phase, UnixMs};

use super::start;
use crate::planted::{self, Bug};
use crate::ranking::due_reviews;
use crate::retry::Retry;
use crate::state::Run;
use crate::{Effect, Event, MechanismActive};

pub(super) fn sweep(run: &Run, at: UnixMs) -> Vec<Event> {
    if run.phase != Phase::Search || at >= run.times.cutoff {
        return Vec::new();
    }
    due_reviews(run)
        .into_iter()
        .filter(|node| !run.is_paused(*node, Retry::Review, at))
        .filter(|node| !is_forgotten(run, *node))
        .filter_map(|node| next_attempt(run, node))
        .find(|effect| !run.is_in_work(effect))
        .map_or_else(Vec::new, start)
}

/// The review call that a node needs next. An attempt in work is the same effect again, so at
/// most one is open per node.
pub(super) fn next_attempt(run: &Run, node: NodeId) -> Option<Effect> {
    let attempt = run.node(node)?.review.attempts;
    Some(Effect::Review { node, attempt })
}

fn is_forgotten(run: &Run, node: NodeId) -> bool {
    let found = run.node(node).and_then(|node| node.ablation);
    planted::is(Bug::IdleUnreviewed) && found == Some(MechanismActive::No)
}
