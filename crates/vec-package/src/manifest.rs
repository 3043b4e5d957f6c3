//! MANIFEST.json (PKG-03): what is in the package, and the chosen node's line of descent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vec_store::{NodeRow, RunLayout, hash_file};
use vec_types::{Digest, NodeId, RelPath, RunId};
use vec_verify::VerifyReport;

use crate::content::{Content, node_of};
use crate::{Facts, PackageError, meta_node};

/// Version of MANIFEST.json.
pub const MANIFEST_SCHEMA: u32 = 1;

/// A file of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagedFile {
    /// Its digest.
    pub sha256: Digest,
    /// Its bytes.
    pub size: u64,
}

/// A run on the line of descent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineageSegment {
    /// The run.
    pub run: RunId,
    /// Its nodes on the line, oldest first.
    pub nodes: Vec<NodeId>,
    /// sha256 of its lock file.
    pub lock_sha256: Digest,
    /// Head of its ledger.
    pub ledger_head: Digest,
}

/// MANIFEST.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub run: RunId,
    /// Hash of the ledger's last line.
    pub ledger_head: Digest,
    /// Hash of the last event.
    pub event_head: Digest,
    /// Why the run stopped.
    pub stop_reason: Option<String>,
    /// The run's answer; absent = final selection did not finish.
    pub chosen_node: Option<NodeId>,
    /// Is the answer the baseline.
    pub chosen_is_baseline: Option<bool>,
    /// Every file of the package but this one.
    pub files: BTreeMap<RelPath, PackagedFile>,
    /// The chosen node's line of descent by run, oldest first.
    pub lineage_segments: Vec<LineageSegment>,
    /// Entries of trajectory.zip by node: all nodes of the run.
    pub run_trajectories: BTreeMap<NodeId, Vec<RelPath>>,
    /// The same, of the chosen node and its ancestors.
    pub lineage_trajectories: BTreeMap<NodeId, Vec<RelPath>>,
}

impl Manifest {
    pub(crate) fn of(
        layout: &RunLayout,
        content: &Content,
        facts: &Facts,
        verified: &VerifyReport,
        files: BTreeMap<RelPath, PackagedFile>,
    ) -> Result<Self, PackageError> {
        let chosen_node = meta_node(facts, "winner");
        let lineage = match chosen_node {
            Some(node) => lineage(&facts.nodes, node)?,
            None => Vec::new(),
        };
        let mut run_trajectories: BTreeMap<NodeId, Vec<RelPath>> = BTreeMap::new();
        for path in &content.trajectory {
            if let Some(node) = node_of(path) {
                run_trajectories.entry(node).or_default().push(path.clone());
            }
        }
        let mut lineage_trajectories = run_trajectories.clone();
        lineage_trajectories.retain(|node, _| lineage.contains(node));
        let lock = layout.config_lock();
        let (_, lock_sha256) = hash_file(&lock).map_err(|source| PackageError::Store {
            path: lock.clone(),
            source,
        })?;
        let segment = LineageSegment {
            run: layout.run().clone(),
            nodes: lineage,
            lock_sha256,
            ledger_head: verified.ledger_head,
        };
        Ok(Self {
            schema: MANIFEST_SCHEMA,
            run: layout.run().clone(),
            ledger_head: verified.ledger_head,
            event_head: verified.event_head,
            stop_reason: facts.meta.get("stop_reason").cloned(),
            chosen_node,
            chosen_is_baseline: facts
                .meta
                .get("winner_is_baseline")
                .and_then(|text| text.parse().ok()),
            files,
            lineage_segments: if segment.nodes.is_empty() {
                Vec::new()
            } else {
                vec![segment]
            },
            run_trajectories,
            lineage_trajectories,
        })
    }
}

/// A node and its ancestors, oldest first.
fn lineage(nodes: &[NodeRow], node: NodeId) -> Result<Vec<NodeId>, PackageError> {
    let parents: BTreeMap<NodeId, Option<NodeId>> =
        nodes.iter().map(|row| (row.node, row.parent)).collect();
    let mut line = Vec::new();
    let mut next = Some(node);
    while let Some(here) = next {
        // A parent is always older, so a line longer than the table goes in a circle.
        let Some(parent) = parents.get(&here).filter(|_| line.len() < nodes.len()) else {
            return Err(PackageError::Lineage(node));
        };
        line.push(here);
        next = *parent;
    }
    line.reverse();
    Ok(line)
}
