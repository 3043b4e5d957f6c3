//! Reading the prompt's context block, as any model could.

use serde::Deserialize;
use vec_types::{FamilyId, NodeId};

use crate::deal::Operator;

/// How the block begins; it stands first in the prompt.
const OPEN: &str = "```json context\n";

/// What the scripted model reads of the block; other fields do not matter to it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Context {
    pub(crate) role: Role,
    pub(crate) node: NodeId,
    pub(crate) attempt: u32,
    pub(crate) operator: Operator,
    pub(crate) family: Option<FamilyId>,
    pub(crate) parent: Option<Parent>,
    pub(crate) outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Researcher,
    Analyst,
    Reviewer,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Parent {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) family: Option<FamilyId>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) status: String,
    pub(crate) name: String,
    pub(crate) gain: Option<f64>,
}

impl Context {
    /// The block of `prompt`, or what is wrong with it.
    pub(crate) fn read(prompt: &str) -> Result<Self, String> {
        let rest = prompt
            .strip_prefix(OPEN)
            .ok_or("the last message does not begin with a block tagged `json context`")?;
        let (block, _) = rest
            .split_once("\n```")
            .ok_or("the block tagged `json context` is not closed")?;
        serde_json::from_str(block).map_err(|error| format!("context block: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_read_and_its_absence_named() {
        let block = r#"{"role":"researcher","node":3,"attempt":0,"operator":"draft","family":null,"parent":null,"outcome":null,"schema":1}"#;
        let prompt = format!("```json context\n{block}\n```\n\n## Task\n");
        let context = Context::read(&prompt).expect("reads");
        assert_eq!(
            (context.node, context.operator),
            (NodeId(3), Operator::Draft)
        );
        for (bad, why) in [
            ("hello", "does not begin"),
            ("```json context\n{}", "not closed"),
            ("```json context\n{}\n```", "missing field"),
        ] {
            let problem = Context::read(bad).expect_err(bad);
            assert!(problem.contains(why), "{problem}");
        }
    }
}
