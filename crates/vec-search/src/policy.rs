//! Everything of the lock that decisions rest on. It is the payload of `run_start`, so a fold
//! needs no other input.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vec_types::{FamilyId, ProgramSeed, RulerId, SearchSeed, SeedProgramId, SeedState, ViewId};

mod problems;

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
    /// How drafts find their family (DRF).
    pub draft: Draft,
    /// What a search that no longer gets better does (PLT).
    pub plateau: Plateau,
    /// The idea library, in library order (DRF-01).
    pub families: Vec<Family>,
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
    /// Does every analysed node get a control run with its mechanism switched off (ABL-06)?
    pub ablation: bool,
    /// The view-blindness check; promotion and final selection demand it (VCK-03).
    pub view_check: ViewCheck,
    /// Time and node budget, relative to `run_start`.
    pub budget: Budget,
    /// The final reserve grows with measured times (RSV); absent = the configured value alone.
    pub reserve: Option<Reserve>,
    /// What is taken over from an earlier run (CON, CAR).
    pub continuation: Continuation,
}

/// A method family of the idea library (DRF-01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its id.
    pub id: FamilyId,
    /// Its category; families without one form a category of their own.
    pub category: Option<String>,
}

/// How drafts find their family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draft {
    /// Library order, one after another (DRF-08).
    RoundRobin,
    /// Every family once, then a bandit (DRF-02..06).
    CoverageBandit {
        /// Failed drafts after which coverage passes a family over, at least 1 (DRF-04).
        failed_cap: u32,
        /// Share of explored drafts after coverage, in 0..=1 (DRF-05).
        min_explore: f64,
    },
}

/// The plateau policy (PLT-01, PLT-02).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plateau {
    /// Off by default (PLT-07).
    pub enabled: bool,
    /// Scored nodes in a row that did not refresh the top, at least 1.
    pub window: u32,
    /// Size of the top, at least 1.
    pub top_k: u32,
    /// Probability of draft meanwhile, in 0..=1; debug and tune keep theirs.
    pub draft_p: f64,
}

/// Times that the measured reserve adds up beside executions (RSV-02, RSV-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Added to the estimate.
    pub margin_ms: i64,
    /// Wait for a scoring worker, per execution.
    pub queue_ms: i64,
    /// Time limit of one execution, for what was never measured (O-RSV-2).
    pub time_limit_ms: i64,
}

/// What a run takes over from the run before it (CON, CAR).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continuation {
    /// Nodes to import before seeding; 0 for a run that continues nothing.
    pub imports: u32,
    /// Imports with incomparable scores that are scored again, best first (CON-02).
    pub rescore_top_k: u32,
    /// Carried-over work that is taken up in this run (CAR-13).
    pub max_resume: u32,
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
    /// Children that fail in a row before their parent is suspended; 0 = never (SEL-06).
    pub streak_len: u32,
    /// The first draft of a family that is at most this far below the baseline is sure of one
    /// improve; at least 0, absent = no such rule (SEL-10).
    pub reserve_improve: Option<f64>,
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

/// The view-blindness check (VCK).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewCheck {
    /// Share of all scored nodes that are checked at once, in 0..=1.
    pub sample: f64,
    /// Views that are put in disguise: at least one, all of them objective views.
    pub views: BTreeSet<ViewId>,
    /// Final selection waits at most this long for a view check, beside the measured time of one
    /// that it began itself (VCK-06).
    pub lock_wait_ms: i64,
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

impl Policy {
    /// Views that objective components run on.
    #[must_use]
    pub fn objective_views(&self) -> BTreeSet<&ViewId> {
        self.objective
            .keys()
            .filter_map(|ruler| self.ruler_views.get(ruler))
            .collect()
    }

    /// What contradicts itself; empty for a policy that a run can follow. `run_start` with problems
    /// is refused.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        problems::problems(self)
    }
}
