//! What a finished run says about its isolation and its checks, for the end of the demo: read from
//! the lock and from the evidence files of nodes, so that it shows what is written, not what was meant.
//! The words are those of `vecctl show`, and must agree with the evidence.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::shell::say;

/// Says with which isolation the run's programs were run.
pub(crate) fn say_isolation(run_dir: &Path) -> Result<()> {
    let lock = read(&run_dir.join("config.lock.json"))?.context("the run has no lock")?;
    line("supervisor", &words(&lock["supervisor"]));
    match &lock["sandbox"]["isolation"] {
        Value::Object(parts) => {
            for (name, part) in parts {
                line(name, &words(part));
            }
        }
        other => line("sandbox", &words(other)),
    }
    line("truth", &words(&lock["truth_isolation"]));
    Ok(())
}

fn line(name: &str, text: &str) {
    say(&format!("{name:<22} {text}"));
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "nothing".to_owned(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(parts) => parts
            .iter()
            .map(|(name, part)| format!("{name} {}", words(part)))
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}

/// Prints one line per node: `nodes` is what `vecctl show --json` says.
pub(crate) fn say_nodes(nodes: &Value, run_dir: &Path) -> Result<()> {
    let mut rows = vec![
        [
            "node",
            "status",
            "score",
            "weights",
            "mechanism",
            "view check",
        ]
        .map(str::to_owned),
    ];
    for node in nodes["nodes"].as_array().into_iter().flatten() {
        let id = words(&node["node"]);
        let dir = run_dir.join("nodes").join(&id);
        let ablation = evidence(&dir.join("ABLATION.json"), "mechanism_active")?;
        let view_check = evidence(&dir.join("VIEWCHECK.json"), "verdict")?;
        rows.push([
            format!("#{id}"),
            words(&node["status"]),
            node["ranking_score"]
                .as_f64()
                .map_or_else(|| "-".to_owned(), |s| format!("{s:.4}")),
            weights(&dir)?,
            outcome(node, "mechanism_active", &ablation)?,
            outcome(node, "view_check", &view_check)?,
        ]);
    }
    let width = |k: usize| {
        rows.iter()
            .map(|row| row[k].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        say(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    Ok(())
}

/// The word that `vecctl` shows, which must be the one that the evidence file says.
fn outcome(node: &Value, key: &str, written: &str) -> Result<String> {
    let shown = words(&node[key]);
    let id = words(&node["node"]);
    ensure!(
        shown == written,
        "node {id}: vecctl shows {key} {shown}, its evidence says {written}"
    );
    Ok(shown)
}

fn evidence(path: &Path, key: &str) -> Result<String> {
    Ok(read(path)?.map_or_else(|| "-".to_owned(), |document| words(&document[key])))
}

/// `train, replay x2`: how often each mode was used for weights per view.
fn weights(dir: &Path) -> Result<String> {
    let mut modes: BTreeMap<String, u32> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let report = read(&entry?.path().join("report.json"))?.unwrap_or_default();
        let views = report["views"]
            .as_object()
            .into_iter()
            .flat_map(|views| views.values());
        for mode in views.map(|view| words(&view["weights"])) {
            *modes.entry(mode).or_default() += 1;
        }
    }
    let order = ["train", "replay", "fresh"];
    let said = order.iter().filter_map(|mode| match modes.get(*mode) {
        Some(1) => Some((*mode).to_owned()),
        Some(count) => Some(format!("{mode} x{count}")),
        None => None,
    });
    let said: Vec<String> = said.collect();
    Ok(if said.is_empty() {
        "-".to_owned()
    } else {
        said.join(", ")
    })
}

fn read(path: &Path) -> Result<Option<Value>> {
    match std::fs::read(path) {
        Ok(bytes) => {
            let value = serde_json::from_slice(&bytes);
            Ok(Some(
                value.with_context(|| format!("read {}", path.display()))?,
            ))
        }
        Err(_) => Ok(None),
    }
}
