//! Rankings of scored nodes: who is promoted next, who is reviewed, who enters final selection
//! (PRO-01, PRO-05, REV-02, MTH-03, FIN-05).

use std::collections::BTreeSet;

use vec_types::{NodeId, Operator, Score, SeedState, UnixMs};

use crate::node::Node;
use crate::retry::Retry;
use crate::state::Run;
use crate::{REVIEW_ATTEMPTS_MAX, ReviewVerdict};

/// Scored nodes, best ranking score first, the older first among equals (O-CID-3).
pub(crate) fn ranked(run: &Run) -> impl Iterator<Item = (&Node, Score)> {
    let ranked = run.index.ranked.iter();
    ranked.filter_map(|(score, id, _)| Some((run.node(*id)?, score.0)))
}

/// May the node be promoted or be a final candidate, its review apart?
fn may_compete(run: &Run, node: &Node) -> bool {
    let seed_may = node
        .seed
        .as_ref()
        .is_none_or(|seed| seed.state == SeedState::Exploration);
    seed_may
        && node.settled().is_some_and(|settled| !settled.no_progress)
        && node.review.verdict != Some(ReviewVerdict::Fail)
        && !node.is_view_dependent()
        && !node.view.is_out()
        && !node.promotion.is_out(run.epoch)
}

/// MTH-03: a node with a placeholder METHOD is blocked until a review has passed it.
fn is_gated(node: &Node) -> bool {
    node.is_method_auto() && node.review.verdict != Some(ReviewVerdict::Pass)
}

/// One node per identity group, best first, without the baseline's group. A promoted member
/// stands for its whole group (PRO-05), else the best one does.
fn slate(run: &Run, top_k: u32, admits: impl Fn(&Node) -> bool) -> Vec<&Node> {
    let groups = &run.index.groups;
    let mut taken: BTreeSet<NodeId> = run
        .anchor()
        .map(|anchor| groups.root(anchor.id))
        .into_iter()
        .collect();
    let stands = |node: &Node| may_compete(run, node) && admits(node);
    let is_promoted = |node: &Node| node.promotion.mean.is_some();
    let is_represented = |node: &Node| {
        let mut others = groups.others(node.id).filter_map(|id| run.node(id));
        !is_promoted(node) && others.any(|other| is_promoted(other) && stands(other))
    };
    let size = usize::try_from(top_k).unwrap_or(usize::MAX);
    ranked(run)
        .map(|(node, _)| node)
        .filter(|node| stands(node) && !is_represented(node))
        .filter(|node| taken.insert(groups.root(node.id)))
        .take(size)
        .collect()
}

/// The node to promote next: the best of the top k that is not promoted in this data epoch yet
/// (PRO-01, O-PRO-1) and that no fault of ours makes wait.
pub(crate) fn next_promotion(run: &Run, at: UnixMs) -> Option<&Node> {
    slate(run, run.policy.promotion_top_k, |node| !is_gated(node))
        .into_iter()
        .filter(|node| !node.promotion.is_running() && !node.promotion.is_done(run.epoch))
        .find(|node| !run.is_paused(node.id, Retry::Run, at))
}

/// Candidates of final selection, best first; reviews may still be missing (FIN-05).
pub(crate) fn final_candidates(run: &Run) -> Vec<NodeId> {
    let admits = |node: &Node| is_reviewed(node) || node.review.attempts < REVIEW_ATTEMPTS_MAX;
    slate(run, run.policy.final_top_k, admits)
        .into_iter()
        .map(|node| node.id)
        .collect()
}

/// Seeds need no review (SED-10); everything else needs a pass.
pub(crate) fn is_reviewed(node: &Node) -> bool {
    node.operator == Operator::Seed || node.review.verdict == Some(ReviewVerdict::Pass)
}

/// Nodes that a review is due for: the top tenth above the best seed (O-REV-1), and gated nodes
/// that would be promoted (MTH-03, O-MTH-1).
pub(crate) fn due_reviews(run: &Run) -> Vec<NodeId> {
    let eligible: Vec<(&Node, Score)> = ranked(run)
        .filter(|(node, _)| node.review.verdict != Some(ReviewVerdict::Fail))
        .collect();
    let best_seed = eligible
        .iter()
        .filter(|(node, _)| node.operator == Operator::Seed)
        .map(|(_, score)| *score)
        .max();
    let tenth = eligible.len().div_ceil(10);
    let high = eligible
        .iter()
        .take(tenth)
        .filter(|(_, score)| best_seed.is_none_or(|seed| *score > seed))
        .map(|(node, _)| *node);
    let gated = slate(run, run.policy.promotion_top_k, |_| true)
        .into_iter()
        .filter(|node| is_gated(node));
    let due: BTreeSet<NodeId> = high
        .chain(gated)
        .filter(|node| !is_reviewed(node) && node.review.attempts < REVIEW_ATTEMPTS_MAX)
        .map(|node| node.id)
        .collect();
    due.into_iter().collect()
}
