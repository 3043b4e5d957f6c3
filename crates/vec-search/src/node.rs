//! One node: where it stands in the pipeline, what exists of it, and what the tree knows about it.
//! Stages and endings are in [`stage`], further executions in [`rerun`].

mod plan;
mod rare;
mod rerun;
mod reruns;
mod stage;

use vec_types::{
    Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, ProgramSeed, RunNode, Score,
    ScoreReport, Table, UnixMs, ViewId,
};

pub(crate) use plan::PackedPlan;
pub use plan::PlanView;
pub(crate) use rare::{Facts, Rare};
pub(crate) use rerun::{Rerun, RerunStage};
pub(crate) use reruns::Reruns;
pub(crate) use stage::{
    Build, Ended, Ending, Engineered, Faulty, GenFault, Kept, Scored, Settled, Stage,
};

use crate::checks::ViewVerdict;
use crate::failure::{self, Consequence};
use crate::planted::{self, Bug};
use crate::{
    CarriedKind, CommitInfo, Effect, ExecReport, ExecResult, MethodState, ReviewVerdict,
    SessionReport,
};

pub(crate) const SEED_0: ExecName = ExecName::Seed(ProgramSeed(0));

/// Promotion sub-machine (requirements b.3). The mean of an earlier epoch stays the ranking score
/// until the next one is in.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Promotion {
    pub generation: u32,
    pub state: PromotionState,
    /// Infrastructure faults so far: count and epoch.
    pub lost: (u32, u32),
    pub mean: Option<Mean>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum PromotionState {
    #[default]
    Idle,
    /// The executions that were started for it, one per seed that had to be measured.
    Running {
        epoch: u32,
        execs: Vec<ExecName>,
    },
    Failed {
        epoch: u32,
        why: String,
    },
}

/// A ranking score over all seeds, and the epoch in which all of them were measured (O-SEL-4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub score: Score,
    pub epoch: u32,
}

/// Review state: calls made so far and the verdict, never `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Review {
    pub attempts: u32,
    pub verdict: Option<ReviewVerdict>,
}

/// Children as eligibility rules count them: those in work, and those that ended and count by the
/// failure table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Children {
    pub running: Counts,
    pub ended: Counts,
    pub debug_scored: bool,
    /// Most recent children in a row that count as failed (SEL-06).
    pub streak: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub all: u32,
    pub improves: u32,
    pub debugs: u32,
}

/// What is known of a node from before this run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub origin: RunNode,
    pub method_auto: bool,
    pub view_dependent: bool,
    /// Ranking score under another `search_hash` (CON-02).
    pub ranking: Option<Score>,
    pub carried: Option<(RunNode, CarriedKind)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub id: NodeId,
    pub operator: Operator,
    pub parent: Option<NodeId>,
    /// Family of its plan, else the one drawn or inherited (DRF-11).
    pub family: Option<FamilyId>,
    /// Family that it was drawn for, for drafts.
    pub drawn_family: Option<FamilyId>,
    pub created_at: UnixMs,
    pub stage: Stage,
    /// Data epoch of seed 0's execution; of the settlement if nothing was executed (EPO-02).
    pub epoch: u32,
    /// Has seed 0 been executed in this run?
    pub is_executed: bool,
    /// Longest wall time of one view over all executions so far in milliseconds, also of those that
    /// came to nothing later: a deadline that rests on it never moves back (FIN-09).
    pub longest_view_ms: u32,
    /// At most one per node, as ids are.
    pub visits: u32,
    pub virtual_visits: u32,
    pub children: Children,
    pub review: Review,
    pub rare: Rare,
}

impl Promotion {
    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.state, PromotionState::Running { .. })
    }

    /// Is every seed of the ranking score measured in this epoch?
    pub(crate) fn is_done(&self, epoch: u32) -> bool {
        self.mean.is_some_and(|mean| mean.epoch == epoch)
    }

    /// Did it fail for good in this epoch? A new epoch is a new chance (O-PRO-1).
    pub(crate) fn is_out(&self, epoch: u32) -> bool {
        matches!(&self.state, PromotionState::Failed { epoch: failed, .. } if *failed == epoch)
    }
}

impl Children {
    /// Children that count towards the cap of an exploration seed.
    pub(crate) const fn capped(&self) -> u32 {
        self.running.all + self.ended.all
    }

    pub(crate) const fn debugs(&self) -> u32 {
        self.running.debugs + self.ended.debugs
    }

    pub(crate) const fn improves(&self) -> u32 {
        self.running.improves + self.ended.improves
    }
}

impl Counts {
    pub(crate) fn add(&mut self, operator: Operator) {
        self.all += 1;
        self.improves += u32::from(operator == Operator::Improve);
        self.debugs += u32::from(operator == Operator::Debug);
    }

    pub(crate) const fn remove(&mut self, operator: Operator) {
        self.all = self.all.saturating_sub(1);
        match operator {
            Operator::Improve => self.improves = self.improves.saturating_sub(1),
            Operator::Debug => self.debugs = self.debugs.saturating_sub(1),
            _ => {}
        }
    }
}

impl Node {
    pub(crate) fn status(&self) -> NodeStatus {
        match &self.stage {
            Stage::Settled { ending, .. } => ending.status(),
            Stage::Waiting { .. } => NodeStatus::ImportedUnscored,
            _ => NodeStatus::Running,
        }
    }

    pub(crate) fn is_scored(&self) -> bool {
        self.status() == NodeStatus::Scored
    }

    pub(crate) fn consequence(&self) -> Consequence {
        failure::of(self.status())
    }

    /// A node of this run, not an import (`origin_run IS NULL`, O-CON-2).
    pub(crate) fn is_own(&self) -> bool {
        self.past.is_none()
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
            Stage::Waiting { .. } | Stage::Ending { .. } | Stage::Settled { .. } => None,
        }
    }

    pub(crate) fn plan(&self) -> Option<PlanView<'_>> {
        self.packed_plan().map(PackedPlan::view)
    }

    fn packed_plan(&self) -> Option<&PackedPlan> {
        match &self.stage {
            Stage::Comply { plan } | Stage::Engineer { plan } => Some(plan),
            Stage::Execute { build } | Stage::Score { build, .. } => build.plan(),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().and_then(Build::plan);
                built.or_else(|| ending.kept()?.plan())
            }
        }
    }

    pub(crate) fn session(&self) -> Option<&SessionReport> {
        match &self.stage {
            Stage::Execute { build } | Stage::Score { build, .. } => build.session(),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().and_then(Build::session);
                built.or_else(|| ending.kept()?.session())
            }
        }
    }

    pub(crate) fn commit(&self) -> Option<&CommitInfo> {
        match &self.stage {
            Stage::Execute { build }
            | Stage::Score { build, .. }
            | Stage::Waiting { build, .. } => build.commit(),
            stage => {
                let ending = stage.ending()?;
                let built = ending.build().and_then(Build::commit);
                built.or_else(|| ending.kept()?.commit())
            }
        }
    }

    /// Seed 0's execution.
    pub(crate) fn seed_0_report(&self) -> Option<&ExecReport> {
        if let Stage::Score { report, .. } = &self.stage {
            return Some(report);
        }
        match self.stage.ending() {
            Some(Ending::Scored(scored)) => Some(&scored.exec),
            Some(Ending::Faulty { faulty, .. }) => Some(&faulty.exec),
            _ => None,
        }
    }

    /// Every report, but for the control run's, which is evidence only (ABL-05).
    pub(crate) fn reports(&self) -> impl Iterator<Item = &ExecReport> {
        let reruns = self.reruns.iter();
        let reruns = reruns.filter(|(exec, _)| **exec != ExecName::Ablate);
        let further = reruns.filter_map(|(_, rerun)| rerun.report());
        self.seed_0_report().into_iter().chain(further)
    }

    /// The longest measured time on a view; 0 without one.
    pub(crate) fn longest_ms(&self, view: &ViewId) -> i64 {
        let times = self.reports().filter_map(|report| report.wall_ms.get(view));
        times.copied().max().unwrap_or(0).max(0)
    }

    /// Digests of seed 0's predictions.
    pub(crate) fn digests(&self) -> Option<&Table<ViewId, Digest>> {
        match &self.seed_0_report()?.result {
            ExecResult::Done { digests } => Some(digests),
            ExecResult::Fault { .. } => None,
        }
    }

    /// Score of one execution.
    pub(crate) fn score(&self, exec: ExecName) -> Option<&ScoreReport> {
        if exec == SEED_0 {
            return match self.stage.ending() {
                Some(Ending::Scored(scored)) => Some(&scored.score),
                _ => None,
            };
        }
        self.reruns.get(&exec)?.score()
    }

    /// The score of a seed that was measured in an epoch, by whatever execution.
    pub(crate) fn measured(
        &self,
        seed: ProgramSeed,
        epoch: u32,
    ) -> Option<(ExecName, &ScoreReport)> {
        if seed == ProgramSeed(0)
            && self.epoch == epoch
            && let Some(report) = self.score(SEED_0)
        {
            return Some((SEED_0, report));
        }
        let reruns = self.reruns.iter();
        let mut fitting = reruns.filter(|(exec, rerun)| {
            exec.is_ranked() && exec.program_seed() == seed && rerun.epoch == Some(epoch)
        });
        fitting.find_map(|(exec, rerun)| Some((*exec, rerun.score()?)))
    }

    /// Mean of three seeds after promotion, else seed 0 (SEL-03); only of scored nodes.
    pub(crate) fn ranking_score(&self) -> Option<Score> {
        let seed_0 = self.score(SEED_0)?.total;
        (self.is_scored()).then(|| self.promotion.mean.map_or(seed_0, |mean| mean.score))
    }

    /// The epoch that its rank belongs to (SEL-13, O-SEL-4).
    pub(crate) fn rank_epoch(&self) -> u32 {
        self.promotion.mean.map_or(self.epoch, |mean| mean.epoch)
    }

    /// METHOD.md was never written by the Engineer (MTH-02).
    pub(crate) fn is_method_auto(&self) -> bool {
        let session = self.session();
        session.is_some_and(|session| session.method == MethodState::Placeholder)
            || self.past.as_ref().is_some_and(|past| past.method_auto)
    }

    pub(crate) fn is_view_dependent(&self) -> bool {
        let is_found = self.view.verdict == Some(ViewVerdict::ViewDependent)
            && !planted::is(Bug::ViewDependentStays);
        is_found || self.past.as_ref().is_some_and(|past| past.view_dependent)
    }

    pub(crate) fn total_visits(&self) -> u64 {
        u64::from(self.visits) + u64::from(self.virtual_visits)
    }

    /// Takes in the times of an execution.
    pub(crate) fn measure(&mut self, report: &ExecReport) {
        let times = report.wall_ms.values();
        let longest =
            times.map(|ms| u32::try_from(*ms).unwrap_or(if *ms < 0 { 0 } else { u32::MAX }));
        self.longest_view_ms = longest.fold(self.longest_view_ms, u32::max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node costs this much at least (issue 3); the rest is what exists of it.
    #[test]
    fn a_node_is_small() {
        assert!(size_of::<Node>() <= 152, "{}", size_of::<Node>());
        assert!(size_of::<Scored>() <= 152, "{}", size_of::<Scored>());
    }
}
