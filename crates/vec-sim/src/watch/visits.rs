//! Visits: real ones are the fold of settled nodes, virtual ones of running nodes (SEL-02, SEL-04).

use vec_search::{Event, RunState};
use vec_types::NodeId;

use crate::Invariant::{SettledOnce, Shelved, VirtualVisits, Visits};
use crate::book::Book;
use crate::must;

/// Compares the nodes that the event may have changed.
pub(super) fn touched(state: &RunState, book: &Book, event: &Event) {
    let (node, is_shelved) = match event {
        Event::NodeCreated { node, .. } => (*node, false),
        Event::NodeSettled { node, status, .. } => (*node, status.is_shelved()),
        Event::Imported { node, import } => (*node, import.end.status().is_shelved()),
        Event::RescoreStart { node } | Event::RescoreCut { node, .. } => (*node, true),
        _ => return,
    };
    for id in book.chain(node) {
        compare(state, book, id, is_shelved);
    }
}

/// Compares every node, and the book with a count of its own.
pub(super) fn all(state: &RunState, book: &Book) {
    let counts = book.nodes.iter().map(|e| (e.visits, e.virtual_visits));
    let recount = book.recount();
    must(counts.eq(recount.iter().copied()), Visits, || {
        format!("the incremental count is not {recount:?}")
    });
    let found = state.nodes().count();
    must(found == book.nodes.len(), SettledOnce, || {
        format!("{found} nodes where the events made {}", book.nodes.len())
    });
    for node in 0..book.nodes.len() {
        compare(
            state,
            book,
            NodeId(u32::try_from(node).unwrap_or(u32::MAX)),
            false,
        );
    }
}

fn compare(state: &RunState, book: &Book, id: NodeId, is_shelved: bool) {
    let (Some(found), Some(entry)) = (state.node(id), book.entry(id)) else {
        return must(false, SettledOnce, || format!("node {id} does not exist"));
    };
    must(found.status == entry.status, SettledOnce, || {
        format!(
            "node {id} is {:?}, but settled as {:?}",
            found.status, entry.status
        )
    });
    must(
        found.virtual_visits == entry.virtual_visits,
        VirtualVisits,
        || {
            let (found, due) = (found.virtual_visits, entry.virtual_visits);
            format!("node {id} has {found}, but {due} running descendants")
        },
    );
    let invariant = if is_shelved { Shelved } else { Visits };
    must(found.visits == entry.visits, invariant, || {
        format!(
            "node {id} has {} visits instead of {}",
            found.visits, entry.visits
        )
    });
}
