//! What became of a node after it was made.

use serde::Serialize;
use vec_search::failure::{self, Consequence, Rank, Streak};
use vec_search::{MechanismActive, NodeView, RunState};
use vec_types::{ExecName, NodeId, NodeStatus, ProgramSeed, Score};

/// The rest of its life, as far as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct After {
    pub(crate) status: NodeStatus,
    /// Where in the pipeline it stands.
    pub(crate) stage: &'static str,
    pub(crate) detail: String,
    /// From creation to settlement.
    pub(crate) took_ms: Option<i64>,
    pub(crate) score: Option<Score>,
    pub(crate) seed_0: Option<Score>,
    pub(crate) no_progress: bool,
    pub(crate) same_as_parent: bool,
    pub(crate) budget_cut: bool,
    /// What its end means for the rest of the run, in words; empty for scored and running nodes.
    pub(crate) consequence: Vec<String>,
    pub(crate) promotion: &'static str,
    pub(crate) promotion_failure: Option<String>,
    pub(crate) review: &'static str,
    pub(crate) review_attempts: u32,
    pub(crate) mechanism_active: Option<MechanismActive>,
    pub(crate) view_check: Option<&'static str>,
    pub(crate) children: Vec<NodeId>,
    pub(crate) is_answer: bool,
}

impl After {
    pub(crate) fn of(node: &NodeView<'_>, now: &RunState) -> Self {
        let seed_0 = ExecName::Seed(ProgramSeed(0));
        let children = now.nodes().filter(|child| child.parent == Some(node.id));
        let winner = now.outcome().and_then(|outcome| outcome.winner);
        Self {
            status: node.status,
            stage: node.stage,
            detail: node.detail.to_owned(),
            took_ms: node.settled_at.map(|at| at.since_ms(node.created_at)),
            score: node.ranking_score,
            seed_0: node.scores.get(&seed_0).map(|report| report.total),
            no_progress: node.no_progress,
            same_as_parent: node.same_as_parent,
            budget_cut: node.budget_cut,
            consequence: consequence(node, now),
            promotion: node.promotion,
            promotion_failure: node.promotion_failure.map(str::to_owned),
            review: node.review,
            review_attempts: node.review_attempts,
            mechanism_active: node.mechanism_active,
            view_check: node.view_check,
            children: children.map(|child| child.id).collect(),
            is_answer: winner == Some(node.id),
        }
    }
}

/// The row of the failure table, in words.
fn consequence(node: &NodeView<'_>, now: &RunState) -> Vec<String> {
    let row = failure::of(node.status);
    if node.settled_at.is_none() || row.competes {
        return Vec::new();
    }
    if row.rank == Rank::Absent {
        return vec![
            "shelved: it counts no visit, has no rank and costs its parent nothing".to_owned(),
        ];
    }
    let counts_gen = now
        .policy()
        .is_some_and(|policy| policy.select.streak_counts_gen);
    let mut words = vec![
        "counts a visit".to_owned(),
        "ranks below every score".to_owned(),
    ];
    if let Some(parent) = node.parent {
        words.push(streak(row, counts_gen, parent));
    }
    if row.debug_target {
        words.push("may be repaired by a debug".to_owned());
    }
    words
}

fn streak(row: Consequence, counts_gen: bool, parent: NodeId) -> String {
    if row.extends_streak(counts_gen) {
        format!("extends the failure streak of node {parent}")
    } else if row.streak == Streak::Resets {
        format!("ends the failure streak of node {parent}")
    } else {
        format!("leaves the failure streak of node {parent} as it is")
    }
}
