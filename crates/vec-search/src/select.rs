//! Parent selection: `futs` inside the rules of a run (SEL): average ranks for ties, virtual visits,
//! busy parents avoided, failing parents suspended, blocked and refused parents left out, drafts that
//! are owed an improve served first.
//!
//! With every rule idle and no ties the choice is exactly that of [`crate::futs`].

mod reserve;

use vec_types::{NodeId, NodeStatus, Operator, SeedState};

use crate::futs::first_maximum;
use crate::node::Node;
use crate::planted::{self, Bug};
use crate::ranks::Ranks;
use crate::state::Run;
use crate::{OutOfPool, ReviewVerdict, STANDINGS_MAX, SelectReason, Standing};

/// A parent and what it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub parent: NodeId,
    pub reason: SelectReason,
    pub pool: u32,
    pub standings: Vec<Standing>,
}

/// The parent of an improve; absent when no node is eligible (SEL-08, b.4).
pub(crate) fn improve_parent(run: &Run, plateau: bool) -> Option<Choice> {
    let (pool, reason) = pool(run, plateau);
    let ranks = Ranks::of(run);
    let standings: Vec<Standing> = pool
        .iter()
        .map(|node| ranks.standing(node, node.id))
        .collect();
    match reserve::owed(run, &pool) {
        Some(parent) if !planted::is(Bug::ReserveForgotten) => {
            Some(choice(parent, SelectReason::ReserveImprove, standings))
        }
        _ => largest_u(reason, standings),
    }
}

/// Parents that may be chosen, oldest first: idle ones, else busy ones too, else suspended ones too.
fn pool(run: &Run, plateau: bool) -> (Vec<&Node>, SelectReason) {
    let mut eligible: Vec<&Node> = run.nodes.iter().collect();
    eligible.retain(|node| unfit(run, node, plateau).is_none());
    let is_free = |node: &&Node| !run.suspended.contains(&node.id);
    let is_idle = |node: &&Node| node.children.running.all == 0 || planted::is(Bug::BusyIgnored);
    let free: Vec<&Node> = eligible.iter().copied().filter(is_free).collect();
    let idle: Vec<&Node> = free.iter().copied().filter(is_idle).collect();
    if !idle.is_empty() {
        (idle, SelectReason::ArgmaxU)
    } else if !free.is_empty() {
        (free, SelectReason::ArgmaxUBusy)
    } else {
        (eligible, SelectReason::ArgmaxUSuspended)
    }
}

/// First maximum: the oldest node among equals (O-SEL-5), or whatever order the pool came in.
fn largest_u(reason: SelectReason, standings: Vec<Standing>) -> Option<Choice> {
    let us: Vec<f64> = standings.iter().map(|standing| standing.u).collect();
    let parent = standings.get(first_maximum(&us)?)?.node;
    Some(choice(parent, reason, standings))
}

fn choice(parent: NodeId, reason: SelectReason, mut standings: Vec<Standing>) -> Choice {
    let pool = u32::try_from(standings.len()).unwrap_or(u32::MAX);
    if standings.len() > STANDINGS_MAX {
        // The winner stays, whatever its U: a reserved draft need not have a large one.
        let rest = |standing: &Standing| standing.node != parent;
        standings.select_nth_unstable_by(STANDINGS_MAX, |a, b| {
            let by_u = b.u.total_cmp(&a.u);
            rest(a).cmp(&rest(b)).then(by_u).then(a.node.cmp(&b.node))
        });
        standings.truncate(STANDINGS_MAX);
    }
    standings.sort_by_key(|standing| standing.node);
    Choice {
        parent,
        reason,
        pool,
        standings,
    }
}

/// Why a node can never be a parent as things stand; being busy or suspended gives way (b.4).
fn unfit(run: &Run, node: &Node, plateau: bool) -> Option<OutOfPool> {
    if !node.consequence().competes {
        Some(OutOfPool::NotScored)
    } else if node.review.verdict == Some(ReviewVerdict::Fail) {
        Some(OutOfPool::ReviewFailed)
    } else if node.is_view_dependent() {
        Some(OutOfPool::ViewDependent)
    } else if is_blocked(run, node, plateau) {
        Some(OutOfPool::Blocked)
    } else {
        None
    }
}

/// Reference-only seeds, and exploration seeds at their child cap unless the search stands still
/// (SEL-09, SED-05, PLT-02).
fn is_blocked(run: &Run, node: &Node, plateau: bool) -> bool {
    node.seed.as_ref().is_some_and(|seed| match seed.state {
        SeedState::Anchor => false,
        SeedState::Exploration => {
            !plateau
                && node.children.capped() >= run.policy.seed_max_children
                && !planted::is(Bug::BlockedSeedIgnored)
        }
        SeedState::ReferenceOnly => true,
    })
}

/// Every node that is not in the pool of the next improve, and why.
pub(crate) fn out_of_pool(run: &Run, plateau: bool) -> Vec<(NodeId, OutOfPool)> {
    let (pool, _) = pool(run, plateau);
    let is_in = |id: NodeId| pool.binary_search_by_key(&id, |node| node.id).is_ok();
    let left = run.nodes.iter().filter(|node| !is_in(node.id));
    left.map(|node| {
        let yields = if run.suspended.contains(&node.id) {
            OutOfPool::Suspended
        } else {
            OutOfPool::Busy
        };
        (node.id, unfit(run, node, plateau).unwrap_or(yields))
    })
    .collect()
}

/// The failed node that a debug repairs (O-OPR-2): largest U by the rank of its nearest scored
/// ancestor, the newest among equals. A target in repair is passed over.
pub(crate) fn debug_target(run: &Run) -> Option<Choice> {
    let newest_first = run.nodes.iter().rev();
    let targets: Vec<&Node> = newest_first
        .filter(|node| is_debug_target(run, node))
        .collect();
    if targets.is_empty() {
        return None;
    }
    let ranks = Ranks::of(run);
    let standing = |node: &&Node| {
        let ranked = scored_ancestor(run, node).unwrap_or(node.id);
        ranks.standing(node, ranked)
    };
    let standings = targets.iter().map(standing).collect();
    largest_u(SelectReason::DebugTarget, standings)
}

fn is_debug_target(run: &Run, node: &Node) -> bool {
    let children = &node.children;
    node.consequence().debug_target
        && !node.is_view_dependent()
        && node.operator != Operator::Seed
        && children.running.all == 0
        && children.debugs() < run.policy.debug_max_attempts
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
