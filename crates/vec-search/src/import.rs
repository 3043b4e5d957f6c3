//! What comes over from an earlier run: settled nodes, incomparable ones that wait to be scored
//! again, and carried-over work (CON, CAR).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vec_types::{
    CandidateFault, Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, Plan, RunNode, Score,
    ScoreReport, SeedProgramId, SeedState, Table, ViewId,
};

use crate::{CommitInfo, ReviewVerdict, SessionReport};

/// A node of an earlier run. Interrupted and otherwise shelved nodes are not imported (O-CON-1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// Where it is from (CON-06).
    pub origin: RunNode,
    /// How it came to be.
    pub operator: Operator,
    /// Parent, renumbered; always an earlier import.
    pub parent: Option<NodeId>,
    /// Family of its plan.
    pub family: Option<FamilyId>,
    /// Family that it was drawn for, for drafts.
    pub drawn_family: Option<FamilyId>,
    /// The seed program that it was, with its state there.
    pub seed_program: Option<(SeedProgramId, SeedState)>,
    /// How it ended.
    pub end: ImportEnd,
    /// Verdict of its review; never `error`.
    pub review: Option<ReviewVerdict>,
    /// Output equal to its parent's (SEL-11).
    pub no_progress: bool,
    /// Program equal to its parent's.
    pub same_as_parent: bool,
    /// METHOD.md was never written by the Engineer (MTH-03).
    pub method_auto: bool,
    /// Excluded by the view-blindness check (SEL-08).
    pub view_dependent: bool,
    /// Refuted direction that it left under its parent (REF-03).
    pub refuted: Option<String>,
    /// The work that it took up, for resume nodes (CAR-14).
    pub resumed: Option<RunNode>,
}

/// How an imported node ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum ImportEnd {
    /// Scored, and comparable: both runs have the same `search_hash`.
    Scored {
        commit: CommitInfo,
        digests: Table<ViewId, Digest>,
        scores: BTreeMap<ExecName, ScoreReport>,
        /// Mean over all seeds, if it was promoted.
        mean: Option<Score>,
    },
    /// Scored under another `search_hash`, with its ranking score there.
    Unscored { commit: CommitInfo, ranking: Score },
    /// No usable program.
    GenFailed,
    /// The parent's program.
    GenEmpty,
    /// Executed, and the program was at fault.
    Faulty {
        commit: CommitInfo,
        fault: CandidateFault,
    },
    /// Sealed at the hand-off; `work` is its stable identity over all runs.
    CarriedOver {
        work: RunNode,
        kind: Box<CarriedKind>,
    },
}

impl ImportEnd {
    /// The status that an import so ended comes in with.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        match self {
            Self::Scored { .. } => NodeStatus::Scored,
            Self::Unscored { .. } => NodeStatus::ImportedUnscored,
            Self::GenFailed => NodeStatus::GenFailed,
            Self::GenEmpty => NodeStatus::GenEmpty,
            Self::Faulty { fault, .. } => (*fault).into(),
            Self::CarriedOver { .. } => NodeStatus::CarriedOver,
        }
    }
}

/// What was carried over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CarriedKind {
    /// A session without a program: a new session goes on from its snapshot (CAR-19).
    Engineer { plan: Plan },
    /// A program without a result: it is executed from scratch (CAR-21).
    Execution { plan: Plan, session: SessionReport },
}
