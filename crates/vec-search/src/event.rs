//! Events: the only thing that is stored, the only thing that changes state. Facts come from
//! outside (effect results, start, resume, stop requests); decisions come from `decide` alone.

use serde::{Deserialize, Serialize};
use vec_types::{
    Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, Phase, ProgramSeed, RunId, RunNode,
    Score, SeedProgramId, StopReason,
};

mod kind;

use crate::{
    DraftMode, Effect, Import, MechanismActive, Outcome, Policy, SelectReason, Standing,
    ViewTrigger, ViewVerdict,
};

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
    /// Fact: a node of an earlier run, in the order of that run (CON-01, CON-06).
    Imported { node: NodeId, import: Box<Import> },
    /// Fact: new data is mounted; what starts from here on sees it (EPO-01). Ids of what was
    /// added.
    EpochAdvance { epoch: u32, added: Vec<String> },

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
        plateau: bool,
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
    /// Decision: the parent, why, and what it was chosen from (SEL-14). `pool` counts the eligible
    /// parents; the standings are all of them, or the `STANDINGS_MAX` with the largest U, in order
    /// of nodes.
    Select {
        node: NodeId,
        parent: NodeId,
        reason: SelectReason,
        plateau: bool,
        pool: u32,
        standings: Vec<Standing>,
        inputs_digest: Digest,
    },
    /// Decision: the family of a draft (DRF).
    DraftPick {
        node: NodeId,
        family: FamilyId,
        mode: DraftMode,
        plateau: bool,
        inputs_digest: Digest,
    },
    /// Decision: carried-over work is taken up before anything is drawn (CAR-13, O-OPR-3); no
    /// random number is used.
    ResumePick {
        node: NodeId,
        carried: NodeId,
        work: RunNode,
        inputs_digest: Digest,
    },
    /// Decision: carried-over work is not taken up, for good (CAR-22).
    ResumeRefused {
        node: NodeId,
        work: RunNode,
        why: String,
    },
    /// Decision: the search stopped, or began again, to get better (PLT-04).
    Plateau { active: bool, inputs_digest: Digest },
    /// Decision: an import is executed and scored again (CON-02).
    RescoreStart { node: NodeId },
    /// Decision: it was not scored again; it stays `imported_unscored` for the next run (CON-03).
    RescoreCut { node: NodeId, why: String },
    /// Decision: final selection needs more time than was reserved; cutoff moves earlier (RSV-04).
    FinalReserve {
        reserve_ms: i64,
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
        epoch: u32,
        detail: String,
        inputs_digest: Digest,
    },
    /// Decision: a direction is refuted under its parent (REF-01).
    RefutedDirection {
        node: NodeId,
        parent: NodeId,
        text: String,
    },
    /// Decision: what the control run says; evidence only, never part of a ranking (ABL-05).
    AblationResult {
        node: NodeId,
        mechanism_active: MechanismActive,
        why: String,
        inputs_digest: Digest,
    },
    /// Decision: the outcome of one view check (VCK-02).
    ViewCheckResult {
        node: NodeId,
        attempt: u32,
        verdict: ViewVerdict,
        trigger: ViewTrigger,
        why: String,
        inputs_digest: Digest,
    },
    /// Decision: run these executions for a node, so that every seed is measured in `epoch`
    /// (PRO-02, EPO-04).
    PromotionStart {
        node: NodeId,
        generation: u32,
        epoch: u32,
        execs: Vec<ExecName>,
        inputs_digest: Digest,
    },
    /// Decision: all seeds are in; the ranking score is now their mean.
    PromotionDone {
        node: NodeId,
        generation: u32,
        epoch: u32,
        mean: Score,
        inputs_digest: Digest,
    },
    /// Decision: a seed failed or time ran out (O-PRO-2, PRO-06).
    PromotionFailed {
        node: NodeId,
        generation: u32,
        epoch: u32,
        cause: PromotionFailure,
        why: String,
        inputs_digest: Digest,
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
    /// Decision: nothing more happens. The digest is over everything that the run knows.
    Stop {
        reason: StopReason,
        detail: String,
        inputs_digest: Digest,
    },
}

/// How a promotion failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromotionFailure {
    /// The program's fault: not tried again in this epoch (O-PRO-1).
    Faulty,
    /// An infrastructure fault: tried again, at most [`crate::PROMOTION_ATTEMPTS_MAX`] times in
    /// one epoch.
    Lost,
    /// Out of time (PRO-06): final selection may run it.
    Abandoned,
}

/// Why a candidate is out of final selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Review failed or could not be had.
    Review,
    /// It is view-dependent, or its view check could not be had.
    ViewCheck,
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
