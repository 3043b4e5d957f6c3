//! What would be searched for again and again, kept up to date by the fold: the ranking, identity
//! groups, the baseline's node, the order in which nodes came in.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use vec_types::{NodeId, Operator, Score, SeedState, ViewId};

use crate::identity::Groups;
use crate::node::Node;
use crate::resume;

/// Ranking score, node, data epoch of the score.
pub(crate) type Ranked = (Reverse<Score>, NodeId, u32);

/// Derived from the nodes; never decides anything itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Index {
    /// Scored nodes with the epoch of their rank, best ranking score first, the older first among
    /// equals (O-CID-3).
    pub ranked: BTreeSet<Ranked>,
    /// Imports with carried-over work, oldest first (CAR-13).
    pub carried: Vec<NodeId>,
    /// Scored nodes of this run in order of settlement, without seeds and imports (O-PLT-2).
    pub own_scored: Vec<NodeId>,
    /// Settlements so far.
    pub settled: u32,
    /// Newest node of the anchor seed program.
    pub anchor: Option<NodeId>,
    pub groups: Groups,
}

impl Index {
    pub(super) fn created(&mut self, node: &Node) {
        let is_anchor = |state| state == SeedState::Anchor;
        if node.is_own() && node.seed.as_ref().is_some_and(|seed| is_anchor(seed.state)) {
            self.anchor = Some(node.id);
        }
        if resume::carried(node).is_some() {
            self.carried.push(node.id);
        }
    }

    /// A node has come to a score.
    pub(super) fn scored(&mut self, node: &Node, views: &[ViewId]) {
        if node.is_own() && node.operator != Operator::Seed {
            self.own_scored.push(node.id);
        }
        self.groups.add(node, views);
        self.rank(None, node);
    }

    /// A further seed of a scored node is in.
    pub(super) fn measured(&mut self, node: &Node) {
        if node.is_scored() {
            self.groups.add_scores(node);
        }
    }

    /// Its place in the ranking was `before` and is what the node says now.
    pub(super) fn rank(&mut self, before: Option<Ranked>, node: &Node) {
        if let Some(before) = before {
            self.ranked.remove(&before);
        }
        self.ranked.extend(ranked(node));
    }
}

/// The place of a node in the ranking; absent unless it is scored.
pub(super) fn ranked(node: &Node) -> Option<Ranked> {
    let score = node.ranking_score()?;
    Some((Reverse(score), node.id, node.rank_epoch()))
}
