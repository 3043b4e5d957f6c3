//! Launch specs: what a daemon of a run is told at start, as JSON on an inherited descriptor;
//! never argv, environment or a file of the run (architecture §2). Version 1; fields are only
//! ever added.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, Digest, ProgramSeed, RulerId, RunId, ViewId};

/// What every daemon of a run is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// Spec version; 1.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// Start number of this daemon in this run, from 0.
    pub start: u32,
    /// Uids that may call the daemon listener (SO_PEERCRED).
    pub peer_uids: Vec<u32>,
}

/// For `vec-controller`. Descriptors: listener (Control), log `logs/controller.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControllerSpec {
    /// As for every daemon.
    pub common: Common,
    /// The run directory; the controller takes its lock.
    pub run_dir: PathBuf,
    /// `R/r/<run8>`: client directories are made below `c/`.
    pub run_runtime_dir: PathBuf,
    /// Socket of the run's scorer.
    pub scorer_socket: PathBuf,
    /// HTTP socket of the run's model gateway.
    pub gateway_socket: PathBuf,
    /// The sandbox helper, hash-checked by the launcher.
    pub sandbox_helper: PathBuf,
    /// Python of the candidates.
    pub python: PythonSpec,
    /// Fault to inject in this start, for tests (`event:<kind>`, `event:each`, `store:<step>`,
    /// `weights:<step>`).
    pub fault: Option<String>,
    /// Reopen a closed segment instead of continuing an open one.
    pub reopen: bool,
}

/// Where Python stands inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonSpec {
    /// Interpreter path inside the sandbox.
    pub argv0: PathBuf,
    /// Read-only binds beside the system's: host path, path inside.
    pub ro_binds: Vec<(PathBuf, PathBuf)>,
}

/// For `vec-scorer`. Descriptors: listener (Scorer), log `logs/scorer.jsonl` (its synced journal
/// and the per-query evidence), truth directory of the board (`truth/<board>`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScorerSpec {
    /// As for every daemon.
    pub common: Common,
    /// What to score and how.
    pub scoring: ScoringSpec,
    /// Longest accepted prediction file in bytes.
    pub prediction_bytes_max: u64,
    /// Scorings at a time.
    pub workers: u32,
    /// `R/r/<run8>/c`: client listeners may only be bound in directories below it.
    pub clients_dir: PathBuf,
}

/// The scoring side of a board, as locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoringSpec {
    /// The board.
    pub board: BoardId,
    /// Objective rulers and their weights, summing to 1.
    pub rulers: BTreeMap<RulerId, RulerSpec>,
    /// Share of the search rows that scoring seeds 0, 1, 2 draw, in (0, 1].
    pub truth_fraction: f64,
    /// Fresh seeds of the guard, in order: the k-th scores the k-th part of the guard rows.
    pub guard_seeds: Vec<ProgramSeed>,
    /// sha256 of `A/truth.csv` and `B/truth.csv`; checked before the first score.
    pub truth_sha256: BTreeMap<String, Digest>,
    /// Prediction of the floor for every row: the mean target of the training rows (tabular).
    pub floor_prediction: f64,
}

/// One objective ruler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RulerSpec {
    /// View whose prediction it scores.
    pub view: ViewId,
    /// Weight in 0..=1.
    pub weight: f64,
    /// Metric name: `rmse`.
    pub metric: String,
}

/// For `vec-egress`. Descriptors: listener (HTTP), log `logs/egress.jsonl` (every call).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EgressSpec {
    /// As for every daemon.
    pub common: Common,
    /// Locked models and where each is reached.
    pub models: BTreeMap<String, UpstreamSpec>,
    /// Requests of the whole run; more are refused with 429.
    pub requests_max: u64,
    /// Longest accepted request or reply body in bytes.
    pub body_bytes_max: u64,
    /// Longest wait for a whole reply in milliseconds.
    pub total_timeout_ms: u64,
    /// Longest wait for the next bytes of a reply in milliseconds.
    pub idle_timeout_ms: u64,
}

/// Where a model is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UpstreamSpec {
    /// The scripted model of this run, HTTP over its Unix socket.
    Playbook { socket: PathBuf },
}

/// For `vec-playbook serve`. Descriptors: listener (HTTP), log `logs/playbook.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaybookSpec {
    /// As for every daemon.
    pub common: Common,
    /// The playbook file in the code snapshot.
    pub playbook: PathBuf,
    /// Replies are a function of this seed, the role, the node and the attempt.
    pub search_seed: u32,
}
