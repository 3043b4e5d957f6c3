//! Events: the only thing that is stored, the only thing that changes state. Facts come from
//! outside (effect results, start, resume, stop requests); decisions come from `decide` alone.

use serde::{Deserialize, Serialize};
use vec_types::{
    Digest, FamilyId, NodeId, NodeStatus, Operator, Phase, ProgramSeed, RunId, Score,
    SeedProgramId, StopReason,
};

use crate::{Effect, Outcome, Policy};

/// One event, version 1. Stored as canonical JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// Fact: the run begins; `policy` equals what the lock says.
    RunStart { run: RunId, policy: Box<Policy> },
    /// Fact: a new controller process took over.
    RunResume { start: u32 },
    /// Fact: somebody or something asks the run to stop (BUD-08, full disk).
    StopRequested { reason: StopReason, detail: String },
    /// Fact: an effect ended.
    EffectEnded { effect: Effect, end: Outcome },

    /// Decision: next phase.
    PhaseChange { from: Phase, to: Phase },
    /// Decision: one `random()` and what it means (OPR-01).
    Draw {
        node: NodeId,
        index: u64,
        u: f64,
        draft_p: f64,
        debug_p: f64,
        tune_p: f64,
        operator: Operator,
        inputs_digest: Digest,
    },
    /// Decision: the drawn operator was impossible (OPR-03).
    FallbackToImprove {
        node: NodeId,
        from: Operator,
        why: String,
    },
    /// Decision: nothing can be improved and nothing runs, so one draft is tried (O-STP-2).
    FallbackToDraft {
        node: NodeId,
        from: Operator,
        why: String,
    },
    /// Decision: the parent, and what every eligible parent looked like.
    Select {
        node: NodeId,
        parent: NodeId,
        reason: SelectReason,
        standings: Vec<Standing>,
        inputs_digest: Digest,
    },
    /// Decision: the family of a draft (DRF-08).
    DraftPick {
        node: NodeId,
        family: FamilyId,
        inputs_digest: Digest,
    },
    /// Decision: a node exists; its virtual visits count from here.
    NodeCreated {
        node: NodeId,
        operator: Operator,
        parent: Option<NodeId>,
        family: Option<FamilyId>,
        seed_program: Option<SeedProgramId>,
    },
    /// Decision: do this.
    EffectStarted { effect: Effect },
    /// Decision: a node is settled, once and for all.
    NodeSettled {
        node: NodeId,
        status: NodeStatus,
        no_progress: bool,
        same_as_parent: bool,
        budget_cut: bool,
        detail: String,
        inputs_digest: Digest,
    },
    /// Decision: a direction is refuted under its parent (REF-01).
    RefutedDirection {
        node: NodeId,
        parent: NodeId,
        text: String,
    },
    /// Decision: run these seeds for a node (PRO-02).
    PromotionStart {
        node: NodeId,
        generation: u32,
        seeds: Vec<ProgramSeed>,
        inputs_digest: Digest,
    },
    /// Decision: three seeds are in; the ranking score is now their mean.
    PromotionDone {
        node: NodeId,
        generation: u32,
        mean: Score,
        inputs_digest: Digest,
    },
    /// Decision: a seed failed or time ran out (O-PRO-2, PRO-06).
    PromotionFailed {
        node: NodeId,
        generation: u32,
        why: String,
    },
    /// Decision: final selection begins with these candidates, best first (FIN-05).
    FinalStart {
        epoch: u32,
        baseline: NodeId,
        candidates: Vec<NodeId>,
        inputs_digest: Digest,
    },
    /// Decision: a candidate is out.
    CandidateSkipped { node: NodeId, why: SkipReason },
    /// Decision: the one candidate that runs against the baseline (FIN-07).
    GuardStart {
        candidate: NodeId,
        baseline: NodeId,
        seeds: Vec<ProgramSeed>,
    },
    /// Decision: the guard's verdict; `replace` only if `lower_bound` > 0 on complete pairs.
    GuardResult {
        candidate: NodeId,
        pairs: Vec<Pair>,
        mean: Option<f64>,
        sd: Option<f64>,
        lower_bound: Option<f64>,
        complete: bool,
        replace: bool,
        why: String,
        inputs_digest: Digest,
    },
    /// Decision: no replacement is possible at all (FIN-04).
    FinalGuardRefused { why: String },
    /// Decision: the run's answer.
    WinnerChosen { node: NodeId, is_baseline: bool },
    /// Decision: nothing more happens.
    Stop { reason: StopReason, detail: String },
}

/// Why this parent (SEL-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectReason {
    /// Largest U.
    ArgmaxU,
    /// Largest U among all, since every eligible parent was busy.
    ArgmaxUBusy,
    /// Largest U with failure-streak suspensions lifted, since nothing else was left.
    ArgmaxUSuspended,
    /// The failed node to repair (O-OPR-2).
    DebugTarget,
}

/// An eligible parent as selection saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The node.
    pub node: NodeId,
    /// FUTS rank score in 0..=1.
    pub rank: f64,
    /// Visits incl. virtual ones.
    pub visits: u64,
    /// rank + exploration term.
    pub u: f64,
}

/// Why a candidate is out of final selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Review failed or could not be had.
    Review,
    /// A missing seed could not be run.
    Seeds,
    /// Out of time.
    Deadline,
}

/// Scores of one fresh seed on both sides; absent = that side has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Fresh seed.
    pub seed: ProgramSeed,
    /// Candidate's score.
    pub candidate: Option<Score>,
    /// Baseline's score.
    pub baseline: Option<Score>,
}

impl Event {
    /// Facts come from outside; everything else is a decision that replay re-derives.
    #[must_use]
    pub const fn is_fact(&self) -> bool {
        matches!(
            self,
            Self::RunStart { .. }
                | Self::RunResume { .. }
                | Self::StopRequested { .. }
                | Self::EffectEnded { .. }
        )
    }

    /// The node that it concerns, for the archive's `node` column.
    #[must_use]
    pub const fn node(&self) -> Option<NodeId> {
        match self {
            Self::EffectEnded { effect, .. } | Self::EffectStarted { effect } => {
                Some(effect.node())
            }
            Self::Draw { node, .. }
            | Self::FallbackToImprove { node, .. }
            | Self::FallbackToDraft { node, .. }
            | Self::Select { node, .. }
            | Self::DraftPick { node, .. }
            | Self::NodeCreated { node, .. }
            | Self::NodeSettled { node, .. }
            | Self::RefutedDirection { node, .. }
            | Self::PromotionStart { node, .. }
            | Self::PromotionDone { node, .. }
            | Self::PromotionFailed { node, .. }
            | Self::CandidateSkipped { node, .. }
            | Self::WinnerChosen { node, .. } => Some(*node),
            Self::GuardStart { candidate, .. } | Self::GuardResult { candidate, .. } => {
                Some(*candidate)
            }
            Self::RunStart { .. }
            | Self::RunResume { .. }
            | Self::StopRequested { .. }
            | Self::PhaseChange { .. }
            | Self::FinalStart { .. }
            | Self::FinalGuardRefused { .. }
            | Self::Stop { .. } => None,
        }
    }

    /// The word in the archive's `kind` column (requirements d): `plan_start`, `execute_end`, ….
    #[must_use]
    pub fn kind(&self) -> String {
        let word = match self {
            Self::EffectStarted { effect } => return format!("{}_start", effect.kind()),
            Self::EffectEnded { effect, .. } => return format!("{}_end", effect.kind()),
            Self::RunStart { .. } => "run_start",
            Self::RunResume { .. } => "run_resume",
            Self::StopRequested { .. } => "stop_requested",
            Self::PhaseChange { .. } => "phase_change",
            Self::Draw { .. } => "draw",
            Self::FallbackToImprove { .. } => "fallback_to_improve",
            Self::FallbackToDraft { .. } => "fallback_to_draft",
            Self::Select { .. } => "select",
            Self::DraftPick { .. } => "draft_pick",
            Self::NodeCreated { .. } => "node_created",
            Self::NodeSettled { .. } => "node_settled",
            Self::RefutedDirection { .. } => "refuted_direction",
            Self::PromotionStart { .. } => "promotion_start",
            Self::PromotionDone { .. } => "promotion_done",
            Self::PromotionFailed { .. } => "promotion_failed",
            Self::FinalStart { .. } => "final_start",
            Self::CandidateSkipped { .. } => "candidate_skipped",
            Self::GuardStart { .. } => "guard_start",
            Self::GuardResult { .. } => "guard_result",
            Self::FinalGuardRefused { .. } => "final_guard_refused",
            Self::WinnerChosen { .. } => "winner_chosen",
            Self::Stop { .. } => "stop",
        };
        word.to_owned()
    }
}
