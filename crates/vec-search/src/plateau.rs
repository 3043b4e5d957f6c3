//! Plateau (PLT): the last scored nodes in a row did not refresh the top. Computed anew at every
//! selection; the state only remembers what was last announced.

use vec_types::NodeId;

use crate::node::{Node, SEED_0};
use crate::planted::{self, Bug};
use crate::state::Run;

/// Does the search stand still (PLT-01)?
pub(crate) fn is_active(run: &Run) -> bool {
    let plateau = &run.policy.plateau;
    let mut window = usize::try_from(plateau.window).unwrap_or(usize::MAX);
    if planted::is(Bug::PlateauWindowOffByOne) {
        window -= 1;
    }
    let scored = &run.index.own_scored;
    plateau.enabled
        && scored.len() >= window
        && scored
            .iter()
            .rev()
            .take(window)
            .all(|id| !refreshes(run, *id))
}

/// Was its seed-0 score above the ranking score that the `top_k`-th of the nodes before it has now
/// (PLT-06)? With fewer nodes before it every node refreshes (O-PLT-2). Scores of another epoch
/// say nothing about it.
fn refreshes(run: &Run, id: NodeId) -> bool {
    let Some(node) = run.node(id) else {
        return false;
    };
    let own = node.score(SEED_0).map(|score| score.total);
    let order = |node: &Node| node.settled().map(|settled| settled.order);
    let is_before = |other: &Node| order(other) < order(node);
    let top_k = usize::try_from(run.policy.plateau.top_k).unwrap_or(usize::MAX);
    let before = run.index.ranked.iter().filter(|(_, other, epoch)| {
        *epoch == node.epoch && run.node(*other).is_some_and(is_before)
    });
    let last_of_top = before
        .map(|(score, ..)| score.0)
        .nth(top_k.saturating_sub(1));
    last_of_top.is_none_or(|last| own.is_some_and(|own| own > last))
}
