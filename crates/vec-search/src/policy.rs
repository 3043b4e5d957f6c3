//! Everything of the lock that decisions rest on. It is the payload of `run_start`, so a fold
//! needs no other input.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vec_types::{FamilyId, ProgramSeed, RulerId, SearchSeed, SeedProgramId, SeedState, ViewId};

/// The locked rules of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Seed of the operator draw (O-OPR-1).
    pub search_seed: SearchSeed,
    /// Nodes in work at a time, at least 1 (ARC-09).
    pub concurrency_nodes: u32,
    /// Probability of draft, in 0..=1 (OPR-02).
    pub draft_p: f64,
    /// Probability of debug, in 0..=1.
    pub debug_p: f64,
    /// Probability of tune; 0 until the operator exists (TUN-01).
    pub tune_p: f64,
    /// Debug children per failed node (O-OPR-2).
    pub debug_max_attempts: u32,
    /// Parent selection.
    pub select: Select,
    /// Families for drafts, in library order (DRF-08).
    pub families: Vec<FamilyId>,
    /// Seed programs in order of execution.
    pub seed_programs: Vec<SeedProgram>,
    /// Children of an exploration seed before it is blocked (SED-05, O-SED-2).
    pub seed_max_children: u32,
    /// Objective components and their weights, summing to 1 (RUL-01).
    pub objective: BTreeMap<RulerId, f64>,
    /// View that each objective component runs on.
    pub ruler_views: BTreeMap<RulerId, ViewId>,
    /// View on which the answer is made.
    pub final_view: ViewId,
    /// Promotion takes the best `promotion_top_k` (PRO-01).
    pub promotion_top_k: u32,
    /// Program seeds of a promotion, beside seed 0 (PRO-02).
    pub promotion_seeds: Vec<ProgramSeed>,
    /// Candidates of final selection (FIN-05).
    pub final_top_k: u32,
    /// The guard (FIN-07).
    pub guard: Guard,
    /// Which checks promotion and final selection demand.
    pub checks: ChecksMode,
    /// Time and node budget, relative to `run_start`.
    pub budget: Budget,
}

/// A seed program as locked (SED-01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedProgram {
    /// Its directory name.
    pub id: SeedProgramId,
    /// What it may become.
    pub state: SeedState,
    /// Family that it covers; absent for the baseline.
    pub family: Option<FamilyId>,
}

/// Parent selection (SEL).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// FUTS exploration constant, > 0 (O-SEL-1).
    pub c_puct: f64,
    /// Do `gen_*` failures count for streaks (O-SEL-2 overridden: default false).
    pub streak_counts_gen: bool,
}

/// Kind of guard (O-FIN-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardKind {
    /// One candidate, paired fresh seeds, t lower bound > 0 (FIN-07).
    Noninferiority,
}

/// The statistical guard in front of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Kind.
    pub kind: GuardKind,
    /// Fresh seeds; program seed = scoring seed.
    pub fresh_seeds: Vec<ProgramSeed>,
}

/// Which checks must have passed before promotion and final selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksMode {
    /// View check and ablation are recorded `not_run` and accepted; a reason against submission.
    FirstLight,
}

/// Budget in milliseconds relative to `run_start` (BUD, requirements c).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Nodes of this run, seed programs not counted.
    pub max_nodes: u32,
    /// Hard end of the run.
    pub wall_ms: i64,
    /// Time kept for final selection.
    pub final_reserve_ms: i64,
    /// Hand-off is this much before cutoff.
    pub node_tail_ms: i64,
    /// Settling may take this much after cutoff and grace.
    pub settle_extra_ms: i64,
    /// Settling ends at least this much before the hard end.
    pub settle_guard_ms: i64,
    /// TERM to KILL.
    pub term_grace_ms: i64,
    /// Room to place the winner, beside measured run times (FIN-09).
    pub place_room_ms: i64,
}
