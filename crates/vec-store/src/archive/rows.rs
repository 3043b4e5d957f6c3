//! Rows of the derived tables.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use vec_types::{NodeId, UnixMs};

/// A row of `nodes`.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRow {
    /// The node.
    pub node: NodeId,
    /// How it came to be.
    pub operator: String,
    /// Its parent.
    pub parent: Option<NodeId>,
    /// Its family.
    pub family: Option<String>,
    /// Its seed program.
    pub seed_program: Option<String>,
    /// Status word.
    pub status: String,
    /// Scored without progress over its parent.
    pub no_progress: bool,
    /// Same program or prediction as its parent.
    pub same_as_parent: bool,
    /// Cut by the budget.
    pub budget_cut: bool,
    /// For people.
    pub detail: String,
    /// Commit in programs.git.
    pub commit: Option<String>,
    /// Its tree.
    pub tree: Option<String>,
    /// Its tree without METHOD.md.
    pub runtime_key: Option<String>,
    /// The plan.
    pub plan_json: Option<String>,
    /// Reviewer's verdict.
    pub review: Option<String>,
    /// `none`, `running`, `done` or `failed`.
    pub promotion: String,
    /// Mean over the promotion's seeds.
    pub mean: Option<f64>,
    /// Text of the refuted direction.
    pub refuted: Option<String>,
    /// When it was created.
    pub created_at: UnixMs,
    /// When it was settled.
    pub settled_at: Option<UnixMs>,
}

/// A row of `executions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// The node.
    pub node: NodeId,
    /// Execution name.
    pub exec: String,
    /// `done` or a fault; absent while running.
    pub result: Option<String>,
    /// For people.
    pub detail: String,
    /// Wall time per view.
    pub wall_json: Option<String>,
    /// Largest resident set in KiB.
    pub max_rss_kib: Option<i64>,
    /// The harness's own spans in milliseconds.
    pub harness_ms: Option<i64>,
    /// Prediction digest per view.
    pub digests_json: Option<String>,
    /// When it was started.
    pub started_at: Option<UnixMs>,
    /// When it ended.
    pub ended_at: Option<UnixMs>,
}

/// A row of `scores`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreRow {
    /// The node.
    pub node: NodeId,
    /// Execution that was scored.
    pub exec: String,
    /// Node score; absent = invalid format.
    pub total: Option<f64>,
    /// Score per objective component.
    pub components_json: Option<String>,
    /// Every ranked metric.
    pub parts_json: Option<String>,
    /// Why there is no score.
    pub detail: String,
    /// When.
    pub at: UnixMs,
}

pub(super) fn node_row(row: &SqliteRow) -> Result<NodeRow, sqlx::Error> {
    Ok(NodeRow {
        node: NodeId(row.try_get("node")?),
        operator: row.try_get("operator")?,
        parent: row.try_get::<Option<u32>, _>("parent")?.map(NodeId),
        family: row.try_get("family")?,
        seed_program: row.try_get("seed_program")?,
        status: row.try_get("status")?,
        no_progress: row.try_get("no_progress")?,
        same_as_parent: row.try_get("same_as_parent")?,
        budget_cut: row.try_get("budget_cut")?,
        detail: row.try_get("detail")?,
        commit: row.try_get("commit_id")?,
        tree: row.try_get("tree")?,
        runtime_key: row.try_get("runtime_key")?,
        plan_json: row.try_get("plan_json")?,
        review: row.try_get("review")?,
        promotion: row.try_get("promotion")?,
        mean: row.try_get("mean")?,
        refuted: row.try_get("refuted")?,
        created_at: UnixMs(row.try_get("created_at")?),
        settled_at: row.try_get::<Option<i64>, _>("settled_at")?.map(UnixMs),
    })
}

pub(super) fn execution_row(row: &SqliteRow) -> Result<ExecutionRow, sqlx::Error> {
    Ok(ExecutionRow {
        node: NodeId(row.try_get("node")?),
        exec: row.try_get("exec")?,
        result: row.try_get("result")?,
        detail: row.try_get("detail")?,
        wall_json: row.try_get("wall_json")?,
        max_rss_kib: row.try_get("max_rss_kib")?,
        harness_ms: row.try_get("harness_ms")?,
        digests_json: row.try_get("digests_json")?,
        started_at: row.try_get::<Option<i64>, _>("started_at")?.map(UnixMs),
        ended_at: row.try_get::<Option<i64>, _>("ended_at")?.map(UnixMs),
    })
}

pub(super) fn score_row(row: &SqliteRow) -> Result<ScoreRow, sqlx::Error> {
    Ok(ScoreRow {
        node: NodeId(row.try_get("node")?),
        exec: row.try_get("exec")?,
        total: row.try_get("total")?,
        components_json: row.try_get("components_json")?,
        parts_json: row.try_get("parts_json")?,
        detail: row.try_get("detail")?,
        at: UnixMs(row.try_get("at")?),
    })
}
