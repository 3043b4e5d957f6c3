//! The evaluation spec: everything that gives a score its meaning (EVS-01). Built and hashed by
//! vec-lock; digests of truth, never truth.

mod anchor;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, Digest, ProgramSeed, RulerId, ViewId};

pub use anchor::{Anchor, AnchorHalf, AnchorKey, AnchorKeyError};

use crate::{Config, Limits, Metric, RulerRole};

/// The evaluation spec, schema 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalSpec {
    /// Version of this document; 1.
    pub schema: u32,
    /// The board.
    pub board: BoardId,
    /// What programs see.
    pub views: BTreeMap<ViewId, ViewSpec>,
    /// What predictions are compared with.
    pub truth: TruthFacts,
    /// How.
    pub rulers: BTreeMap<RulerId, RulerSpec>,
    /// Which rows and seeds.
    pub scoring: ScoringRules,
    /// The scorer's code.
    pub scorer: ScorerFacts,
    /// What programs run in.
    pub environment: CandidateEnvironment,
    /// How programs are run.
    pub execution: ExecutionSpec,
}

/// One view by content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewSpec {
    /// Manifest hash of the view directory, `manifest.json` included (EVS-10).
    pub content: Digest,
    /// Limits from the view's manifest (EVS-03).
    pub limits: Limits,
}

/// The hidden truth by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthFacts {
    /// sha256 of `A/truth.csv` and `B/truth.csv`, by half (`A`, `B`).
    pub sha256: BTreeMap<String, Digest>,
}

/// One ruler with its anchors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulerSpec {
    /// View whose prediction it scores.
    pub view: ViewId,
    /// What its score is for.
    pub role: RulerRole,
    /// Share of the node score.
    pub weight: f64,
    /// How predictions are compared with truth.
    pub metric: Metric,
    /// Anchors per half and scoring seed (O-EVS-1).
    pub anchors: BTreeMap<AnchorKey, Anchor>,
}

/// Which rows and seeds are scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoringRules {
    /// Share of the search rows that one scoring draws.
    pub truth_fraction: f64,
    /// Scoring seeds of search and promotion.
    pub search_seeds: BTreeSet<ProgramSeed>,
    /// Fresh seeds of the guard in order; not in `search_hash` (EVS-06).
    pub guard_seeds: Vec<ProgramSeed>,
    /// Prediction of the floor for every row: the mean target of the training rows.
    pub floor_prediction: f64,
}

/// The scorer by source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScorerFacts {
    /// Manifest hash over the scorer's sources, never of a binary.
    pub scorer_hash: Digest,
}

/// What a program runs in, as far as it may change its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateEnvironment {
    /// The Python.
    pub python: PythonFacts,
    /// The whole environment of a program but the paths: `LANG`, thread variables, ….
    pub variables: BTreeMap<String, String>,
    /// Model name of the CPU; `unavailable` where the system does not say.
    pub cpu_model: String,
    /// Machine architecture, e.g. `x86_64`.
    pub architecture: String,
}

/// Identity of a Python: manifest hash + interpreter (`decisions.md`, Python for candidates).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonFacts {
    /// `stdlib` or the environment's id.
    pub id: String,
    /// As `python --version` says, e.g. `3.11.2`.
    pub version: String,
    /// sha256 of the interpreter.
    pub interpreter_sha256: Digest,
    /// Manifest hash of the venv; absent for the host's standard library.
    pub manifest_hash: Option<Digest>,
    /// sha256 of the requirements lock; absent for the host's standard library.
    pub lock_sha256: Option<Digest>,
    /// Interpreter path inside the sandbox.
    pub argv0: PathBuf,
}

/// How programs are run (EVS-01 "execution parameters").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionSpec {
    /// Limits in force per view: the view's, tightened by the configuration.
    pub programs: BTreeMap<ViewId, Limits>,
}

/// The limits in force on a view: the manifest's, which the configuration may tighten but not
/// widen, so that a view's manifest never promises less than it says (EVS-03).
#[must_use]
pub fn effective_limits(config: &Config, manifest: &Limits) -> Limits {
    // Loader-bounded to 1 TB, so the cast is exact enough for a limit in whole MB.
    let output_max_mb = (config.execution.output_max_gb * 1_024.0).floor() as u32;
    Limits {
        memory_gb: manifest.memory_gb,
        time_limit_s: config
            .execution
            .time_limit_s
            .map_or(manifest.time_limit_s, |s| s.min(manifest.time_limit_s)),
        threads: manifest.threads.min(config.execution.threads),
        output_max_mb: manifest.output_max_mb.min(output_max_mb.max(1)),
    }
}
