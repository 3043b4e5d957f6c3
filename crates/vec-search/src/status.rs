//! The machine-readable status of a run (`vecctl status --json`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vec_types::{FamilyId, NodeId, Operator, Phase, ProgramSeed, RunId, Score, StopReason, UnixMs};

use crate::node::Node;
use crate::state::Run;
use crate::{Deadlines, Effect, GuardVerdict, MechanismActive, RunState, ranking};

/// A run at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Run; absent before `run_start`.
    pub run: Option<RunId>,
    /// Phase.
    pub phase: Phase,
    /// When this was asked.
    pub at: UnixMs,
    /// Deadlines; absent before `run_start`.
    pub deadlines: Option<Deadlines>,
    /// Nodes created so far, seed programs not counted.
    pub created: u32,
    /// Largest number of such nodes.
    pub max_nodes: u32,
    /// Restarts of the controller.
    pub resumes: u32,
    /// Data epoch (EPO-01).
    #[serde(default)]
    pub epoch: u32,
    /// Does the search stand still (PLT-01)?
    #[serde(default)]
    pub plateau: bool,
    /// Number of nodes by status word.
    pub nodes: BTreeMap<String, u32>,
    /// Executions that gave predictions or faults.
    pub executions: u32,
    /// Nodes in work.
    pub running: Vec<RunningNode>,
    /// Effects in work, by id.
    pub effects: Vec<String>,
    /// The best node by ranking score.
    pub best: Option<RankedNode>,
    /// The guard's baseline.
    pub baseline: Option<RankedNode>,
    /// The guard's verdict.
    pub guard: Option<GuardVerdict>,
    /// The run's answer.
    pub winner: Option<NodeId>,
    /// Why there is no answer (FIN-04).
    pub refusal: Option<String>,
    /// Why it stopped.
    pub stop_reason: Option<StopReason>,
    /// The same in words.
    pub stop_detail: Option<String>,
}

/// A node in work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningNode {
    /// Node.
    pub node: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Parent.
    pub parent: Option<NodeId>,
    /// Stage word.
    pub stage: String,
    /// Since when it exists.
    pub created_at: UnixMs,
}

/// A scored node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedNode {
    /// Node.
    pub node: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Family.
    pub family: Option<FamilyId>,
    /// Score that it is ranked by.
    pub ranking_score: Score,
    /// Seeds that the score is the mean of.
    pub seeds: u32,
    /// Result of its control run, as [`crate::NodeView::mechanism_active`].
    #[serde(default)]
    pub mechanism_active: Option<MechanismActive>,
    /// Outcome of its view check, as [`crate::NodeView::view_check`]; absent where none was run.
    #[serde(default)]
    pub view_check: Option<String>,
}

impl RunState {
    /// The status at `at`.
    #[must_use]
    pub fn status(&self, at: UnixMs) -> RunStatus {
        let run = self.run_data();
        let outcome = self.outcome();
        RunStatus {
            run: self.run().cloned(),
            phase: self.phase(),
            at,
            deadlines: self.deadlines(),
            created: run.map_or(0, |run| run.created),
            max_nodes: run.map_or(0, |run| run.policy.budget.max_nodes),
            resumes: self.resumes(),
            epoch: self.epoch(),
            plateau: self.is_plateau(),
            nodes: run.map(by_status).unwrap_or_default(),
            executions: run.map_or(0, |run| count(run.executions_done())),
            running: run.map(running).unwrap_or_default(),
            effects: self.wanted().iter().map(effect_name).collect(),
            best: run.and_then(|run| ranked(ranking::ranked(run).next()?.0)),
            baseline: run.and_then(|run| ranked(run.anchor()?)),
            guard: self.guard_verdict().cloned(),
            winner: run.and_then(|run| run.winner).map(|winner| winner.node),
            refusal: self.refusal().map(str::to_owned),
            stop_reason: outcome.map(|outcome| outcome.reason),
            stop_detail: outcome.map(|outcome| outcome.detail.clone()),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn effect_name(effect: &Effect) -> String {
    effect.id().to_string()
}

fn by_status(run: &Run) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for node in &run.nodes {
        *counts.entry(node.status().as_str().to_owned()).or_insert(0) += 1;
    }
    counts
}

fn running(run: &Run) -> Vec<RunningNode> {
    let nodes = run.running.iter().filter_map(|id| run.node(*id));
    nodes
        .map(|node| RunningNode {
            node: node.id,
            operator: node.operator,
            parent: node.parent,
            stage: node.stage.word().to_owned(),
            created_at: node.created_at,
        })
        .collect()
}

fn ranked(node: &Node) -> Option<RankedNode> {
    let seeds: BTreeSet<ProgramSeed> = node
        .reruns
        .keys()
        .filter(|exec| exec.is_ranked())
        .map(|exec| exec.program_seed())
        .chain([ProgramSeed(0)])
        .collect();
    Some(RankedNode {
        node: node.id,
        operator: node.operator,
        family: node.family.clone(),
        ranking_score: node.ranking_score()?,
        seeds: if node.promotion.mean.is_some() {
            count(seeds.len())
        } else {
            1
        },
        mechanism_active: node.ablation,
        view_check: node.view.outcome().map(str::to_owned),
    })
}
