//! The data behind [`super::RunState`]: everything that events after `run_start` say.

use std::collections::{BTreeMap, BTreeSet};

use vec_types::{
    Digest, ExecName, FamilyId, NodeId, Operator, Phase, ProgramSeed, RunId, RunNode, StopReason,
    UnixMs, ViewId,
};

use super::index::Index;
use super::names::Names;
use super::{ResumeRefused, RunOutcome};
use crate::mt19937::Mt19937;
use crate::node::{Node, Rerun};
use crate::retry::Retry;
use crate::{Deadlines, Effect, EffectId, GuardVerdict, Policy, SkipReason};

/// Everything after `run_start`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub id: RunId,
    pub policy: Policy,
    pub times: Deadlines,
    pub phase: Phase,
    pub rng: Mt19937,
    pub draws: u64,
    pub drawn: Option<Drawn>,
    pub nodes: Vec<Node>,
    pub running: BTreeSet<NodeId>,
    pub suspended: BTreeSet<NodeId>,
    /// Nodes whose view check has begun and has no result.
    pub checking: BTreeSet<NodeId>,
    /// The node whose view check final selection waits for, and since when (VCK-06).
    pub awaited: Option<(NodeId, UnixMs)>,
    /// What an infrastructure fault ended is not tried again before then.
    pub pauses: BTreeMap<(NodeId, Retry), UnixMs>,
    pub promoting: Option<NodeId>,
    /// Objective views, sorted.
    pub views: Vec<ViewId>,
    pub index: Index,
    pub names: Names,
    /// Nodes of this run that were drawn or taken up; seeds and imports do not count.
    pub created: u32,
    /// Current data epoch (EPO-01) and what the epochs so far added.
    pub epoch: u32,
    pub epoch_data: Vec<String>,
    /// Drafts that the bandit gave a family (DRF-05).
    pub bandit_picks: u32,
    /// Plateau as last announced.
    pub plateau: bool,
    /// Carried-over work that needs no more decision: taken up in any run, or refused.
    pub works: BTreeSet<RunNode>,
    pub resumes_taken: u32,
    pub reserve_ms: i64,
    /// Chain over results that nothing else here holds.
    pub unkept: Digest,
    /// Reviews in work since, and the longest so far (RSV-02).
    pub review_since: BTreeMap<NodeId, UnixMs>,
    pub longest_review_ms: Option<i64>,
    pub in_work: BTreeMap<EffectId, Effect>,
    pub resumes: u32,
    pub stop_requested: Option<(StopReason, String)>,
    pub search_end: Option<StopReason>,
    pub finale: Option<Finale>,
    pub refused: Option<String>,
    pub winner: Option<Winner>,
    pub outcome: Option<RunOutcome>,
}

/// A node that is drawn and not yet created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub node: NodeId,
    pub operator: Operator,
    pub parent: Option<NodeId>,
    pub family: Option<FamilyId>,
    /// The carried-over node, for a resume.
    pub carried: Option<NodeId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Winner {
    pub node: NodeId,
    pub is_baseline: bool,
}

/// Final selection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finale {
    pub baseline: NodeId,
    pub candidates: Vec<NodeId>,
    pub skipped: BTreeMap<NodeId, SkipReason>,
    pub guard: Option<GuardRun>,
    pub verdict: Option<GuardVerdict>,
    /// Ended placements by node and `provisional`; absent digest = it could not be placed.
    pub placed: BTreeMap<(NodeId, bool), Option<Digest>>,
}

/// The one guard run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardRun {
    pub candidate: NodeId,
    pub seeds: Vec<ProgramSeed>,
}

impl Run {
    pub(super) fn new(id: RunId, policy: &Policy, at: UnixMs) -> Self {
        Self {
            id,
            times: Deadlines::new(at, &policy.budget),
            rng: Mt19937::new(policy.search_seed),
            policy: policy.clone(),
            phase: Phase::Launching,
            draws: 0,
            drawn: None,
            nodes: Vec::new(),
            running: BTreeSet::new(),
            suspended: BTreeSet::new(),
            promoting: None,
            checking: BTreeSet::new(),
            awaited: None,
            pauses: BTreeMap::new(),
            views: policy.objective_views().into_iter().cloned().collect(),
            index: Index::default(),
            names: Names::default(),
            created: 0,
            epoch: 0,
            epoch_data: Vec::new(),
            bandit_picks: 0,
            plateau: false,
            works: BTreeSet::new(),
            resumes_taken: 0,
            reserve_ms: policy.budget.final_reserve_ms,
            unkept: Digest::ZERO,
            review_since: BTreeMap::new(),
            longest_review_ms: None,
            in_work: BTreeMap::new(),
            resumes: 0,
            stop_requested: None,
            search_end: None,
            finale: None,
            refused: None,
            winner: None,
            outcome: None,
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id.0).ok()?)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(usize::try_from(id.0).ok()?)
    }

    /// Id of the next node. Node counts are bounded by `max_nodes` and seed attempts, both u32.
    pub(crate) fn next_node(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn is_in_work(&self, effect: &Effect) -> bool {
        self.in_work.contains_key(&effect.id())
    }

    /// Newest node of the anchor seed program; the guard's baseline once it is scored.
    pub(crate) fn anchor(&self) -> Option<&Node> {
        self.node(self.index.anchor?)
    }

    /// Deadlines with the guard's moved by what is measured (FIN-09). All candidates count, skipped
    /// ones too, so that it never moves later.
    pub(crate) fn deadlines(&self) -> Deadlines {
        let Some(finale) = &self.finale else {
            return self.times;
        };
        let sides = finale.candidates.iter().copied().chain([finale.baseline]);
        let longest = sides
            .filter_map(|id| self.node(id))
            .map(|node| i64::from(node.longest_view_ms))
            .max();
        self.times.with_run_time(longest.unwrap_or(0))
    }

    pub(crate) fn rerun(&self, node: NodeId, exec: ExecName) -> Option<&Rerun> {
        self.node(node)?.reruns.get(&exec)
    }

    /// Further executions at a time: one beside the pipeline, all slots once it is empty.
    pub(crate) fn rerun_limit(&self) -> usize {
        match self.phase {
            Phase::Final => usize::try_from(self.policy.concurrency_nodes).unwrap_or(usize::MAX),
            _ => 1,
        }
    }

    pub(super) fn resumable(&self, at: UnixMs) -> Result<(), ResumeRefused> {
        let Some(outcome) = &self.outcome else {
            return Ok(());
        };
        if self.winner.is_some() || self.refused.is_some() {
            return Err(ResumeRefused::Finished);
        }
        if !matches!(outcome.reason, StopReason::Operator | StopReason::Infra) {
            return Err(ResumeRefused::Reason(outcome.reason));
        }
        if at >= self.times.stop_at {
            return Err(ResumeRefused::TimeOver(self.times.stop_at));
        }
        Ok(())
    }
}

impl Finale {
    /// Candidates that are still in, best first.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = NodeId> {
        self.candidates
            .iter()
            .copied()
            .filter(|node| !self.skipped.contains_key(node))
    }
}
