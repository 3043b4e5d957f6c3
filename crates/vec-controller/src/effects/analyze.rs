//! Analyze: the Analyst's call. Its failure never changes a node (O-REV-3).

use std::time::Duration;

use vec_config::Role;
use vec_roles::{AgentLog, AnalystInput, BoardBrief, NodeSummary, analyst_prompt, parse_analysis};
use vec_search::{MechanismActive, Outcome, RunState};
use vec_store::{NewFile, rel};
use vec_types::{FamilyId, NodeId, ScoreReport, TreeId};

use crate::context::Context;
use crate::effects::ask::{Call, ask};
use crate::effects::{Done, EffectError, Limits};
use crate::portrait;

/// Longest Analyst call (ANA-01).
const ANALYST_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Longest diff shown.
const DIFF_CHARS_MAX: usize = 12_000;

/// What the Analyst is shown.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    board: BoardBrief,
    summary: NodeSummary,
    report: Option<ScoreReport>,
    parent: Option<NodeSummary>,
    parent_report: Option<ScoreReport>,
    commit: Option<TreeId>,
    parent_commit: Option<TreeId>,
    fault: Option<String>,
    mechanism_active: Option<MechanismActive>,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
) -> Result<Input, EffectError> {
    let view = state.node(node).ok_or_else(|| EffectError::Failed {
        what: "analyze",
        cause: format!("node {node} does not exist"),
    })?;
    let parent = view.parent.and_then(|id| state.node(id));
    Ok(Input {
        node,
        board: context.board_brief(state),
        summary: portrait::summary(&view),
        report: portrait::report(state, node),
        parent: parent.as_ref().map(portrait::summary),
        parent_report: view.parent.and_then(|id| portrait::report(state, id)),
        commit: view.commit.map(|info| info.commit.clone()),
        parent_commit: parent.and_then(|parent| parent.commit.map(|info| info.commit.clone())),
        fault: portrait::fault_detail(&view),
        mechanism_active: view.mechanism_active,
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
    let before = match &input.parent_commit {
        Some(commit) => portrait::program(context, commit.clone()).await?.run_py,
        None => String::new(),
    };
    let diff = diff(&before, &program.run_py);
    let plan = portrait::plan(context, input.node);
    let last_message = last_message(context, input.node);
    let prompt = analyst_prompt(&AnalystInput {
        texts: &context.texts,
        board: &input.board,
        node: &input.summary,
        attempt: 0,
        plan: plan.as_ref(),
        report: input.report.as_ref(),
        parent: input.parent.as_ref(),
        parent_report: input.parent_report.as_ref(),
        method: &program.method,
        diff: Some(&diff),
        last_message: last_message.as_deref(),
        fault: input.fault.as_deref(),
        stderr_tail: None,
        mechanism_active: input.mechanism_active,
    });
    let call = Call {
        role: Role::Analyst,
        node: input.node,
        attempt: 0,
        timeout: ANALYST_TIMEOUT,
    };
    let Some(answer) = ask(context, call, prompt, limits).await? else {
        return Ok(limits.cut());
    };
    let families: Vec<FamilyId> = input
        .board
        .families
        .iter()
        .map(|family| family.id.clone())
        .collect();
    let mut files = answer.files;
    let parsed = answer
        .text
        .and_then(|text| parse_analysis(&text, &families).ok());
    let outcome = match &parsed {
        Some(analysis) => {
            let bytes = vec_types::pretty_json(analysis)
                .map_err(|error| EffectError::failed("write ANALYSIS.json", &error))?;
            files.push(NewFile::create(rel::analysis(input.node), bytes));
            Outcome::Analyzed {
                written: true,
                family: analysis.family_id.clone(),
            }
        }
        None => Outcome::Analyzed {
            written: false,
            family: None,
        },
    };
    Ok(Done::new(outcome)
        .with_files(files)
        .with_span("analyze.model", answer.waited))
}

fn diff(before: &str, after: &str) -> String {
    let text = similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header("parent/run.py", "run.py")
        .to_string();
    text.chars().take(DIFF_CHARS_MAX).collect()
}

fn last_message(context: &Context, node: NodeId) -> Option<String> {
    let directory = rel::trajectory(node, "engineer", 0).ok()?;
    let path = context
        .layout
        .at(&rel::join(&directory, "events.jsonl").ok()?);
    AgentLog::parse(&std::fs::read(path).ok()?).last_message
}
