//! Board definitions: what a board is, validated (architecture §9, CONTRACTS). Boards are data;
//! no code branches on a board's name.

mod check;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, CategoryId, FamilyId, RulerId, SeedProgramId, SeedState, ViewId};

use crate::{BoardFamily, ConfigError};

/// A validated board definition. Serialised it is part of the lock, so no path of this machine
/// but the resolved ones (`seeds_dir`, `idea_library`, a venv lock) is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its id.
    pub board: BoardId,
    /// For people.
    pub title: String,
    /// Where the data is from.
    pub source: String,
    /// What is asked of a program.
    pub task: Task,
    /// The raw data.
    pub data: Data,
    /// Rows for training and for testing.
    pub split: Split,
    /// Test rows into halves A and B, half B into search and guard rows.
    pub halves: Halves,
    /// Views; exactly one for a tabular board.
    pub views: BTreeMap<ViewId, TabularView>,
    /// Rulers; the weights of objective rulers sum to 1 (RUL-01).
    pub rulers: BTreeMap<RulerId, Ruler>,
    /// View on which the answer is made.
    pub final_view: ViewId,
    /// Limits of a program, written to every view manifest (EVS-03).
    pub limits: Limits,
    /// How much of the truth one scoring sees.
    pub scoring: TruthSampling,
    /// The seed program with state anchor: the guard's baseline.
    pub baseline: SeedProgramId,
    /// Seed programs in order of execution; exactly one anchor.
    pub seed_programs: Vec<SeedEntry>,
    /// Directory that holds `<id>/{run.py,METHOD.md,SEED.json}`; absolute.
    pub seeds_dir: PathBuf,
    /// The file that categories, preamble and families are from; absolute.
    pub idea_library: PathBuf,
    /// Categories of families in order; empty = none (DRF-01).
    pub categories: Vec<CategoryId>,
    /// What holds for every family, for prompts; may be empty.
    pub preamble: String,
    /// The idea library in round-robin order of drafts (DRF-08).
    pub families: Vec<BoardFamily>,
    /// The Python of candidates.
    pub environment: EnvironmentChoice,
}

/// What is asked of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Predict one number per test row of a table.
    TabularRegression,
}

impl Task {
    /// The word in view manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TabularRegression => "tabular_regression",
        }
    }
}

/// The raw CSV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// File name below the data directory.
    pub file: String,
    /// Column to predict.
    pub target: String,
    /// Columns given to programs, in order.
    pub features: Vec<String>,
    /// Column of row ids (whole numbers); absent = the row number from 0.
    pub id: Option<String>,
}

/// How rows become training and test rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Which rows.
    pub kind: SplitKind,
    /// Share of training rows, in (0, 1).
    pub train_fraction: f64,
    /// Seed of the permutation; not used by `head`.
    pub seed: u32,
}

/// Which rows are training rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitKind {
    /// The first rows of a seeded permutation.
    Permutation,
    /// The first rows of the file.
    Head,
}

/// Test rows into halves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halves {
    /// Seed of the permutation and of the hash.
    pub seed: u32,
    /// Share of half B's rows that only the guard scores, in (0, 1).
    pub guard_fraction: f64,
}

/// A view of a tabular board: training rows with target, test rows without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TabularView {}

/// One local evaluation target (RUL).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruler {
    /// View whose prediction it scores.
    pub view: ViewId,
    /// What its score is for.
    pub role: RulerRole,
    /// Share of the node score, normalised; 0 unless the role is objective.
    pub weight: f64,
    /// How predictions are compared with truth.
    pub metric: Metric,
}

/// What a ruler's score is for (RUL-07).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RulerRole {
    /// A component of the node score.
    Objective,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Root mean squared error.
    Rmse,
}

impl Metric {
    /// The word in launch specs and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rmse => "rmse",
        }
    }
}

/// Limits of one execution on one view (HLT-01).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory.
    pub memory_gb: f64,
    /// Wall clock.
    pub time_limit_s: u32,
    /// Threads.
    pub threads: u32,
    /// Most that a program may write.
    pub output_max_mb: u32,
}

/// How much of the truth one scoring sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthSampling {
    /// Share of the search rows that scoring seeds 0, 1, 2 draw, in (0, 1].
    pub truth_fraction: f64,
}

/// A seed program (SED-01); `SEED.json` must say the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedEntry {
    /// Directory name.
    pub id: SeedProgramId,
    /// What it may become.
    pub state: SeedState,
    /// Family that it covers; absent for the anchor.
    pub family: Option<FamilyId>,
}

/// The Python of candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EnvironmentChoice {
    /// The standard library of the host's python3.
    Stdlib,
    /// A venv of hashed requirements.
    Venv {
        /// Absolute path of the requirements lock.
        lock: PathBuf,
    },
}

impl Board {
    /// Weights of the objective rulers, summing to 1.
    #[must_use]
    pub fn objective(&self) -> BTreeMap<RulerId, f64> {
        self.rulers
            .iter()
            .filter(|(_, ruler)| ruler.role == RulerRole::Objective)
            .map(|(id, ruler)| (id.clone(), ruler.weight))
            .collect()
    }

    /// Directory of a seed program.
    #[must_use]
    pub fn seed_dir(&self, id: &SeedProgramId) -> PathBuf {
        self.seeds_dir.join(id.as_str())
    }
}

/// Loads and validates a board definition. `seeds_dir` defaults to `../../seeds/<board file name>`
/// beside the definition's directory, as in the source tree, the prefix and a code snapshot.
///
/// # Errors
/// As [`crate::load_config`].
pub fn load_board(path: &Path) -> Result<Board, ConfigError> {
    let layers = crate::load::Layers::new("", path, &[])?;
    let written = layers.read::<written::WrittenBoard>()?;
    check::validate(written, &layers)
}
