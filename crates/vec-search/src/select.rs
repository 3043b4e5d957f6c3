//! Parent selection: `futs` inside the rules of a run (SEL): average ranks for ties, virtual visits,
//! busy parents avoided, failing parents suspended, blocked and refused parents left out.
//!
//! With every rule idle and no ties the choice is exactly that of [`crate::futs`].

use vec_types::{NodeId, NodeStatus, Operator, SeedState};

use crate::futs::{first_maximum, puct, rank_scores_averaged};
use crate::node::Node;
use crate::state::Run;
use crate::{ReviewVerdict, SelectReason, Standing};

/// A parent and what it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub parent: NodeId,
    pub reason: SelectReason,
    pub standings: Vec<Standing>,
}

/// Ranks and visits of the tree: every finished node that is not shelved (SEL-02).
struct Tree<'a> {
    run: &'a Run,
    ranks: Vec<Option<f64>>,
    count: usize,
    total_visits: u64,
}

impl<'a> Tree<'a> {
    fn of(run: &'a Run) -> Self {
        let in_tree: Vec<&Node> = run
            .nodes
            .iter()
            .filter(|node| node.status().is_in_tree())
            .collect();
        // −∞ exists only here: a failed node ranks below every score.
        let scores: Vec<f64> = in_tree
            .iter()
            .map(|node| node.ranking_score().map_or(f64::NEG_INFINITY, f64::from))
            .collect();
        let mut ranks = vec![None; run.nodes.len()];
        for (node, rank) in in_tree.iter().zip(rank_scores_averaged(&scores)) {
            if let Some(slot) = usize::try_from(node.id.0)
                .ok()
                .and_then(|i| ranks.get_mut(i))
            {
                *slot = Some(rank);
            }
        }
        Self {
            run,
            ranks,
            count: in_tree.len(),
            total_visits: in_tree.iter().map(|node| node.total_visits()).sum(),
        }
    }

    fn rank(&self, node: NodeId) -> f64 {
        let index = usize::try_from(node.0).ok();
        index.and_then(|i| *self.ranks.get(i)?).unwrap_or(0.0)
    }

    fn standing(&self, node: &Node, rank: f64) -> Standing {
        let visits = node.total_visits();
        let c_puct = self.run.policy.select.c_puct;
        Standing {
            node: node.id,
            rank,
            visits,
            u: puct(rank, visits, self.total_visits, self.count, c_puct),
        }
    }
}

/// The parent of an improve; absent when no node is eligible (SEL-08, b.4).
pub(crate) fn improve_parent(run: &Run) -> Option<Choice> {
    let eligible: Vec<&Node> = run.nodes.iter().filter(|n| is_eligible(run, n)).collect();
    let is_free = |node: &&Node| !run.suspended.contains(&node.id);
    let is_idle = |node: &&Node| node.children.running == 0;
    let free: Vec<&Node> = eligible.iter().copied().filter(is_free).collect();
    let idle: Vec<&Node> = free.iter().copied().filter(is_idle).collect();
    let (pool, reason) = if !idle.is_empty() {
        (idle, SelectReason::ArgmaxU)
    } else if !free.is_empty() {
        (free, SelectReason::ArgmaxUBusy)
    } else {
        (eligible, SelectReason::ArgmaxUSuspended)
    };
    let tree = Tree::of(run);
    let standings = pool
        .into_iter()
        .map(|node| tree.standing(node, tree.rank(node.id)))
        .collect();
    choose(standings, reason)
}

/// First maximum: the oldest node among equals (O-SEL-5), or whatever order the pool came in.
fn choose(standings: Vec<Standing>, reason: SelectReason) -> Option<Choice> {
    let us: Vec<f64> = standings.iter().map(|standing| standing.u).collect();
    let parent = standings.get(first_maximum(&us)?)?.node;
    Some(Choice {
        parent,
        reason,
        standings,
    })
}

fn is_eligible(run: &Run, node: &Node) -> bool {
    node.is_scored() && node.review.verdict != Some(ReviewVerdict::Fail) && !is_blocked(run, node)
}

/// Reference-only seeds, and exploration seeds at their child cap (SEL-09, SED-05).
fn is_blocked(run: &Run, node: &Node) -> bool {
    node.seed.as_ref().is_some_and(|seed| match seed.state {
        SeedState::Anchor => false,
        SeedState::Exploration => node.children.live >= run.policy.seed_max_children,
        SeedState::ReferenceOnly => true,
    })
}

/// The failed node that a debug repairs (O-OPR-2): largest U by the rank of its nearest scored
/// ancestor, the newest among equals. A target in repair is passed over.
pub(crate) fn debug_target(run: &Run) -> Option<Choice> {
    let tree = Tree::of(run);
    let standings = run
        .nodes
        .iter()
        .rev()
        .filter(|node| is_debug_target(run, node))
        .map(|node| {
            let ranked = scored_ancestor(run, node).unwrap_or(node.id);
            tree.standing(node, tree.rank(ranked))
        })
        .collect();
    choose(standings, SelectReason::DebugTarget)
}

fn is_debug_target(run: &Run, node: &Node) -> bool {
    let children = &node.children;
    node.status().is_candidate_fault()
        && node.operator != Operator::Seed
        && children.running == 0
        && children.debugs < run.policy.debug_max_attempts
        && !children.debug_scored
}

fn scored_ancestor(run: &Run, node: &Node) -> Option<NodeId> {
    let mut at = node.parent;
    while let Some(ancestor) = at.and_then(|id| run.node(id)) {
        if ancestor.status() == NodeStatus::Scored {
            return Some(ancestor.id);
        }
        at = ancestor.parent;
    }
    None
}
