//! Reads reference cases (JSON lines) and compares them with `vec_search::futs`, bit for bit.
//!
//! Two kinds of case: one tree with `visits, rank_scores, pucts, selected`, every node expanded in
//! order; and `trace`, a whole search whose root has no visit before the first expansion, with
//! the chosen parent of every step and the best node.

use serde::Deserialize;
use vec_search::futs::{Tree, first_maximum};

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Word(String),
}

#[derive(Deserialize)]
struct Case {
    kind: String,
    c_puct: f64,
    parents: Vec<Option<usize>>,
    scores: Vec<Number>,
    visits: Option<Vec<u64>>,
    rank_scores: Option<Vec<f64>>,
    pucts: Option<Vec<f64>>,
    selected: Option<usize>,
    best: Option<usize>,
}

/// Compares every line; the number of cases, or `line: field: what differs`.
pub(crate) fn replay(text: &str) -> Result<usize, String> {
    let mut cases = 0;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        replay_line(line).map_err(|problem| format!("{}: {problem}", index + 1))?;
        cases += 1;
    }
    if cases == 0 {
        return Err("1: the file holds no case".to_owned());
    }
    Ok(cases)
}

fn replay_line(line: &str) -> Result<(), String> {
    let case: Case = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let scores: Vec<f64> = case.scores.iter().map(number).collect::<Result<_, _>>()?;
    if case.parents.len() != scores.len() || scores.is_empty() {
        return Err("parents and scores must have the same length, above 0".to_owned());
    }
    if case.kind == "trace" {
        replay_trace(&case, &scores)
    } else {
        replay_tree(&case, &scores)
    }
}

fn number(number: &Number) -> Result<f64, String> {
    match number {
        Number::Finite(value) => Ok(*value),
        Number::Word(word) if word == "-inf" => Ok(f64::NEG_INFINITY),
        Number::Word(word) => Err(format!("scores: {word:?} is neither a number nor \"-inf\"")),
    }
}

fn field<T>(value: Option<T>, name: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("{name} is missing"))
}

fn replay_tree(case: &Case, scores: &[f64]) -> Result<(), String> {
    let mut tree = Tree::new();
    for (parent, score) in case.parents.iter().zip(scores) {
        tree.expand(*parent, *score)
            .map_err(|error| error.to_string())?;
    }
    let selection = field(tree.select(case.c_puct), "a node")?;
    let visits = field(case.visits.as_ref(), "visits")?;
    if tree.visits() != visits {
        return Err(format!("visits: {:?}, expected {visits:?}", tree.visits()));
    }
    let ranks = field(case.rank_scores.as_ref(), "rank_scores")?;
    same_bits("rank_scores", &selection.rank_scores, ranks)?;
    let pucts = field(case.pucts.as_ref(), "pucts")?;
    same_bits("pucts", &selection.pucts, pucts)?;
    same(
        "selected",
        selection.selected,
        field(case.selected, "selected")?,
    )
}

fn replay_trace(case: &Case, scores: &[f64]) -> Result<(), String> {
    let mut tree = Tree::with_root(scores[0]).map_err(|error| error.to_string())?;
    for (node, score) in scores.iter().enumerate().skip(1) {
        let selection = field(tree.select(case.c_puct), "a node")?;
        let parent = field(case.parents[node], &format!("parents[{node}]"))?;
        same(&format!("parents[{node}]"), selection.selected, parent)?;
        tree.expand(Some(parent), *score)
            .map_err(|error| error.to_string())?;
    }
    let best = field(first_maximum(scores), "a node")?;
    same("best", best, field(case.best, "best")?)
}

fn same(name: &str, found: usize, expected: usize) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{name}: {found}, expected {expected}"))
    }
}

fn same_bits(name: &str, found: &[f64], expected: &[f64]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!(
            "{name}: {} values, expected {}",
            found.len(),
            expected.len()
        ));
    }
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
    match found.iter().zip(expected).position(differs) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{name}[{at}]: {:?}, expected {:?}",
            found[at], expected[at]
        )),
    }
}
