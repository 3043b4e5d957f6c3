//! Ranks and visits of the tree: every finished node that is not shelved (SEL-02). Equal scores,
//! failures included, get the mean of their ranks (SEL-07); ranks are taken inside each data epoch,
//! while node count and visits stay global (SEL-13, O-SEL-4).

use std::collections::BTreeMap;

use vec_types::{NodeId, Score};

use crate::Standing;
use crate::failure::Rank;
use crate::futs::{mean_rank, puct};
use crate::node::Node;
use crate::planted::{self, Bug};
use crate::state::Run;

pub(crate) struct Ranks {
    ranks: Vec<f64>,
    nodes: usize,
    total_visits: u64,
    c_puct: f64,
}

/// One data epoch: failures, and scored nodes by ascending score.
#[derive(Default)]
struct Epoch {
    failed: Vec<NodeId>,
    scored: Vec<(Score, NodeId)>,
}

impl Ranks {
    pub(crate) fn of(run: &Run) -> Self {
        let mut epochs: BTreeMap<u32, Epoch> = BTreeMap::new();
        let (mut nodes, mut total_visits) = (0, 0);
        for node in &run.nodes {
            let rank = node.consequence().rank;
            if rank == Rank::Absent {
                continue;
            }
            nodes += 1;
            total_visits += node.total_visits();
            if rank == Rank::Bottom {
                epochs.entry(node.epoch).or_default().failed.push(node.id);
            }
        }
        for (score, id, epoch) in run.index.ranked.iter().rev() {
            let epoch = epochs.entry(*epoch).or_default();
            epoch.scored.push((score.0, *id));
        }
        let mut ranks = Self {
            ranks: vec![0.0; run.nodes.len()],
            nodes,
            total_visits,
            c_puct: run.policy.select.c_puct,
        };
        for epoch in epochs.values() {
            ranks.fill(epoch);
        }
        ranks
    }

    fn fill(&mut self, epoch: &Epoch) {
        let n = epoch.failed.len() + epoch.scored.len();
        // −∞ exists only here: a failed node ranks below every score.
        for id in &epoch.failed {
            self.set(*id, mean_rank(0, epoch.failed.len() - 1, n));
        }
        let mut first = epoch.failed.len();
        for equal in epoch.scored.chunk_by(|a, b| a.0 == b.0) {
            let last = first + equal.len() - 1;
            for (age, (_, id)) in equal.iter().rev().enumerate() {
                let rank = if planted::is(Bug::TieByAge) {
                    mean_rank(first + age, first + age, n)
                } else {
                    mean_rank(first, last, n)
                };
                self.set(*id, rank);
            }
            first = last + 1;
        }
    }

    fn set(&mut self, node: NodeId, rank: f64) {
        let slot = usize::try_from(node.0).ok();
        if let Some(slot) = slot.and_then(|index| self.ranks.get_mut(index)) {
            *slot = rank;
        }
    }

    /// Rank of a node of the tree.
    pub(crate) fn rank(&self, node: NodeId) -> f64 {
        let index = usize::try_from(node.0).ok();
        index
            .and_then(|index| self.ranks.get(index).copied())
            .unwrap_or(0.0)
    }

    /// A node with the rank of `ranked`, which for a failed node is an ancestor.
    pub(crate) fn standing(&self, node: &Node, ranked: NodeId) -> Standing {
        let (rank, visits) = (self.rank(ranked), node.total_visits());
        Standing {
            node: node.id,
            rank,
            visits,
            u: puct(rank, visits, self.total_visits, self.nodes, self.c_puct),
        }
    }
}
