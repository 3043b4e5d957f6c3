//! Effects: what the controller does for the run, and how each may end. Every effect has a stable
//! id; the same id never ends twice.

use std::fmt;

use serde::{Deserialize, Serialize};
use vec_types::{
    CandidateFault, Digest, ExecName, FamilyId, InfraFault, NodeId, Plan, ScoreReport,
    SeedProgramId, Table, TreeId, ViewId,
};

/// One thing to do. Data only moves right along the pipeline (architecture §4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// Commit a seed program from the code snapshot to programs.git.
    ImportSeed {
        node: NodeId,
        program: SeedProgramId,
    },
    /// Researcher call: writes PLAN.json.
    Plan { node: NodeId },
    /// Compliance pattern pass on the plan.
    Comply { node: NodeId },
    /// Engineer session and commit of `solution/`.
    Engineer { node: NodeId },
    /// Authoritative execution on the objective views (or the final view for `final`).
    Execute { node: NodeId, exec: ExecName },
    /// Scoring of an execution's predictions on half B.
    Score { node: NodeId, exec: ExecName },
    /// Analyst call: writes ANALYSIS.json.
    Analyze { node: NodeId },
    /// Reviewer call. A call that ends in [`ReviewVerdict::Error`] is repeated with the next
    /// `attempt` (from 0, fewer than [`crate::REVIEW_ATTEMPTS_MAX`]).
    Review { node: NodeId, attempt: u32 },
    /// Put the `final` execution's prediction in `final/` and write SELECTION.md.
    Place { node: NodeId, provisional: bool },
}

/// Stable name of an effect: `execute-3-seed0`, `plan-7`, `review-7-0`, `place-0-provisional`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(String);

impl EffectId {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Effect {
    /// The node that it works for.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        match self {
            Self::ImportSeed { node, .. }
            | Self::Plan { node }
            | Self::Comply { node }
            | Self::Engineer { node }
            | Self::Execute { node, .. }
            | Self::Score { node, .. }
            | Self::Analyze { node }
            | Self::Review { node, .. }
            | Self::Place { node, .. } => *node,
        }
    }

    /// One word for its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ImportSeed { .. } => "import_seed",
            Self::Plan { .. } => "plan",
            Self::Comply { .. } => "comply",
            Self::Engineer { .. } => "engineer",
            Self::Execute { .. } => "execute",
            Self::Score { .. } => "score",
            Self::Analyze { .. } => "analyze",
            Self::Review { .. } => "review",
            Self::Place { .. } => "place",
        }
    }

    /// Its stable id.
    #[must_use]
    pub fn id(&self) -> EffectId {
        let (kind, node) = (self.kind(), self.node());
        EffectId(match self {
            Self::Execute { exec, .. } | Self::Score { exec, .. } => {
                format!("{kind}-{node}-{exec}")
            }
            Self::Place {
                provisional: true, ..
            } => format!("{kind}-{node}-provisional"),
            Self::Review { attempt, .. } => format!("{kind}-{node}-{attempt}"),
            _ => format!("{kind}-{node}"),
        })
    }

    /// Does a restart of the controller end it as interrupted instead of doing it again? True for
    /// what costs money or cannot be repeated (ENG-14).
    #[must_use]
    pub const fn is_interrupted_by_restart(&self) -> bool {
        matches!(self, Self::Plan { .. } | Self::Engineer { .. })
    }
}

/// How an effect ended. The variant must fit the effect; `apply` refuses a mismatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// [`Effect::ImportSeed`]: committed.
    Imported { commit: CommitInfo },
    /// [`Effect::Plan`].
    Planned { result: PlanResult },
    /// [`Effect::Comply`]: sentences removed; `emptied` = nothing of the approach is left (CMP-02).
    Complied { removed: u32, emptied: bool },
    /// [`Effect::Engineer`].
    Engineered { session: SessionReport },
    /// [`Effect::Execute`].
    Executed { report: ExecReport },
    /// [`Effect::Score`].
    Scored { result: ScoreResult },
    /// [`Effect::Analyze`]: failure never changes a node (O-REV-3).
    Analyzed {
        written: bool,
        family: Option<FamilyId>,
    },
    /// [`Effect::Review`].
    Reviewed { verdict: ReviewVerdict },
    /// [`Effect::Place`]: digest of the file in `final/`; absent = it could not be placed.
    Placed { sha256: Option<Digest> },
    /// Any effect: cut short through no fault of the candidate.
    Interrupted { fault: InfraFault, detail: String },
}

/// A commit in programs.git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// Commit id.
    pub commit: TreeId,
    /// Tree of `solution/`.
    pub tree: TreeId,
    /// Tree of `solution/` without METHOD.md (CID-01 a, O-CID-2).
    pub runtime_key: TreeId,
}

/// What came of a Researcher call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum PlanResult {
    /// A valid plan after `attempts` calls.
    Valid { plan: Plan, attempts: u32 },
    /// Invalid twice (RES-07) → `gen_failed`.
    Invalid { error: String },
}

/// How an Engineer session ended (ENG-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineerEnd {
    /// It ended by itself.
    Finished,
    /// Ended after stall strikes (ENG-05).
    Stalled,
    /// Ended at the hand-off point.
    HandOff,
}

/// State of METHOD.md at the end of a session (MTH).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum MethodState {
    /// Written by the Engineer; its first line.
    Written { first_line: String },
    /// Still the harness's placeholder (MTH-02).
    Placeholder,
    /// Missing or empty (MTH-05).
    Missing,
}

/// What an Engineer session left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// Why it ended.
    pub end: EngineerEnd,
    /// State of METHOD.md.
    pub method: MethodState,
    /// Is there a `run.py`.
    pub has_run_py: bool,
    /// The commit; absent when METHOD.md or run.py is missing (MTH-02, MTH-05).
    pub commit: Option<CommitInfo>,
    /// Half-A queries charged; absent = unknown (SCO-08).
    pub queries_used: Option<u32>,
    /// Wall time of the session.
    pub wall_ms: i64,
}

/// Result of one execution over all its views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecReport {
    /// Result; the first failing view decides (EXE-01).
    pub result: ExecResult,
    /// Wall time per view in milliseconds, as far as it came.
    pub wall_ms: Table<ViewId, i64>,
    /// Largest resident set of a single process in KiB, where known.
    pub max_rss_kib: Option<u64>,
    /// Sum of the harness's own spans around the program in milliseconds.
    pub harness_ms: i64,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "exec", rename_all = "snake_case")]
pub enum ExecResult {
    /// A prediction on every view; content digest per view (CID-01 b).
    Done { digests: Table<ViewId, Digest> },
    /// The program's fault; detail for people and the Analyst.
    Fault {
        fault: CandidateFault,
        detail: String,
    },
}

/// How a scoring ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "score", rename_all = "snake_case")]
pub enum ScoreResult {
    /// Scored.
    Done { report: ScoreReport },
    /// The prediction failed the format check → `invalid_format`.
    InvalidFormat { detail: String },
}

/// Reviewer's verdict (O-REV-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// In order.
    Pass,
    /// Never a parent, never in final selection.
    Fail,
    /// Model down or reply unusable: stays unreviewed, retried at the next trigger.
    Error,
}
