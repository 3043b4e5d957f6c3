//! The words in which a decision says why: standings of parents, reasons, ways to a family.

use serde::{Deserialize, Serialize};
use vec_types::NodeId;

/// Standings that one selection stores. A larger pool is cut to those with the largest U, so that
/// the archive of a run grows with its nodes and not with their square; the fold gives the rest.
pub const STANDINGS_MAX: usize = 1024;

/// Why this parent (SEL-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectReason {
    /// The oldest draft that is still owed its improve (SEL-10).
    ReserveImprove,
    /// Largest U.
    ArgmaxU,
    /// Largest U among all, since every eligible parent was busy.
    ArgmaxUBusy,
    /// Largest U with failure-streak suspensions lifted, since nothing else was left.
    ArgmaxUSuspended,
    /// The failed node to repair (O-OPR-2).
    DebugTarget,
}

/// How a draft came to its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftMode {
    /// Fewest drafts, in library order (DRF-08).
    RoundRobin,
    /// The first family in coverage order that is not covered (DRF-03).
    Coverage,
    /// Fewest drafts, in coverage order (DRF-05).
    Explore,
    /// Largest re-measured gain (DRF-05).
    Exploit,
    /// A family without a scored draft, or with the fewest, during a plateau (DRF-10).
    Plateau,
}

/// An eligible parent as selection saw it; stored as `[node, rank, visits, u]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(NodeId, f64, u64, f64)", into = "(NodeId, f64, u64, f64)")]
pub struct Standing {
    /// The node.
    pub node: NodeId,
    /// FUTS rank score in 0..=1, among the nodes of its data epoch (SEL-13).
    pub rank: f64,
    /// Visits incl. virtual ones.
    pub visits: u64,
    /// rank + exploration term.
    pub u: f64,
}

impl From<(NodeId, f64, u64, f64)> for Standing {
    fn from((node, rank, visits, u): (NodeId, f64, u64, f64)) -> Self {
        Self {
            node,
            rank,
            visits,
            u,
        }
    }
}

impl From<Standing> for (NodeId, f64, u64, f64) {
    fn from(standing: Standing) -> Self {
        (standing.node, standing.rank, standing.visits, standing.u)
    }
}

/// Why a node is not among the parents that selection chooses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutOfPool {
    /// Its status does not allow it: only scored nodes are parents (SEL-08).
    NotScored,
    /// Its review failed (REV-04).
    ReviewFailed,
    /// Excluded by the view-blindness check (SEL-08).
    ViewDependent,
    /// A reference-only seed, or an exploration seed at its child cap (SEL-09).
    Blocked,
    /// Its last children failed (SEL-06).
    Suspended,
    /// A child of it is in work (SEL-05).
    Busy,
}

impl OutOfPool {
    /// One word for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotScored => "not scored",
            Self::ReviewFailed => "review failed",
            Self::ViewDependent => "view dependent",
            Self::Blocked => "blocked",
            Self::Suspended => "suspended",
            Self::Busy => "busy",
        }
    }
}
