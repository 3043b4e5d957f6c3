//! The reserved improve (SEL-10): the first qualified draft of every method family is sure of one.

use std::collections::BTreeSet;

use vec_types::{FamilyId, NodeId, Operator};

use crate::identity::has_same_output;
use crate::node::{Node, SEED_0};
use crate::state::Run;

/// The oldest draft in the pool that is still owed its improve. `pool` is in order of nodes.
pub(super) fn owed(run: &Run, pool: &[&Node]) -> Option<NodeId> {
    let margin = run.policy.select.reserve_improve?;
    let anchor = run.anchor()?;
    let floor = anchor.score(SEED_0)?.total.get() - margin;
    let mut families: BTreeSet<&FamilyId> = BTreeSet::new();
    for node in run
        .nodes
        .iter()
        .filter(|node| node.operator == Operator::Draft)
    {
        let Some(family) = node.family.as_ref().filter(|id| !families.contains(id)) else {
            continue;
        };
        if !is_qualified(run, node, anchor, floor) {
            continue;
        }
        if node.children.improves() == 0 && is_in(pool, node.id) {
            return Some(node.id);
        }
        families.insert(family);
    }
    None
}

fn is_in(pool: &[&Node], id: NodeId) -> bool {
    pool.binary_search_by_key(&id, |node| node.id).is_ok()
}

/// A scored draft with an output of its own, not far below the baseline.
fn is_qualified(run: &Run, node: &Node, anchor: &Node, floor: f64) -> bool {
    node.is_scored()
        && node
            .score(SEED_0)
            .is_some_and(|score| score.total.get() >= floor)
        && !has_same_output(run, node, anchor)
}
