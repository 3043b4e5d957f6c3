//! `vecctl status` and `vecctl show`: read only; `show` trusts no daemon.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use vec_clock::{Clock as _, SystemClock};
use vec_config::Lock;
use vec_launcher::run_view;
use vec_proto::pb::launcher::v1 as pb;
use vec_search::{MechanismActive, NodeView, RunState, RunStatus};
use vec_store::{RunLayout, verify_ledger};
use vec_types::NodeId;

use crate::context::Context;
use crate::failure::Refused;
use crate::output;
use crate::render::{Align, Finish, clip, summary, table};
use crate::verbs::calls::request;

/// Longest text in a table cell in characters.
const CELL_CHARS_MAX: usize = 48;

/// Deadline of a status call.
const STATUS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// `vecctl status RUN`.
pub(crate) async fn status(context: &Context, run: &str) -> Result<()> {
    let run = context.run(run)?;
    let status: RunStatus = match context.launcher_if_needed().await? {
        Some(mut client) => {
            let message = pb::StatusRequest {
                run_id: run.id.to_string(),
            };
            let reply = client.status(request(message, STATUS_TIMEOUT)).await;
            let json = reply.map_err(Refused::from)?.into_inner().json;
            serde_json::from_str(&json).context("read the status of the run")?
        }
        None => fold(run.dir()?).await?.status(SystemClock.now()),
    };
    if context.json {
        return output::json(&status);
    }
    let finish = Finish {
        status,
        run_dir: run.dir.clone(),
        ledger_head: None,
        overhead_ms: None,
        reasons: None,
    };
    summary(&finish).iter().for_each(|line| output::line(line));
    Ok(())
}

async fn fold(run_dir: &Path) -> Result<RunState> {
    let layout = RunLayout::of_run_dir(run_dir)?;
    Ok(run_view::state(&layout).await?)
}

/// Everything the summary shows, from the run directory alone.
pub(crate) async fn finish(run_dir: &Path) -> Result<Finish> {
    let layout = RunLayout::of_run_dir(run_dir)?;
    let state = run_view::state(&layout).await?;
    let ledger = std::fs::read(layout.ledger()).context("read the ledger")?;
    let meta = std::fs::read(layout.run_meta()).ok();
    let meta: Option<Value> = meta.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let overhead = meta
        .as_ref()
        .and_then(|meta| meta.pointer("/harness_overhead/median_ms"));
    let lock = Lock::read(&layout.config_lock())?;
    Ok(Finish {
        status: state.status(SystemClock.now()),
        run_dir: Some(run_dir.to_owned()),
        // A damaged ledger is for `verify` to explain.
        ledger_head: verify_ledger(&ledger).ok().map(|report| report.head),
        overhead_ms: overhead.and_then(Value::as_f64),
        reasons: Some(lock.reasons.iter().map(ToString::to_string).collect()),
    })
}

/// `vecctl show RUN`.
pub(crate) async fn tree(context: &Context, run: &str) -> Result<()> {
    let run = context.run(run)?;
    let state = fold(run.dir()?).await?;
    if context.json {
        let nodes: Vec<Value> = state.nodes().map(|node| node_json(&node)).collect();
        return output::json(&json!({"run": run.id, "nodes": nodes}));
    }
    let head = [
        ("node", Align::Left),
        ("operator", Align::Left),
        ("family", Align::Left),
        ("status", Align::Left),
        ("score", Align::Right),
        ("promotion", Align::Left),
        ("review", Align::Left),
        ("mechanism", Align::Left),
        ("view check", Align::Left),
        ("what", Align::Left),
    ];
    let rows: Vec<Vec<String>> = in_tree_order(&state)
        .into_iter()
        .filter_map(|(depth, id)| Some(row(depth, &state.node(id)?)))
        .collect();
    table(&head, &rows)
        .iter()
        .for_each(|line| output::line(line));
    let finish = finish(run.dir()?).await?;
    output::line("");
    summary(&finish).iter().for_each(|line| output::line(line));
    Ok(())
}

/// Nodes depth first, children in order of creation, with their depth.
fn in_tree_order(state: &RunState) -> Vec<(usize, NodeId)> {
    let mut order = Vec::new();
    let mut stack: Vec<(usize, NodeId)> = children(state, None).map(|id| (0, id)).collect();
    stack.reverse();
    while let Some((depth, id)) = stack.pop() {
        order.push((depth, id));
        let mut below: Vec<_> = children(state, Some(id))
            .map(|id| (depth + 1, id))
            .collect();
        below.reverse();
        stack.extend(below);
    }
    order
}

fn children(state: &RunState, parent: Option<NodeId>) -> impl Iterator<Item = NodeId> {
    state
        .nodes()
        .filter(move |node| node.parent == parent)
        .map(|node| node.id)
}

fn row(depth: usize, node: &NodeView<'_>) -> Vec<String> {
    let dash = |word: &str| {
        if word == "none" {
            "-".to_owned()
        } else {
            word.to_owned()
        }
    };
    vec![
        format!("{}#{}", "  ".repeat(depth), node.id),
        node.operator.as_str().to_owned(),
        node.family
            .map_or_else(|| "-".to_owned(), ToString::to_string),
        node.status.as_str().to_owned(),
        node.ranking_score
            .map_or_else(|| "-".to_owned(), |score| score.to_string()),
        dash(node.promotion),
        dash(node.review),
        dash(
            node.mechanism_active
                .map_or("none", MechanismActive::as_str),
        ),
        dash(node.view_check.unwrap_or("none")),
        output::printable(&clip(&what(node), CELL_CHARS_MAX)),
    ]
}

fn what(node: &NodeView<'_>) -> String {
    if !node.detail.is_empty() {
        return node.detail.to_owned();
    }
    match (&node.plan, node.seed_program) {
        (Some(plan), _) => plan.name.to_owned(),
        (None, Some(program)) => format!("seed program {program}"),
        (None, None) => node.stage.to_owned(),
    }
}

/// `vecctl show RUN NODE`.
pub(crate) async fn node(context: &Context, run: &str, id: u32) -> Result<()> {
    let run = context.run(run)?;
    let state = fold(run.dir()?).await?;
    let node = state.node(NodeId(id)).with_context(|| {
        format!(
            "run {} has no node {id}; it has {} nodes",
            run.id,
            state.nodes().count()
        )
    })?;
    if context.json {
        return output::json(&node_json(&node));
    }
    let layout = RunLayout::of_run_dir(run.dir()?)?;
    for (word, facts) in node_facts(&node) {
        output::line(&format!("{word:<12}{facts}"));
    }
    output::line(&format!(
        "{:<12}{}",
        "files",
        layout.node(node.id).display()
    ));
    Ok(())
}

fn node_facts(node: &NodeView<'_>) -> Vec<(String, String)> {
    let mut facts = vec![
        (
            "node".to_owned(),
            format!("#{}, {}", node.id, node.operator.as_str()),
        ),
        ("status".to_owned(), node.status.as_str().to_owned()),
    ];
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((word.to_owned(), value));
        }
    };
    add("detail", Some(node.detail.to_owned()));
    add("parent", node.parent.map(|parent| format!("#{parent}")));
    add("family", node.family.map(ToString::to_string));
    add("program", node.seed_program.map(ToString::to_string));
    add("score", node.ranking_score.map(|score| score.to_string()));
    for (exec, report) in &node.scores {
        let parts: Vec<String> = report
            .parts
            .iter()
            .map(|part| format!("{} {} {:.6}", part.ruler, part.metric, part.raw))
            .collect();
        add(
            &exec.to_string(),
            Some(format!("{} ({})", report.total, parts.join(", "))),
        );
    }
    add(
        "promotion",
        Some(node.promotion.to_owned()).filter(|word| word != "none"),
    );
    add(
        "review",
        Some(node.review.to_owned()).filter(|word| word != "none"),
    );
    let mechanism = node.mechanism_active.map(MechanismActive::as_str);
    add("mechanism", mechanism.map(ToOwned::to_owned));
    add("view check", node.view_check.map(ToOwned::to_owned));
    add("refuted", node.refuted.map(ToOwned::to_owned));
    if let Some(plan) = &node.plan {
        add("plan", Some(plan.name.to_owned()));
        add("motivation", Some(plan.motivation.to_owned()));
        add("approach", Some(plan.approach.to_owned()));
    }
    if let Some(session) = node.session {
        add(
            "session",
            Some(format!("{:.1} s", session.wall_ms as f64 / 1e3)),
        );
        add("queries", session.queries_used.map(|n| n.to_string()));
    }
    add(
        "commit",
        node.commit.map(|commit| commit.commit.to_string()),
    );
    facts
}

fn node_json(node: &NodeView<'_>) -> Value {
    let scores: serde_json::Map<String, Value> = node
        .scores
        .iter()
        .map(|(exec, report)| (exec.to_string(), json!(report)))
        .collect();
    let executions: serde_json::Map<String, Value> = node
        .executions
        .iter()
        .map(|(exec, report)| (exec.to_string(), json!(report)))
        .collect();
    json!({
        "node": node.id,
        "operator": node.operator,
        "parent": node.parent,
        "family": node.family,
        "seed_program": node.seed_program,
        "status": node.status,
        "stage": node.stage,
        "detail": node.detail,
        "ranking_score": node.ranking_score,
        "scores": scores,
        "executions": executions,
        "plan": node.plan,
        "session": node.session,
        "commit": node.commit,
        "visits": node.visits,
        "promotion": node.promotion,
        "review": node.review,
        "mechanism_active": node.mechanism_active,
        "view_check": node.view_check,
        "no_progress": node.no_progress,
        "same_as_parent": node.same_as_parent,
        "budget_cut": node.budget_cut,
        "refuted": node.refuted,
        "created_at": node.created_at,
        "settled_at": node.settled_at,
    })
}
