//! The plain values that the controller fills in. They hold what a role may see and nothing else:
//! no truth, no hold-out statistic, no host path.

use serde_json::Value;
use vec_types::{
    BoardId, CategoryId, FamilyId, NodeId, NodeStatus, Operator, Plan, RulerId, Score, ScoreReport,
    ViewId,
};

/// The board as the roles see it.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardBrief {
    /// The board.
    pub board: BoardId,
    /// One line for people.
    pub title: String,
    /// Task word, e.g. `tabular_regression`.
    pub task: String,
    /// What the idea library says for every family; may be empty.
    pub preamble: String,
    /// Idea library in its own order.
    pub families: Vec<FamilyBrief>,
    /// Objective rulers.
    pub rulers: Vec<RulerBrief>,
    /// Objective views.
    pub views: Vec<ViewBrief>,
}

/// A family of the idea library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyBrief {
    /// Library id.
    pub id: FamilyId,
    /// Its category, where the library has any.
    pub category: Option<CategoryId>,
    /// One line.
    pub title: String,
    /// The library's text, for the Researcher who plans a program of it.
    pub text: String,
    /// Drafts of it so far in this run (RES-04).
    pub drafts: u32,
}

/// An objective ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct RulerBrief {
    /// The ruler.
    pub ruler: RulerId,
    /// View that it scores.
    pub view: ViewId,
    /// Weight in 0..=1.
    pub weight: f64,
    /// Metric name, e.g. `rmse`.
    pub metric: String,
}

/// A view that programs may read.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewBrief {
    /// The view.
    pub view: ViewId,
    /// Its `manifest.json`, which programs can read anyway: columns, files, output, limits.
    pub manifest: Value,
}

/// One line of the experiment table.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSummary {
    /// The node.
    pub node: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Its parent.
    pub parent: Option<NodeId>,
    /// Its family.
    pub family: Option<FamilyId>,
    /// PLAN.name, or the seed program's id.
    pub name: String,
    /// Where it stands.
    pub status: NodeStatus,
    /// Ranking score on half B; never shown inside an Engineer sandbox.
    pub score: Option<Score>,
    /// First line of METHOD.md.
    pub method_first_line: Option<String>,
    /// The Analyst's summary.
    pub analysis: Option<String>,
}

/// A program as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramText {
    /// Paths relative to `solution/` and sizes in bytes.
    pub files: Vec<(String, u64)>,
    /// run.py.
    pub run_py: String,
    /// METHOD.md.
    pub method: String,
}

/// The node that is to be improved or repaired.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentInput {
    /// Its line.
    pub node: NodeSummary,
    /// Its plan; absent for seed programs.
    pub plan: Option<Plan>,
    /// Its program.
    pub program: ProgramText,
    /// Its score with parts.
    pub report: Option<ScoreReport>,
    /// Its own parent's score with parts, for the delta table.
    pub base: Option<(NodeId, ScoreReport)>,
    /// Its ANALYSIS.json as text.
    pub analysis_json: Option<String>,
    /// End of its stderr, for debug.
    pub error_tail: Option<String>,
    /// Wall time of its execution in milliseconds.
    pub wall_ms: Option<i64>,
    /// Largest resident set in KiB.
    pub max_rss_kib: Option<u64>,
    /// Directions already refuted under it, oldest first (REF-02).
    pub refuted: Vec<String>,
}
