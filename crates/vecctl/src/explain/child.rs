//! A child's parent: what selection chose from, and who was left out.

use std::collections::BTreeMap;

use serde::Serialize;
use vec_search::{Event, RunState, SelectReason, Standing, failure};
use vec_types::{NodeId, NodeStatus, Score};

/// A choice of a parent (SEL-14).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Child {
    pub(crate) parent: NodeId,
    /// How the parent stood; for a repair this is its failure.
    pub(crate) parent_status: NodeStatus,
    pub(crate) reason: SelectReason,
    pub(crate) plateau: bool,
    /// Eligible parents, of which the largest are in `standings`.
    pub(crate) pool: u32,
    /// Largest U first; the older first among equals, for a repair the newer (O-SEL-5, O-OPR-2).
    pub(crate) standings: Vec<Row>,
    /// Does more than one data epoch stand in the pool?
    pub(crate) has_epochs: bool,
    pub(crate) left_out: Vec<LeftOut>,
}

/// One eligible parent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) node: NodeId,
    pub(crate) status: NodeStatus,
    pub(crate) score: Option<Score>,
    pub(crate) epoch: u32,
    pub(crate) rank: f64,
    pub(crate) visits: u64,
    pub(crate) exploration: f64,
    pub(crate) u: f64,
    pub(crate) winner: bool,
}

/// Nodes that could not be chosen, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) why: String,
    pub(crate) nodes: Vec<NodeId>,
}

impl Child {
    /// `before` is the state that selection saw.
    pub(crate) fn of(event: &Event, before: &RunState) -> Option<Self> {
        let Event::Select {
            parent,
            reason,
            plateau,
            pool,
            standings,
            ..
        } = event
        else {
            return None;
        };
        let is_repair = *reason == SelectReason::DebugTarget;
        let rows = standings
            .iter()
            .map(|standing| row(standing, *parent, before));
        let mut rows: Vec<Row> = rows.collect::<Option<_>>()?;
        rows.sort_by(|a, b| {
            let by_age = a.node.cmp(&b.node);
            let by_u = b.u.total_cmp(&a.u);
            by_u.then(if is_repair { by_age.reverse() } else { by_age })
        });
        let left_out = if is_repair {
            beyond_repair(&rows, before)
        } else {
            out_of_pool(before)
        };
        Some(Self {
            parent: *parent,
            parent_status: before.node(*parent)?.status,
            reason: *reason,
            plateau: *plateau,
            pool: *pool,
            has_epochs: rows.windows(2).any(|pair| pair[0].epoch != pair[1].epoch),
            standings: rows,
            left_out,
        })
    }
}

fn row(standing: &Standing, parent: NodeId, before: &RunState) -> Option<Row> {
    let view = before.node(standing.node)?;
    Some(Row {
        node: standing.node,
        status: view.status,
        score: view.ranking_score,
        epoch: view.epoch,
        rank: standing.rank,
        visits: standing.visits,
        exploration: standing.u - standing.rank,
        u: standing.u,
        winner: standing.node == parent,
    })
}

/// By reason, in the order of the rules.
fn out_of_pool(before: &RunState) -> Vec<LeftOut> {
    let mut groups: BTreeMap<_, Vec<NodeId>> = BTreeMap::new();
    for (node, why) in before.out_of_pool() {
        groups.entry(why).or_default().push(node);
    }
    let groups = groups.into_iter().map(|(why, nodes)| LeftOut {
        why: why.as_str().to_owned(),
        nodes,
    });
    groups.collect()
}

/// Failed nodes that a debug could repair by their failure, but not now.
fn beyond_repair(rows: &[Row], before: &RunState) -> Vec<LeftOut> {
    let is_in = |id: NodeId| rows.iter().any(|row| row.node == id);
    let failed = before
        .nodes()
        .filter(|node| failure::of(node.status).debug_target);
    let nodes: Vec<NodeId> = failed
        .map(|node| node.id)
        .filter(|id| !is_in(*id))
        .collect();
    let why = "failed, but in repair, repaired, or repaired too often".to_owned();
    Some(LeftOut { why, nodes })
        .filter(|group| !group.nodes.is_empty())
        .into_iter()
        .collect()
}
