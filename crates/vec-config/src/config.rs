//! The validated configuration of a run. It serialises to the normalised form that the lock
//! holds: every key present, paths absolute, values in the units that people write.

mod check;
mod fault;
mod models;
mod search;
mod timeline;
mod written;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_search::GuardKind;
use vec_types::{ProgramSeed, SearchSeed};

pub use fault::{Fault, FaultPoint};
pub use models::{
    Endpoint, EndpointKind, Engineer, EngineerFramework, EngineerModel, EngineerStall, Models, Role,
};
pub use search::{DebugOperator, DraftOperator, DraftPolicy, Plateau, SelectConfig, TuneOperator};
pub use timeline::Timeline;

use crate::ConfigError;

/// Kind of run. A config without `mode` means an agent run (T3A-01), which does not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A tree search over programs.
    Search,
}

/// A validated configuration (requirements g; LCK-02 "normalised configuration").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Kind of run.
    pub mode: Mode,
    /// Absolute path of the board definition.
    pub board: PathBuf,
    /// Seed of the operator draw.
    pub search_seed: SearchSeed,
    /// How much runs at a time.
    pub concurrency: Concurrency,
    /// The draft operator.
    pub draft: DraftOperator,
    /// The debug operator.
    pub debug: DebugOperator,
    /// The tune operator; off.
    pub tune: TuneOperator,
    /// Parent selection.
    pub select: SelectConfig,
    /// What changes when nothing new gets to the top.
    pub plateau: Plateau,
    /// Rules of seed programs.
    pub seed_states: SeedStates,
    /// Time, nodes and money.
    pub budget: Budget,
    /// Final selection.
    #[serde(rename = "final")]
    pub final_selection: Final,
    /// Promotion over more seeds.
    pub promotion: Promotion,
    /// The guard in front of the baseline.
    pub guard: GuardConfig,
    /// The scoring service.
    pub scoring: Scoring,
    /// Authoritative executions.
    pub execution: Execution,
    /// Control runs.
    pub ablation: Ablation,
    /// View check.
    pub viewcheck: ViewCheck,
    /// GPU slots.
    pub gpu: Gpu,
    /// Engineer sessions.
    pub engineer: Engineer,
    /// When a silent Engineer session is ended.
    pub engineer_stall: EngineerStall,
    /// Models, where they are, and who uses them.
    pub models: Models,
    /// The scripted double.
    pub playbook: PlaybookTuning,
    /// Restarts of crashed daemons.
    pub restarts: Restarts,
    /// Faults to inject, for tests; a reason against submission.
    pub fault: Fault,
    /// Why this run is made (MET-03).
    pub purpose: Option<String>,
    /// What it is expected to show.
    pub hypothesis: Option<String>,
}

/// `concurrency`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    /// Nodes in work at a time, 1..=64 (ARC-09).
    pub nodes: u32,
}

/// `seed_states`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedStates {
    /// Children of an exploration seed before it is blocked (SED-05).
    pub max_children: u32,
}

/// `budget` (BUD).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// From start to the hard end, in hours.
    pub wall_hours: f64,
    /// Nodes, seed programs not counted.
    pub max_nodes: u32,
    /// Hand-off is this much before cutoff.
    pub node_tail_minutes: f64,
    /// Cutoff is this much before the hard end.
    pub final_reserve_minutes: f64,
    /// Settling may take this much after cutoff and grace.
    pub settle_extra_s: u32,
    /// Settling ends at least this much before the hard end.
    pub settle_guard_s: u32,
    /// Money cap; absent = none.
    pub max_cost_usd: Option<f64>,
}

/// `final` (FIN).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Final {
    /// Candidates of final selection, at least 1 (FIN-05).
    pub top_k: u32,
    /// Room for format check and write-out of the winner (FIN-09).
    pub place_room_s: u32,
    /// Margin on the measured reserve (RSV-04).
    pub reserve_margin_s: u32,
}

/// `promotion` (PRO).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// How many of the best are promoted.
    pub top_k: u32,
    /// Program seeds beside seed 0; distinct, not 0.
    pub seeds: Vec<ProgramSeed>,
}

/// `guard` (FIN-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardConfig {
    /// Kind.
    pub kind: GuardKind,
    /// At least two fresh seeds; distinct, and none of seed 0 and the promotion seeds.
    pub fresh_seeds: Vec<ProgramSeed>,
}

/// `scoring` (SCO).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scoring {
    /// Scorings at a time.
    pub workers: u32,
    /// Address space of one worker.
    pub worker_memory_gb: f64,
    /// Expected wait for a worker.
    pub queue_estimate_s: u32,
    /// Longest wait for a client's last query (SCO-08).
    pub settle_wait_s: u32,
    /// vec-score queries of one Engineer session (TOO).
    pub client_quota: u32,
}

/// `execution` (EXE). Limits here only tighten those of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// TERM to KILL.
    pub term_grace_s: u32,
    /// Threads that a program may use.
    pub threads: u32,
    /// Most that a program may write.
    pub output_max_gb: f64,
    /// Wall clock of one execution on one view; absent = the board's limit.
    pub time_limit_s: Option<u32>,
}

/// `viewcheck` (VCK).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewCheck {
    /// Share of scored nodes that are checked at once, 0 to 1 (VCK-03); promoted nodes and final
    /// candidates always are.
    pub sample: f64,
    /// Longest wait of final selection for a view check that was under way; one that it began itself
    /// gets its measured time beside (VCK-06).
    pub lock_wait_s: u32,
}

/// `ablation` (ABL-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ablation {
    /// Runs every analysed program once more with its mechanism switched off; off by default, since
    /// it roughly doubles the time of executions.
    pub enabled: bool,
}

/// `gpu`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Slots; 0 until the broker exists (CX-15).
    pub slots: u32,
}

/// `playbook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaybookTuning {
    /// Programs that the scripted Engineer tries in one session, at most `scoring.client_quota`.
    pub trials: u32,
}

/// `restarts` (architecture §2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarts {
    /// Restarts of one daemon within the window.
    pub max: u32,
    /// The window.
    pub window_minutes: u32,
}

/// Loads a run configuration: built-in defaults < `path` < each `key=value` of `sets`, in order.
/// Relative paths, also those given by `sets`, are relative to the directory of `path`.
///
/// # Errors
/// [`ConfigError`]; [`ConfigError::Invalid`] holds every problem found, each with its source
/// (file or `--set`), key path and remedy.
pub fn load_config(path: &Path, sets: &[String]) -> Result<Config, ConfigError> {
    let layers = crate::load::Layers::new(include_str!("config/defaults.yaml"), path, sets)?;
    let written = layers.read::<written::WrittenConfig>()?;
    check::validate(written, &layers)
}
