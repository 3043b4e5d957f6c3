//! SELECTION.md and DRAFT_COVERAGE.json, from the folded state alone (FIN-12, DRF-07).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vec_search::{GuardVerdict, MechanismActive, RunState};
use vec_types::{NodeId, NodeStatus, Operator, Score};

use crate::context::Context;

/// Stands for the digest of the placed file until that is known.
pub(crate) const DIGEST_MARK: &str = "{{sha256 of the placed file}}";

/// SELECTION.md for an answer by `node`.
pub(crate) fn markdown(
    state: &RunState,
    context: &Context,
    node: NodeId,
    provisional: bool,
) -> String {
    let mut text = String::new();
    let is_baseline = state.baseline() == Some(node);
    let what = if is_baseline {
        "the baseline"
    } else {
        "a candidate"
    };
    let lines = [
        format!("# Selection of run {}", context.lock.run_id),
        String::new(),
        format!(
            "Board `{}`. The answer is node {node} ({what}).",
            context.lock.board
        ),
        format!(
            "File `{}.csv`, sha256 `{DIGEST_MARK}`.",
            context.board().board.file_name()
        ),
        "Final data epoch: 0. External data: none. Literature: none.".to_owned(),
        format!("Checks: {}.", checks_word(state, node)),
        String::new(),
    ];
    for line in lines {
        push(&mut text, &line);
    }
    if provisional {
        push(
            &mut text,
            "Provisional: written before any candidate was looked at (FIN-03).",
        );
        return text;
    }
    candidates(&mut text, state);
    guard(&mut text, state.guard_verdict());
    queries(&mut text, state);
    reasons(&mut text, context);
    text
}

/// DRAFT_COVERAGE.json: drafts per family and how they ended.
pub(crate) fn coverage(state: &RunState) -> Value {
    let mut families: BTreeMap<String, BTreeMap<&str, u32>> = BTreeMap::new();
    if let Some(policy) = state.policy() {
        for family in &policy.families {
            families.entry(family.id.to_string()).or_default();
        }
    }
    for node in state
        .nodes()
        .filter(|node| node.operator == Operator::Draft)
    {
        let family = node
            .family
            .map_or_else(|| "other".to_owned(), ToString::to_string);
        *families
            .entry(family)
            .or_default()
            .entry(node.status.as_str())
            .or_default() += 1;
    }
    json!({ "drafts": families, "harness_mechanism_active": mechanisms(state) })
}

/// Settled nodes by the result of their control run; `not_run` where none was due.
fn mechanisms(state: &RunState) -> BTreeMap<&'static str, u32> {
    let mut counts = BTreeMap::new();
    for node in state.nodes().filter(|node| node.settled_at.is_some()) {
        let active = node.mechanism_active.map(MechanismActive::as_str);
        let word = active.unwrap_or("not_run");
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// What was checked of the answer, and how many control runs the search made.
fn checks_word(state: &RunState, node: NodeId) -> String {
    let view = state.node(node).and_then(|node| node.view_check);
    let view = view.unwrap_or("not_run");
    let verdict = if state.baseline() == Some(node) {
        "not due for the baseline".to_owned()
    } else {
        view.to_owned()
    };
    let runs: u32 = mechanisms(state)
        .into_iter()
        .filter(|(word, _)| *word != "not_run")
        .map(|(_, count)| count)
        .sum();
    format!("view check of the answer: {verdict}; {runs} nodes have a control run")
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn score(value: Option<Score>) -> String {
    value.map_or_else(|| "-".to_owned(), |score| score.to_string())
}

fn candidates(text: &mut String, state: &RunState) {
    push(text, "## Candidates\n");
    push(
        text,
        "| node | operator | family | ranking score | seeds | status |",
    );
    push(text, "|---|---|---|---|---|---|");
    let baseline = state.baseline();
    let skipped = state.skipped();
    let shown = baseline.into_iter().chain(state.final_candidates());
    for node in shown.filter_map(|id| state.node(id)) {
        let status = match skipped.get(&node.id) {
            Some(why) => format!("skipped: {why:?}"),
            None if Some(node.id) == baseline => "baseline".to_owned(),
            None => "candidate".to_owned(),
        };
        let seeds: Vec<String> = node
            .scores
            .iter()
            .map(|(exec, report)| format!("{exec} {}", report.total))
            .collect();
        let family = node
            .family
            .map_or_else(|| "-".to_owned(), ToString::to_string);
        push(
            text,
            &format!(
                "| {} | {} | {family} | {} | {} | {status} |",
                node.id,
                node.operator.as_str(),
                score(node.ranking_score),
                seeds.join(", "),
            ),
        );
    }
    let settled = state
        .nodes()
        .filter(|node| node.status == NodeStatus::Scored)
        .count();
    push(text, &format!("\n{settled} scored nodes in this run.\n"));
}

fn guard(text: &mut String, verdict: Option<&GuardVerdict>) {
    push(text, "## Guard\n");
    let Some(verdict) = verdict else {
        push(
            text,
            "No candidate reached the guard; the baseline stays.\n",
        );
        return;
    };
    push(text, "| fresh seed | candidate | baseline | difference |");
    push(text, "|---|---|---|---|");
    for pair in &verdict.pairs {
        let difference = match (pair.candidate, pair.baseline) {
            (Some(a), Some(b)) => format!("{:+.4}", a.get() - b.get()),
            _ => "-".to_owned(),
        };
        push(
            text,
            &format!(
                "| {} | {} | {} | {difference} |",
                pair.seed,
                score(pair.candidate),
                score(pair.baseline)
            ),
        );
    }
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"));
    let line = format!(
        "\nMean gain {}, sd {}, one-sided 97.5 % lower bound {}. Complete: {}. {}",
        number(verdict.mean),
        number(verdict.sd),
        number(verdict.lower_bound),
        if verdict.complete { "yes" } else { "no" },
        verdict.why
    );
    push(text, &line);
    let conclusion = if verdict.replace {
        "The candidate replaces the baseline.\n"
    } else {
        "The baseline is kept.\n"
    };
    push(text, conclusion);
}

// The score-leak budget (decisions.md, Evidence): how much of half A agents have seen.
fn queries(text: &mut String, state: &RunState) {
    let sessions: Vec<Option<u32>> = state
        .nodes()
        .filter_map(|node| Some(node.session?.queries_used))
        .collect();
    let known: u32 = sessions.iter().flatten().sum();
    let unknown = sessions.iter().filter(|used| used.is_none()).count();
    push(text, "## Score-leak budget\n");
    push(
        text,
        &format!(
            "{} sessions asked half A {known} times (scores rounded to 4 decimals); {unknown} \
             sessions with an unknown count.\n",
            sessions.len()
        ),
    );
}

fn reasons(text: &mut String, context: &Context) {
    push(text, "## Reasons against submission\n");
    if context.lock.reasons.is_empty() {
        push(text, "None.");
    }
    for reason in &context.lock.reasons {
        push(text, &format!("- {reason}"));
    }
}
