//! What the naive decider sees of a node: one flat row, copied from its view and from the book.

use vec_search::{NodeView, Policy};
use vec_types::{Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, ProgramSeed, SeedState};

use crate::book::Entry;

/// A node in flat words.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Id.
    pub id: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Parent.
    pub parent: Option<NodeId>,
    /// Status.
    pub status: NodeStatus,
    /// What the seed program may become, for seeds.
    pub seed: Option<SeedState>,
    /// Family of its plan, else the one drawn or inherited.
    pub family: Option<FamilyId>,
    /// Family that it was drawn for, for drafts.
    pub drawn_family: Option<FamilyId>,
    /// Ranking score; −∞ without one.
    pub score: f64,
    /// Score of seed 0.
    pub seed_0: Option<f64>,
    /// Mean over all seeds, once promoted.
    pub mean: Option<f64>,
    /// Data epoch of its rank.
    pub epoch: u32,
    /// Data epoch of seed 0.
    pub seed_0_epoch: u32,
    /// Settlements before its own.
    pub order: Option<u32>,
    /// Digests on the objective views, in order; absent unless all are there.
    pub output: Option<Vec<Digest>>,
    /// Visits incl. virtual ones.
    pub visits: f64,
    /// Of this run.
    pub is_own: bool,
    /// A promotion runs.
    pub is_promoting: bool,
    /// Refused by its review.
    pub is_refused: bool,
    /// Excluded by the view check.
    pub is_view_dependent: bool,
}

impl Row {
    pub(crate) fn of(policy: &Policy, node: &NodeView<'_>, entry: &Entry) -> Self {
        let visits = u32::try_from(node.visits + node.virtual_visits).unwrap_or(u32::MAX);
        let seed_0 = node.scores.get(&ExecName::Seed(ProgramSeed(0)));
        let views = policy.objective_views().into_iter();
        let output = node.digests.and_then(|digests| {
            let all = views.map(|view| digests.get(view).copied());
            all.collect::<Option<Vec<Digest>>>()
        });
        Self {
            id: node.id,
            operator: node.operator,
            parent: node.parent,
            status: node.status,
            seed: node.seed_state,
            family: node.family.cloned(),
            drawn_family: entry.drawn_family.clone(),
            score: node.ranking_score.map_or(f64::NEG_INFINITY, f64::from),
            seed_0: seed_0.map(|report| report.total.get()),
            mean: entry.mean.map(|(score, _)| score.get()),
            epoch: node.epoch,
            seed_0_epoch: node.seed_0_epoch,
            order: node.settled_order,
            output,
            visits: f64::from(visits),
            is_own: node.origin.is_none(),
            is_promoting: node.promotion == "running",
            is_refused: node.review == "fail",
            is_view_dependent: node.view_dependent || entry.is_view_dependent(),
        }
    }

    pub(crate) fn is_scored(&self) -> bool {
        self.status == NodeStatus::Scored
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status == NodeStatus::Running
    }

    /// Failed before anything ran.
    pub(crate) const fn is_gen(&self) -> bool {
        matches!(self.status, NodeStatus::GenFailed | NodeStatus::GenEmpty)
    }

    /// Failed, by its own fault or before anything ran.
    pub(crate) const fn is_failed(&self) -> bool {
        self.is_gen() || self.status.is_candidate_fault()
    }
}
