//! Comply: the pattern pass on the plan. PLAN.json is replaced by what may stay (CMP-01).

use serde_json::{Value, json};
use vec_compliance::check_plan;
use vec_search::{Outcome, RunState};
use vec_store::{NewFile, rel};
use vec_types::{NodeId, Plan};

use crate::context::Context;
use crate::effects::{Done, EffectError};

/// The plan to check.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    plan: Plan,
}

pub(crate) fn prepare(state: &RunState, node: NodeId) -> Result<Input, EffectError> {
    let plan = state.node(node).and_then(|view| Some(view.plan?.to_plan()));
    let plan = plan.ok_or_else(|| EffectError::Failed {
        what: "check the plan",
        cause: format!("node {node} has no plan"),
    })?;
    Ok(Input { node, plan })
}

pub(crate) fn perform(context: &Context, input: &Input) -> Result<Done, EffectError> {
    let checked = check_plan(&input.plan, &context.rules);
    let removed = u32::try_from(checked.removed.len()).unwrap_or(u32::MAX);
    let done = Done::new(Outcome::Complied {
        removed,
        emptied: checked.emptied,
    });
    if removed == 0 {
        return Ok(done);
    }
    let failed = |error: vec_types::CanonicalError| EffectError::failed("write PLAN.json", &error);
    let plan = vec_types::pretty_json(&checked.plan).map_err(failed)?;
    let list: Vec<Value> = checked
        .removed
        .iter()
        .map(|removed| {
            json!({
                "key": removed.key,
                "pattern": removed.pattern,
                "sentence": removed.sentence,
            })
        })
        .collect();
    let list = vec_types::pretty_json(&list).map_err(failed)?;
    let path = rel::trajectory(input.node, "compliance", 0)
        .and_then(|directory| rel::join(&directory, "removed.json"))
        .map_err(|error| EffectError::failed("name the compliance record", &error))?;
    Ok(done.with_files(vec![
        NewFile::replace(rel::plan(input.node), plan),
        NewFile::create(path, list),
    ]))
}
