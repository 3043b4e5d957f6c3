//! Rankings of scored nodes: who is promoted next, who is reviewed, who enters final selection
//! (PRO-01, PRO-05, REV-02, MTH-03, FIN-05).

use std::collections::BTreeSet;

use vec_types::{NodeId, Operator, Score, SeedState};

use crate::identity::Groups;
use crate::node::{Node, Promotion};
use crate::state::Run;
use crate::{REVIEW_ATTEMPTS_MAX, ReviewVerdict};

/// Scored nodes, best ranking score first, the older first among equals (O-CID-3).
pub(crate) fn ranked(run: &Run) -> Vec<(&Node, Score)> {
    let scored = run.nodes.iter();
    let mut ranked: Vec<(&Node, Score)> = scored
        .filter_map(|node| Some((node, node.ranking_score()?)))
        .collect();
    ranked.sort_by(|(a, a_score), (b, b_score)| b_score.cmp(a_score).then(a.id.cmp(&b.id)));
    ranked
}

/// May the node be promoted or be a final candidate, its review apart?
fn may_compete(node: &Node) -> bool {
    let seed_may = node
        .seed
        .as_ref()
        .is_none_or(|seed| seed.state == SeedState::Exploration);
    seed_may
        && node.settled().is_some_and(|settled| !settled.no_progress)
        && node.review.verdict != Some(ReviewVerdict::Fail)
        && !matches!(node.promotion, Promotion::Failed { .. })
}

/// MTH-03: a node with a placeholder METHOD is blocked until a review has passed it.
fn is_gated(node: &Node) -> bool {
    node.is_method_auto() && node.review.verdict != Some(ReviewVerdict::Pass)
}

/// One node per identity group, best first, without the baseline's group. A promoted member
/// stands for its whole group (PRO-05), else the best one does.
fn slate(run: &Run, top_k: u32, admits: impl Fn(&Node) -> bool) -> Vec<&Node> {
    let groups = Groups::of(run);
    let mut taken: BTreeSet<NodeId> = run
        .anchor()
        .map(|anchor| groups.root(anchor.id))
        .into_iter()
        .collect();
    let ranked: Vec<&Node> = ranked(run)
        .into_iter()
        .map(|(node, _)| node)
        .filter(|node| may_compete(node) && admits(node))
        .collect();
    let promoted: BTreeSet<NodeId> = ranked
        .iter()
        .filter(|node| matches!(node.promotion, Promotion::Done { .. }))
        .map(|node| groups.root(node.id))
        .collect();
    let size = usize::try_from(top_k).unwrap_or(usize::MAX);
    ranked
        .into_iter()
        .filter(|node| {
            let root = groups.root(node.id);
            let stands =
                !promoted.contains(&root) || matches!(node.promotion, Promotion::Done { .. });
            stands && taken.insert(root)
        })
        .take(size)
        .collect()
}

/// The node to promote next: the best of the top k that is not promoted yet (PRO-01).
pub(crate) fn next_promotion(run: &Run) -> Option<&Node> {
    slate(run, run.policy.promotion_top_k, |node| !is_gated(node))
        .into_iter()
        .find(|node| matches!(node.promotion, Promotion::None { .. }))
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
        .into_iter()
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
