//! One node: where it stands in the pipeline, what exists of it, and what the tree knows about it.
//! Stages and endings are in [`stage`], further executions in [`rerun`].

mod rerun;
mod stage;

use std::collections::BTreeMap;

use vec_types::{
    Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, Plan, ProgramSeed, Score,
    ScoreReport, UnixMs, ViewId,
};

pub(crate) use rerun::Rerun;
pub(crate) use stage::{Build, Ending, Engineered, GenFault, Kept, Origin, Settled, Stage};

use crate::{
    CommitInfo, Effect, ExecReport, ExecResult, MethodState, ReviewVerdict, SeedProgram,
    SessionReport,
};

pub(crate) const SEED_0: ExecName = ExecName::Seed(ProgramSeed(0));

/// Promotion sub-machine (requirements b.3).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Promotion {
    None { generation: u32 },
    Running { generation: u32 },
    Done { generation: u32, mean: Score },
    Failed { generation: u32, why: String },
}

/// Review state: calls made so far and the verdict, never `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Review {
    pub attempts: u32,
    pub verdict: Option<ReviewVerdict>,
}

/// Children as eligibility rules count them; shelved children never count (O-SED-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Children {
    pub running: u32,
    pub live: u32,
    pub debugs: u32,
    pub debug_scored: bool,
    /// Most recent children in a row that count as failed (SEL-06).
    pub streak: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub id: NodeId,
    pub operator: Operator,
    pub parent: Option<NodeId>,
    pub family: Option<FamilyId>,
    pub seed: Option<SeedProgram>,
    pub created_at: UnixMs,
    pub stage: Stage,
    pub visits: u64,
    pub virtual_visits: u64,
    pub children: Children,
    pub review: Review,
    pub promotion: Promotion,
    pub reruns: BTreeMap<ExecName, Rerun>,
    pub refuted: Option<String>,
}

impl Promotion {
    pub(crate) const fn generation(&self) -> u32 {
        match self {
            Self::None { generation }
            | Self::Running { generation }
            | Self::Done { generation, .. }
            | Self::Failed { generation, .. } => *generation,
        }
    }
}

impl Node {
    pub(crate) fn status(&self) -> NodeStatus {
        match &self.stage {
            Stage::Settled { ending, .. } => ending.status(),
            _ => NodeStatus::Running,
        }
    }

    pub(crate) fn is_scored(&self) -> bool {
        self.status() == NodeStatus::Scored
    }

    pub(crate) const fn settled(&self) -> Option<&Settled> {
        match &self.stage {
            Stage::Settled { settled, .. } => Some(settled),
            _ => None,
        }
    }

    /// The pipeline effect that its stage calls for.
    pub(crate) fn due_effect(&self) -> Option<Effect> {
        let node = self.id;
        match &self.stage {
            Stage::Import => self.seed.as_ref().map(|seed| Effect::ImportSeed {
                node,
                program: seed.id.clone(),
            }),
            Stage::Plan => Some(Effect::Plan { node }),
            Stage::Comply { .. } => Some(Effect::Comply { node }),
            Stage::Engineer { .. } => Some(Effect::Engineer { node }),
            Stage::Execute { .. } => Some(Effect::Execute { node, exec: SEED_0 }),
            Stage::Score { .. } => Some(Effect::Score { node, exec: SEED_0 }),
            Stage::Analyze { .. } => Some(Effect::Analyze { node }),
            Stage::Ending { .. } | Stage::Settled { .. } => None,
        }
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        match &self.stage {
            Stage::Comply { plan } | Stage::Engineer { plan } => Some(plan),
            Stage::Execute { build } | Stage::Score { build, .. } => build.plan(),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().and_then(Build::plan);
                built.or_else(|| ending.kept()?.plan.as_ref())
            }
        }
    }

    pub(crate) fn session(&self) -> Option<&SessionReport> {
        match &self.stage {
            Stage::Execute { build } | Stage::Score { build, .. } => build.session(),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().and_then(Build::session);
                built.or_else(|| ending.kept()?.session.as_ref())
            }
        }
    }

    pub(crate) fn commit(&self) -> Option<&CommitInfo> {
        match &self.stage {
            Stage::Execute { build } | Stage::Score { build, .. } => Some(&build.commit),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().map(|build| &build.commit);
                built.or_else(|| ending.kept()?.commit.as_ref())
            }
        }
    }

    /// Seed 0's execution.
    pub(crate) const fn seed_0_report(&self) -> Option<&ExecReport> {
        if let Stage::Score { report, .. } = &self.stage {
            return Some(report);
        }
        match self.stage.ending() {
            Some(Ending::Scored { exec, .. } | Ending::Faulty { exec, .. }) => Some(exec),
            _ => None,
        }
    }

    /// Digests of seed 0's predictions.
    pub(crate) fn digests(&self) -> Option<&BTreeMap<ViewId, Digest>> {
        match &self.seed_0_report()?.result {
            ExecResult::Done { digests } => Some(digests),
            ExecResult::Fault { .. } => None,
        }
    }

    /// Score of one execution.
    pub(crate) fn score(&self, exec: ExecName) -> Option<&ScoreReport> {
        if exec == SEED_0 {
            return match self.stage.ending() {
                Some(Ending::Scored { score, .. }) => Some(score),
                _ => None,
            };
        }
        self.reruns.get(&exec)?.score()
    }

    /// Mean of three seeds after promotion, else seed 0 (SEL-03); only of scored nodes.
    pub(crate) fn ranking_score(&self) -> Option<Score> {
        if !self.is_scored() {
            return None;
        }
        match &self.promotion {
            Promotion::Done { mean, .. } => Some(*mean),
            _ => self.score(SEED_0).map(|report| report.total),
        }
    }

    /// METHOD.md was never written by the Engineer (MTH-02).
    pub(crate) fn is_method_auto(&self) -> bool {
        self.session()
            .is_some_and(|session| session.method == MethodState::Placeholder)
    }

    pub(crate) fn total_visits(&self) -> u64 {
        self.visits + self.virtual_visits
    }

    /// Longest wall time of one view over all executions of the node.
    pub(crate) fn longest_view_ms(&self) -> i64 {
        self.seed_0_report()
            .into_iter()
            .chain(self.reruns.values().filter_map(Rerun::report))
            .flat_map(|report| report.wall_ms.values().copied())
            .max()
            .unwrap_or(0)
    }
}
