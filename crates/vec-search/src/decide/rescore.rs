//! Imports whose scores cannot be compared are executed and scored again before anything new is
//! created, best first (CON-02, O-CON-3).

use std::cmp::Reverse;

use vec_types::{NodeId, Score, UnixMs};

use super::seeding::has_room;
use crate::Event;
use crate::node::{Node, Stage};
use crate::state::Run;

/// The next import to score again, while there is time and room.
pub(super) fn next(run: &Run, at: UnixMs) -> Option<Event> {
    if !has_room(run) || !is_due(run, at) {
        return None;
    }
    let (_, node) = waiting(&run.nodes).min()?;
    Some(Event::RescoreStart { node })
}

/// Is an import still to be tried? Then search must wait.
pub(super) fn is_due(run: &Run, at: UnixMs) -> bool {
    at < run.times.cutoff && waiting(&run.nodes).next().is_some()
}

/// Imports without a comparable score that were not tried yet, with their score elsewhere.
fn waiting(nodes: &[Node]) -> impl Iterator<Item = (Reverse<Score>, NodeId)> {
    let waiting = nodes
        .iter()
        .filter(|node| matches!(node.stage, Stage::Waiting { cut: false, .. }));
    waiting.filter_map(|node| Some((Reverse(node.past.as_ref()?.ranking?), node.id)))
}

/// Incomparable imports that are not among the best `rescore_top_k` stay history (CON-02).
pub(crate) fn history(nodes: &[Node], rescore_top_k: u32) -> Vec<NodeId> {
    let mut waiting: Vec<(Reverse<Score>, NodeId)> = waiting(nodes).collect();
    waiting.sort_unstable();
    let kept = usize::try_from(rescore_top_k).unwrap_or(usize::MAX);
    waiting.into_iter().skip(kept).map(|(_, id)| id).collect()
}
