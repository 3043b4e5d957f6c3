//! Plan: the Researcher's call; an invalid PLAN is retried once with the error (RES-07).

use std::time::Duration;

use vec_config::Role;
use vec_roles::{BoardBrief, NodeSummary, ResearcherInput, parse_plan, researcher_prompt};
use vec_search::{Outcome, PlanResult, RunState};
use vec_store::{NewFile, rel};
use vec_types::{FamilyId, InfraFault, NodeId, Operator};

use crate::context::Context;
use crate::effects::ask::{Call, ask};
use crate::effects::{Done, EffectError, Limits};
use crate::portrait::{self, Parent};

/// Longest Researcher call (RES-01).
const RESEARCHER_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Calls until an invalid plan is the node's end.
const ATTEMPTS_MAX: u32 = 2;

/// What the Researcher is shown.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    operator: Operator,
    family: Option<FamilyId>,
    board: BoardBrief,
    parent: Option<Parent>,
    tree: Vec<NodeSummary>,
    families: Vec<FamilyId>,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
) -> Result<Input, EffectError> {
    let view = state.node(node).ok_or_else(|| EffectError::Failed {
        what: "plan",
        cause: format!("node {node} does not exist"),
    })?;
    let board = context.board_brief(state);
    Ok(Input {
        node,
        operator: view.operator,
        family: view.family.cloned(),
        families: board
            .families
            .iter()
            .map(|family| family.id.clone())
            .collect(),
        board,
        parent: portrait::parent(state, context, node),
        tree: portrait::tree(state, context, view.parent),
    })
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let parent = match input.parent {
        Some(parent) => Some(parent.with_program(context).await?),
        None => None,
    };
    let mut files = Vec::new();
    let mut waited = Duration::ZERO;
    let mut feedback: Option<String> = None;
    for attempt in 0..ATTEMPTS_MAX {
        let prompt = researcher_prompt(&ResearcherInput {
            texts: &context.texts,
            board: &input.board,
            node: input.node,
            attempt,
            operator: input.operator,
            family: input.family.clone(),
            parent: parent.as_ref(),
            tree: &input.tree,
            feedback: feedback.take(),
        });
        let call = Call {
            role: Role::Researcher,
            node: input.node,
            attempt,
            timeout: RESEARCHER_TIMEOUT,
        };
        let Some(answer) = ask(context, call, prompt, limits).await? else {
            return Ok(limits.cut());
        };
        files.extend(answer.files);
        waited += answer.waited;
        let Some(text) = answer.text else {
            let why = answer.error.unwrap_or_default();
            let done = Done::interrupted(
                InfraFault::Interrupted,
                &format!("no model answered: {why}"),
            );
            return Ok(done.with_files(files).with_span("plan.model", waited));
        };
        match parse_plan(&text, &input.families) {
            Ok(plan) => {
                let bytes = vec_types::pretty_json(&plan)
                    .map_err(|error| EffectError::failed("write PLAN.json", &error))?;
                files.push(NewFile::create(rel::plan(input.node), bytes));
                let result = PlanResult::Valid {
                    plan,
                    attempts: attempt + 1,
                };
                return Ok(Done::new(Outcome::Planned { result })
                    .with_files(files)
                    .with_span("plan.model", waited));
            }
            Err(error) => feedback = Some(error.to_string()),
        }
    }
    let result = PlanResult::Invalid {
        error: feedback.unwrap_or_default(),
    };
    Ok(Done::new(Outcome::Planned { result })
        .with_files(files)
        .with_span("plan.model", waited))
}
