//! Keys of the search policy: operators, parent selection, plateau (OPR, DRF, SEL, PLT, TUN).

use serde::{Deserialize, Serialize};
use vec_types::ProgramSeed;

/// `draft`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftOperator {
    /// Probability, 0..=1 (OPR-02).
    pub p: f64,
    /// Which family a draft is of.
    pub policy: DraftPolicy,
    /// Failed drafts after which coverage leaves a family out, 1..=1,000 (DRF-04).
    pub failed_cap: u32,
    /// Share of drafts after coverage that go to the family with the fewest, 0..=1 (DRF-05).
    pub min_explore: f64,
}

/// Which family a draft is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftPolicy {
    /// The family with the fewest drafts, in library order (DRF-08).
    RoundRobin,
    /// Every family once, categories in turn; then by what families gained (DRF-02, DRF-05). The
    /// idea library must have categories.
    CoverageBandit,
}

/// `debug`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebugOperator {
    /// Probability, 0..=1 (OPR-02).
    pub p: f64,
    /// Debug children per failed node, at least 1 (O-OPR-2).
    pub max_attempts: u32,
}

/// `tune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneOperator {
    /// Probability; 0 until the operator exists (TUN-01).
    pub p: f64,
    /// Seeds on which it will compare settings; distinct, none of them a seed of the guard
    /// (TUN-03, O-TUN-1).
    pub seeds: Vec<ProgramSeed>,
}

/// `select`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectConfig {
    /// FUTS exploration constant, > 0 (O-SEL-1).
    pub c_puct: f64,
    /// Do `gen_*` failures count for streaks (O-SEL-2).
    pub streak_counts_gen: bool,
    /// Newest children of a parent that must all have failed before it is suspended; 0 = never
    /// (SEL-06).
    pub streak_len: u32,
    /// Is one improve reserved for the first qualified draft of each family (SEL-10)?
    pub reserve_improve: bool,
    /// How far below the baseline's seed-0 score a qualified draft may be; points, 0 or more.
    pub reserve_margin: f64,
}

/// `plateau` (PLT-07, O-PLT-1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plateau {
    /// Is it looked for?
    pub enabled: bool,
    /// Newest scored nodes that must all have missed the top, at least 1 (PLT-01).
    pub window: u32,
    /// Size of the top that a new node has to get into, at least 1.
    pub top_k: u32,
    /// Probability of a draft while it lasts, 0..=1; at most what debug and tune leave (PLT-02).
    pub draft_p: f64,
}
