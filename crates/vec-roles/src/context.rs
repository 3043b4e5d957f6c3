//! The machine-readable block at the head of every prompt. Real models may read it; the
//! scripted model answers from it alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vec_types::{BoardId, FamilyId, NodeId, NodeStatus, Operator, Plan};

use crate::section::cell;
use crate::{BoardBrief, NodeSummary, ParentInput, first_line};

/// Lines of run.py in which the `# params:` line is looked for.
const PARAMS_LINES: usize = 20;
/// Longest accepted `# params:` line in bytes.
const PARAMS_BYTES_MAX: usize = 2_000;

/// A role that answers with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes plans.
    Researcher,
    /// Explains results.
    Analyst,
    /// Looks for rule breaking.
    Reviewer,
}

impl Role {
    /// The word in headers, paths and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Researcher => "researcher",
            Self::Analyst => "analyst",
            Self::Reviewer => "reviewer",
        }
    }
}

/// The block. Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// 1.
    pub schema: u32,
    /// Who is asked.
    pub role: Role,
    /// For which node.
    pub node: NodeId,
    /// Number of the call for this role and node, from 0.
    pub attempt: u32,
    /// The node's operator.
    pub operator: Operator,
    /// The board.
    pub board: BoardId,
    /// Family that a draft must use, or the node's family.
    pub family: Option<FamilyId>,
    /// The idea library, in order.
    pub families: Vec<FamilyId>,
    /// The parent.
    pub parent: Option<ContextParent>,
    /// The node's own outcome, for Analyst and Reviewer.
    pub outcome: Option<ContextOutcome>,
}

/// The parent, shortly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextParent {
    /// The node.
    pub node: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Where it stands.
    pub status: NodeStatus,
    /// Its family.
    pub family: Option<FamilyId>,
    /// PLAN.name, or the seed program's id.
    pub name: String,
    /// First line of its METHOD.md.
    pub method_first_line: Option<String>,
    /// What its run.py says after `# params:`.
    pub params: Option<Map<String, Value>>,
    /// Its ranking score.
    pub score: Option<f64>,
    /// How many directions are refuted under it.
    pub refuted: usize,
}

/// How the node itself came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextOutcome {
    /// Where it stands.
    pub status: NodeStatus,
    /// PLAN.name, or the seed program's id.
    pub name: String,
    /// Its score.
    pub score: Option<f64>,
    /// Its score minus its parent's, where both exist.
    pub gain: Option<f64>,
}

impl Context {
    /// Version of the block.
    pub const SCHEMA: u32 = 1;
    /// Tag of the fence.
    pub const TAG: &'static str = "json context";

    pub(crate) fn new(role: Role, node: NodeId, attempt: u32, board: &BoardBrief) -> Self {
        Self {
            schema: Self::SCHEMA,
            role,
            node,
            attempt,
            operator: Operator::Improve,
            board: board.board.clone(),
            family: None,
            families: board.families.iter().map(|f| f.id.clone()).collect(),
            parent: None,
            outcome: None,
        }
    }

    /// Pretty JSON. Every field encodes, so there is nothing to fail.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_value(self)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .unwrap_or_default()
    }
}

impl ContextParent {
    pub(crate) fn of(parent: &ParentInput) -> Self {
        let node = &parent.node;
        Self {
            node: node.node,
            operator: node.operator,
            status: node.status,
            family: node.family.clone().or_else(|| plan_family(&parent.plan)),
            name: cell(&node.name, 200),
            method_first_line: first_line(&parent.program.method).map(|line| cell(line, 200)),
            params: params_of(&parent.program.run_py),
            score: node.score.map(|score| score.rounded()),
            refuted: parent.refuted.len(),
        }
    }
}

impl ContextOutcome {
    pub(crate) fn of(node: &NodeSummary, parent: Option<&NodeSummary>) -> Self {
        let gain = node
            .score
            .zip(parent.and_then(|parent| parent.score))
            .map(|(own, parent)| round4(own.get() - parent.get()));
        Self {
            status: node.status,
            name: cell(&node.name, 200),
            score: node.score.map(|score| score.rounded()),
            gain,
        }
    }
}

pub(crate) fn round4(value: f64) -> f64 {
    (value * 1e4).round() / 1e4 + 0.0
}

fn plan_family(plan: &Option<Plan>) -> Option<FamilyId> {
    plan.as_ref().and_then(|plan| plan.family_id.clone())
}

/// The object after `# params:` near the head of run.py (CONTRACT.md asks for it).
pub(crate) fn params_of(run_py: &str) -> Option<Map<String, Value>> {
    run_py
        .lines()
        .take(PARAMS_LINES)
        .find_map(|line| line.strip_prefix("# params:"))
        .filter(|text| text.len() <= PARAMS_BYTES_MAX)
        .and_then(|text| serde_json::from_str(text.trim()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_come_from_one_comment_line() {
        let found = params_of("#!/usr/bin/env python3\n# params: {\"alpha\": 1.5}\nprint(1)\n");
        assert_eq!(found.expect("found")["alpha"], 1.5);
        for none in [
            "print(1)",
            "# params: [1]",
            "# params: {",
            &format!("# params: {{\"a\": \"{}\"}}", "x".repeat(PARAMS_BYTES_MAX)),
            &format!("{}# params: {{}}", "\n".repeat(PARAMS_LINES)),
        ] {
            assert_eq!(params_of(none), None, "{none}");
        }
    }
}
