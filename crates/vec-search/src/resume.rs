//! The resume queue (CAR-13, CAR-14): carried-over work of earlier runs, oldest first, each work once
//! in all runs, a bounded number per run.

use vec_types::{NodeStatus, RunNode};

use crate::node::Node;
use crate::state::Run;
use crate::{CarriedKind, ReviewVerdict};

/// What happens to the head of the queue.
pub(crate) enum Next<'a> {
    Refused(&'a Node, &'a RunNode, &'static str),
    Taken(&'a Node, &'a RunNode),
}

/// The head of the queue; absent when it is empty or the quota of this run is used up.
pub(crate) fn next(run: &Run) -> Option<Next<'_>> {
    let (node, work) = run.index.carried.iter().find_map(|id| {
        let node = run.node(*id)?;
        let (work, _) = carried(node)?;
        (!run.works.contains(work)).then_some((node, work))
    })?;
    let parent = node.parent.and_then(|id| run.node(id));
    if parent.is_some_and(|parent| parent.review.verdict == Some(ReviewVerdict::Fail)) {
        return Some(Next::Refused(node, work, "the review of its parent failed"));
    }
    (run.resumes_taken < run.policy.continuation.max_resume).then_some(Next::Taken(node, work))
}

/// The work that a node carries.
pub(crate) fn carried(node: &Node) -> Option<(&RunNode, &CarriedKind)> {
    let carried = node.past.as_ref()?.carried.as_ref();
    let (work, kind) = carried.filter(|_| node.status() == NodeStatus::CarriedOver)?;
    Some((work, kind))
}
