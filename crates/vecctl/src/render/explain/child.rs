//! The choice of a parent: one sentence, the best standings, who was left out.

use vec_search::SelectReason;

use super::{entry, ids};
use crate::explain::{Child, LeftOut, Row};
use crate::render::{Align, table};

/// Standings that are shown, the winner aside.
const ROWS_MAX: usize = 12;

pub(super) fn lines(child: &Child) -> Vec<String> {
    let mut sentence = sentence(child);
    if child.plateau {
        sentence.push_str("; the search stood still");
    }
    let mut lines = vec![entry("why", &sentence), String::new()];
    lines.extend(standings(child));
    lines.push(String::new());
    lines.extend(child.left_out.iter().map(left_out));
    lines
}

fn sentence(child: &Child) -> String {
    let parent = child.parent;
    match child.reason {
        SelectReason::ReserveImprove => format!(
            "node {parent} is the oldest draft that is still owed its improve (SEL-10), whatever \
             its U"
        ),
        SelectReason::ArgmaxU if child.pool == 1 => {
            format!("node {parent} is the only eligible parent")
        }
        SelectReason::ArgmaxU => {
            format!("{} of {} eligible parents", largest(child), child.pool)
        }
        SelectReason::ArgmaxUBusy => format!(
            "every eligible parent was busy, so busy ones could be chosen, too: {} of {}",
            largest(child),
            child.pool
        ),
        SelectReason::ArgmaxUSuspended => format!(
            "all were suspended after failed children, so that was lifted: {} of {}",
            largest(child),
            child.pool
        ),
        SelectReason::DebugTarget => format!(
            "node {parent} failed with {} and is repaired (O-OPR-2): {}",
            child.parent_status.as_str(),
            repair(child)
        ),
    }
}

/// `node 7 has the largest U`, with who was passed over among equals.
fn largest(child: &Child) -> String {
    let parent = child.parent;
    match equals(child) {
        0 | 1 => format!("node {parent} has the largest U"),
        n => format!("node {parent}, the oldest of {n} with the largest U,"),
    }
}

fn repair(child: &Child) -> String {
    match (child.pool, equals(child)) {
        (1, _) => "it is the only one that can be".to_owned(),
        (pool, 0 | 1) => format!("it has the largest U of {pool} that can be"),
        (pool, n) => format!("the newest of {n} with the largest U, of {pool} that can be"),
    }
}

/// Standings with the winner's U.
fn equals(child: &Child) -> usize {
    let rows = &child.standings;
    let Some(winner) = rows.iter().find(|row| row.winner) else {
        return 0;
    };
    let equal = rows.iter().filter(|row| row.u.total_cmp(&winner.u).is_eq());
    equal.count()
}

fn standings(child: &Child) -> Vec<String> {
    let mut head = vec![("node", Align::Right), ("score", Align::Right)];
    if child.has_epochs {
        head.push(("epoch", Align::Right));
    }
    let numbers = ["rank", "visits", "exploration", "U"];
    head.extend(numbers.map(|name| (name, Align::Right)));
    head.push(("", Align::Left));
    let is_shown = |(place, row): &(usize, &Row)| *place < ROWS_MAX || row.winner;
    let shown = child.standings.iter().enumerate().filter(is_shown);
    let rows: Vec<Vec<String>> = shown.map(|(_, row)| cells(row, child.has_epochs)).collect();
    let mut lines = table(&head, &rows);
    let pool = usize::try_from(child.pool).unwrap_or(usize::MAX);
    match pool.saturating_sub(rows.len()) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

fn cells(row: &Row, has_epochs: bool) -> Vec<String> {
    let score = row.score.map(|score| score.to_string());
    let mut cells = vec![
        format!("#{}", row.node),
        score.unwrap_or_else(|| row.status.as_str().to_owned()),
    ];
    if has_epochs {
        cells.push(row.epoch.to_string());
    }
    cells.push(format!("{:.4}", row.rank));
    cells.push(row.visits.to_string());
    cells.push(format!("{:.4}", row.exploration));
    cells.push(format!("{:.4}", row.u));
    cells.push(if row.winner { "<- chosen" } else { "" }.to_owned());
    cells
}

fn left_out(group: &LeftOut) -> String {
    let LeftOut { why, nodes } = group;
    entry(
        "left out",
        &format!("{why} ({}): {}", nodes.len(), ids(nodes)),
    )
}
