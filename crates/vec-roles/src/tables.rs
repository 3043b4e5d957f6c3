//! Generated tables: experiment table of the tree, delta table of a node, refuted directions.
//! Deterministic: rows in order of node number, numbers with 4 decimals.

use std::fmt::Write as _;

use vec_search::MechanismActive;
use vec_types::{FamilyId, NodeId, PartRef, RulerId, Score, ScoreReport};

use crate::NodeSummary;
use crate::section::cell;

/// Rows of an experiment table; the newest are kept.
const ROWS_MAX: usize = 200;
/// Refuted directions shown; the newest are kept.
const REFUTED_MAX: usize = 40;

/// May the reader see scores of half B? An Engineer may not (architecture §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// Roles outside the sandbox.
    Shown,
    /// Texts that go into an Engineer sandbox.
    Hidden,
}

/// Every node of the tree as a Markdown table, oldest first.
#[must_use]
pub fn experiment_table(nodes: &[NodeSummary], scores: Scores) -> String {
    let mut rows: Vec<&NodeSummary> = nodes.iter().collect();
    rows.sort_by_key(|row| row.node);
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    let mut text = String::new();
    if left_out > 0 {
        let _ = writeln!(text, "[cut: the oldest {left_out} nodes are not shown]\n");
    }
    let (head, rule) = match scores {
        Scores::Shown => (" score |", "---:|"),
        Scores::Hidden => ("", ""),
    };
    let _ = writeln!(
        text,
        "| node | parent | operator | family | status |{head} name | method |"
    );
    let _ = writeln!(text, "|---:|---:|---|---|---|{rule}---|---|");
    for row in &rows[left_out..] {
        let score = match scores {
            Scores::Shown => format!(" {} |", optional(row.score)),
            Scores::Hidden => String::new(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |{score} {} | {} |",
            row.node,
            optional(row.parent),
            row.operator.as_str(),
            row.family.as_ref().map_or("–", FamilyId::as_str),
            row.status.as_str(),
            cell(&row.name, 80),
            cell(row.method_first_line.as_deref().unwrap_or("–"), 120),
        );
    }
    text
}

fn optional<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// What a delta table compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaInput<'a> {
    /// The node.
    pub node: NodeId,
    /// Its report, if it was scored.
    pub report: Option<&'a ScoreReport>,
    /// The node that it is compared with.
    pub base: Option<NodeId>,
    /// Its report.
    pub base_report: Option<&'a ScoreReport>,
    /// Verdict of the mechanism-off control (ABL-02).
    pub mechanism_active: Option<MechanismActive>,
}

/// Total, components and parts of a node against its base, with the control's verdict.
#[must_use]
pub fn delta_table(input: &DeltaInput<'_>) -> String {
    let mut text = String::new();
    let base_name = input
        .base
        .map_or_else(|| "no base".to_owned(), |base| format!("node {base}"));
    let _ = writeln!(
        text,
        "| what | {base_name} | node {} | change |",
        input.node
    );
    let _ = writeln!(text, "|---|---:|---:|---:|");
    let total = |report: Option<&ScoreReport>| report.map(|report| report.total.get());
    row(
        &mut text,
        "total",
        total(input.base_report),
        total(input.report),
    );
    for ruler in rulers(input) {
        let component = |report: Option<&ScoreReport>| {
            report.and_then(|report| report.components.get(&ruler).copied().map(Score::get))
        };
        row(
            &mut text,
            ruler.as_str(),
            component(input.base_report),
            component(input.report),
        );
    }
    for (ruler, metric) in metrics(input) {
        let part = |report: Option<&ScoreReport>, value: fn(PartRef<'_>) -> f64| {
            let mut parts = report?.parts.iter();
            parts
                .find(|part| *part.ruler == ruler && part.metric == metric)
                .map(value)
        };
        for (what, value) in [
            ("raw", (|part| part.raw) as fn(PartRef<'_>) -> f64),
            ("skill", |part| part.skill),
            ("points", |part| part.points),
        ] {
            let label = format!("{ruler}/{metric} {what}");
            row(
                &mut text,
                &label,
                part(input.base_report, value),
                part(input.report, value),
            );
        }
    }
    let verdict = match input.mechanism_active {
        Some(MechanismActive::Yes) => "yes",
        Some(MechanismActive::No) => "no",
        Some(MechanismActive::Unclear) => "unclear",
        None => "not_run",
    };
    let _ = writeln!(text, "\nmechanism_active: {verdict}");
    text
}

fn row(text: &mut String, label: &str, base: Option<f64>, own: Option<f64>) {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.4}"));
    let change = base.zip(own).map_or_else(
        || "–".to_owned(),
        |(base, own)| format!("{:+.4}", own - base),
    );
    let _ = writeln!(
        text,
        "| {label} | {} | {} | {change} |",
        number(base),
        number(own)
    );
}

fn rulers(input: &DeltaInput<'_>) -> Vec<RulerId> {
    let reports = [input.report, input.base_report];
    let mut rulers: Vec<RulerId> = reports
        .into_iter()
        .flatten()
        .flat_map(|report| report.components.keys().cloned())
        .collect();
    rulers.sort();
    rulers.dedup();
    rulers
}

fn metrics(input: &DeltaInput<'_>) -> Vec<(RulerId, String)> {
    let reports = [input.report, input.base_report];
    let mut metrics: Vec<(RulerId, String)> = reports
        .into_iter()
        .flatten()
        .flat_map(|report| report.parts.iter())
        .map(|part| (part.ruler.clone(), part.metric.to_owned()))
        .collect();
    metrics.sort();
    metrics.dedup();
    metrics
}

/// Directions already refuted under a parent (REF-02), one line each.
#[must_use]
pub fn refuted_list(refuted: &[String]) -> String {
    if refuted.is_empty() {
        return "None so far.\n".to_owned();
    }
    let left_out = refuted.len().saturating_sub(REFUTED_MAX);
    let mut text = String::new();
    if left_out > 0 {
        let _ = writeln!(text, "[cut: the oldest {left_out} are not shown]");
    }
    for direction in &refuted[left_out..] {
        let _ = writeln!(text, "- {}", cell(direction, 300));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use vec_types::{NodeStatus, Operator, Part};

    pub(crate) fn report(total: f64, rmse: f64) -> ScoreReport {
        let ruler: RulerId = "main".parse().expect("id");
        ScoreReport {
            total: Score::new(total).expect("finite"),
            components: [(ruler.clone(), Score::new(total).expect("finite"))].into(),
            parts: vec![Part {
                ruler,
                metric: "rmse".into(),
                raw: rmse,
                skill: total / 100.0,
                points: total,
            }]
            .into(),
        }
    }

    fn node(node: u32, status: NodeStatus, score: Option<f64>) -> NodeSummary {
        NodeSummary {
            node: NodeId(node),
            operator: Operator::Improve,
            parent: node.checked_sub(1).map(NodeId),
            family: (node > 0).then(|| "linear".parse().expect("id")),
            name: format!("idea | {node}"),
            status,
            score: score.map(|s| Score::new(s).expect("finite")),
            method_first_line: (node > 1).then(|| "ridge\twith squares".into()),
            analysis: None,
        }
    }

    #[test]
    fn tables() {
        let nodes = [
            node(2, NodeStatus::Crash, None),
            node(0, NodeStatus::Scored, Some(50.0)),
            node(1, NodeStatus::Scored, Some(57.123_456)),
        ];
        insta::assert_snapshot!("experiments", experiment_table(&nodes, Scores::Shown));
        insta::assert_snapshot!(
            "experiments_hidden",
            experiment_table(&nodes, Scores::Hidden)
        );
        let (own, base) = (report(57.5, 54.25), report(50.0, 77.0));
        let both = DeltaInput {
            node: NodeId(2),
            report: Some(&own),
            base: Some(NodeId(0)),
            base_report: Some(&base),
            mechanism_active: None,
        };
        insta::assert_snapshot!("delta", delta_table(&both));
        let failed = DeltaInput {
            report: None,
            ..both
        };
        insta::assert_snapshot!("delta_failed", delta_table(&failed));
    }

    #[test]
    fn long_lists_keep_their_newest_and_say_so() {
        let nodes: Vec<NodeSummary> = (0..ROWS_MAX as u32 + 3)
            .map(|n| node(n, NodeStatus::Scored, None))
            .collect();
        let table = experiment_table(&nodes, Scores::Hidden);
        assert!(table.starts_with("[cut: the oldest 3 nodes are not shown]"));
        assert!(!table.contains("\n| 2 |") && table.contains("\n| 3 | 2 |"));
        assert!(!table.contains("| score |"), "hidden means hidden");

        assert_eq!(refuted_list(&[]), "None so far.\n");
        let refuted: Vec<String> = (0..REFUTED_MAX + 2)
            .map(|n| format!("idea {n}\nx"))
            .collect();
        let list = refuted_list(&refuted);
        assert!(list.starts_with("[cut: the oldest 2 are not shown]\n- idea 2 x\n"));
    }
}
