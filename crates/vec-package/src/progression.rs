//! `scores_progression.csv` (PKG-02): every settled node in order, its score, and the best so far.

use std::collections::BTreeMap;
use std::path::Path;

use vec_types::NodeId;

use crate::{Facts, PackageError};

const HEADER: [&str; 9] = [
    "node",
    "operator",
    "parent",
    "family",
    "status",
    "settled_at",
    "score_seed0",
    "mean",
    "best_so_far",
];

pub(crate) fn write(facts: &Facts, target: &Path) -> Result<(), PackageError> {
    let failed = |source| PackageError::Csv {
        path: target.to_owned(),
        source,
    };
    let scores: BTreeMap<NodeId, f64> = facts
        .scores
        .iter()
        .filter(|row| row.exec == "seed0")
        .filter_map(|row| Some((row.node, row.total?)))
        .collect();
    let mut settled: Vec<_> = facts
        .nodes
        .iter()
        .filter_map(|row| Some((row.settled_at?, row)))
        .collect();
    settled.sort_by_key(|(at, row)| (*at, row.node));
    let mut csv = csv::Writer::from_path(target).map_err(failed)?;
    csv.write_record(HEADER).map_err(failed)?;
    let mut best: Option<f64> = None;
    for (at, row) in settled {
        let score = scores.get(&row.node).copied();
        if row.status == "scored" {
            best = match (best, score) {
                (Some(best), Some(score)) => Some(best.max(score)),
                (best, score) => best.or(score),
            };
        }
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        csv.write_record([
            row.node.to_string(),
            row.operator.clone(),
            row.parent.map_or_else(String::new, |p| p.to_string()),
            row.family.clone().unwrap_or_default(),
            row.status.clone(),
            at.to_string(),
            number(score),
            number(row.mean),
            number(best),
        ])
        .map_err(failed)?;
    }
    csv.flush().map_err(PackageError::io("write", target))
}
