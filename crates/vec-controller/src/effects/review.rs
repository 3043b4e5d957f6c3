//! Review: the Reviewer's call on a high-ranking node or a final candidate (REV).

use std::time::Duration;

use serde_json::{Value, json};
use vec_config::Role;
use vec_roles::{BoardBrief, NodeSummary, ReviewerInput, parse_review, reviewer_prompt};
use vec_search::{Outcome, ReviewVerdict, RunState};
use vec_store::{NewFile, rel};
use vec_types::{NodeId, TreeId};

use crate::context::Context;
use crate::effects::ask::{Call, ask};
use crate::effects::{Done, EffectError, Limits};
use crate::portrait;

/// Longest Reviewer call (REV-01).
const REVIEWER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What the Reviewer is shown.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    attempt: u32,
    board: BoardBrief,
    summary: NodeSummary,
    commit: Option<TreeId>,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
    attempt: u32,
) -> Result<Input, EffectError> {
    let view = state.node(node).ok_or_else(|| EffectError::Failed {
        what: "review",
        cause: format!("node {node} does not exist"),
    })?;
    Ok(Input {
        node,
        attempt,
        board: context.board_brief(state),
        summary: portrait::summary(&view),
        commit: view.commit.map(|info| info.commit.clone()),
    })
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let program = match &input.commit {
        Some(commit) => portrait::program(context, commit.clone()).await?,
        None => vec_roles::ProgramText::default(),
    };
    let plan = portrait::plan(context, input.node);
    let prompt = reviewer_prompt(&ReviewerInput {
        texts: &context.texts,
        board: &input.board,
        node: &input.summary,
        attempt: input.attempt,
        plan: plan.as_ref(),
        program: &program,
        removed: &removed(context, input.node),
    });
    let call = Call {
        role: Role::Reviewer,
        node: input.node,
        attempt: input.attempt,
        timeout: REVIEWER_TIMEOUT,
    };
    let Some(answer) = ask(context, call, prompt, limits).await? else {
        return Ok(limits.cut());
    };
    let mut files = answer.files;
    let verdict = match answer.text.as_deref().map(parse_review) {
        Some(Ok(review)) => {
            let record = json!({
                "verdict": review.verdict,
                "summary": review.summary,
                "findings": review.findings,
            });
            let bytes = vec_types::pretty_json(&record)
                .map_err(|error| EffectError::failed("write REVIEW.json", &error))?;
            let path = rel::trajectory(input.node, "reviewer", input.attempt)
                .and_then(|directory| rel::join(&directory, "REVIEW.json"))
                .map_err(|error| EffectError::failed("name the review", &error))?;
            files.push(NewFile::create(path, bytes));
            review.verdict
        }
        Some(Err(error)) => {
            tracing::warn!(node = input.node.0, error = %vec_daemon::chain(&error), "review reply is no use");
            ReviewVerdict::Error
        }
        None => ReviewVerdict::Error,
    };
    Ok(Done::new(Outcome::Reviewed { verdict })
        .with_files(files)
        .with_span("review.model", answer.waited))
}

// Sentences that Compliance removed: they must not reappear in METHOD or code (CMP-04).
fn removed(context: &Context, node: NodeId) -> Vec<String> {
    let read = || {
        let directory = rel::trajectory(node, "compliance", 0).ok()?;
        let path = context
            .layout
            .at(&rel::join(&directory, "removed.json").ok()?);
        let list: Vec<Value> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let sentence = |removed: &Value| Some(removed.get("sentence")?.as_str()?.to_owned());
        Some(list.iter().filter_map(sentence).collect())
    };
    read().unwrap_or_default()
}
