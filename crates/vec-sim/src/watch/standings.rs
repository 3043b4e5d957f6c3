//! What a selection shows of its parents: places that fit the scores, no failure above a success, the
//! largest U chosen, and the public reference where every rule of the wrapper is off.

use vec_search::futs::Tree;
use vec_search::{Event, RunState, SelectReason, Standing};
use vec_types::{NodeId, NodeStatus};

use crate::Invariant::{Idle, Outranks, Standings};
use crate::book::{Book, index};
use crate::must;
use crate::row::Row;
use crate::rules::{Rule, Tally};

/// Compares the standings with the rows, and the parent with the standings.
pub(super) fn check(state: &RunState, rows: &[Row], event: &Event) {
    let Event::Select {
        parent,
        reason,
        pool,
        standings,
        ..
    } = event
    else {
        return;
    };
    let is_debug = *reason == SelectReason::DebugTarget;
    let shown = u32::try_from(standings.len()).unwrap_or(u32::MAX);
    must(shown == *pool, Standings, || {
        format!("{shown} standings of a pool of {pool}")
    });
    if !is_debug {
        standings.iter().for_each(|s| no_failure_above(rows, s));
        in_order(rows, standings);
    }
    for standing in standings {
        let row = &rows[index(standing.node)];
        must(standing.visits as f64 == row.visits, Standings, || {
            format!("{standing:?}, but {} visits", row.visits)
        });
    }
    // Debug targets come newest first among equals, and a reserve need not have the largest U.
    let best = standings
        .iter()
        .map(|s| s.u)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut largest = standings.iter().filter(|standing| standing.u == best);
    let first = if is_debug {
        largest.next_back()
    } else {
        largest.next()
    };
    let is_reserve = *reason == SelectReason::ReserveImprove;
    let fits = is_reserve || first.is_some_and(|s| s.node == *parent);
    must(fits, Standings, || {
        format!(
            "node {parent} is chosen from {standings:?} of {:?}",
            state.run()
        )
    });
}

/// Inside an epoch places are ordered as scores are, equal ones equally.
fn in_order(rows: &[Row], standings: &[Standing]) {
    let mut scores: Vec<(u32, f64, &Standing)> = standings
        .iter()
        .map(|standing| {
            let row = &rows[index(standing.node)];
            (row.epoch, row.score, standing)
        })
        .collect();
    scores.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    for pair in scores.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let ((_, a_score, a), (_, b_score, b)) = (pair[0], pair[1]);
        let agree = a_score.partial_cmp(&b_score) == a.rank.partial_cmp(&b.rank);
        must(agree, Standings, || {
            format!("scores {a_score} and {b_score} stand as {a:?} and {b:?}")
        });
    }
}

/// Failures share the lowest places of their epoch, so every success stands above all of them.
fn no_failure_above(rows: &[Row], standing: &Standing) {
    let epoch = rows[index(standing.node)].epoch;
    let in_tree = rows
        .iter()
        .filter(|row| row.status.is_in_tree() && row.epoch == epoch);
    let failures = in_tree.clone().filter(|row| !row.is_scored()).count();
    let n = in_tree.count();
    let place = standing.rank * (n as f64 - 1.0);
    must(n < 2 || place > failures as f64 - 0.5, Outranks, || {
        format!("{standing:?} among {failures} failures of {n} nodes")
    });
}

/// Counts ties and selections over several epochs.
pub(super) fn tally(rows: &[Row], standings: &[Standing], tally: &mut Tally) {
    let mut places: Vec<(u32, f64)> = standings
        .iter()
        .map(|standing| (rows[index(standing.node)].epoch, standing.rank))
        .collect();
    places.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    if places.windows(2).any(|pair| pair[0] == pair[1]) {
        tally.add(Rule::Tie);
    }
    if places.windows(2).any(|pair| pair[0].0 != pair[1].0) {
        tally.add(Rule::SeveralEpochs);
    }
}

/// SEL-01: the reference's tree over the nodes that count, and its choice.
pub(super) fn reference(state: &RunState, book: &Book, rows: &[Row], event: &Event) {
    let (
        Some(policy),
        Event::Select {
            parent, standings, ..
        },
    ) = (state.policy(), event)
    else {
        return;
    };
    let mut tree = Tree::new();
    let mut members: Vec<NodeId> = Vec::new();
    for (entry, row) in book.nodes.iter().zip(rows) {
        if entry.status == NodeStatus::Running || entry.status.is_shelved() {
            continue;
        }
        let place = |id: NodeId| members.iter().position(|member| *member == id);
        let grown = tree.expand(entry.parent.and_then(place), row.score);
        must(grown.is_ok(), Idle, || format!("{grown:?}"));
        members.push(row.id);
    }
    let selection = tree.select(policy.select.c_puct);
    let chosen = selection.as_ref().map(|found| members[found.selected]);
    must(chosen == Some(*parent), Idle, || {
        format!("the reference takes {chosen:?}, the wrapper {parent}")
    });
    for standing in standings {
        let place = members.iter().position(|member| *member == standing.node);
        let due = place.and_then(|place| Some(selection.as_ref()?.pucts[place]));
        must(
            due.map(f64::to_bits) == Some(standing.u.to_bits()),
            Idle,
            || format!("{standing:?}, the reference has {due:?}"),
        );
    }
}
