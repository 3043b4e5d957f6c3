//! The life of a run.

use serde::{Deserialize, Serialize};

/// Phases in order (requirements c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the first event.
    Launching,
    /// Seed programs are executed and scored.
    Seeding,
    /// Nodes are created.
    Search,
    /// No new nodes; work in flight ends.
    Settling,
    /// The answer is chosen behind the guard.
    Final,
    /// Nothing more happens.
    Stopped,
}

/// Why a run stopped (STP-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Nodes or wall clock used up.
    Budget,
    /// Reserved (PLT-05).
    Plateau,
    /// Exception, restarts used up, refused launch or resume, full disk.
    Infra,
    /// No selectable parent, nothing running, no draft possible (O-STP-2).
    AgentEarlyExit,
    /// SIGTERM, SIGINT or `vecctl stop`.
    Operator,
}

impl StopReason {
    /// The word used in files and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Plateau => "plateau",
            Self::Infra => "infra",
            Self::AgentEarlyExit => "agent_early_exit",
            Self::Operator => "operator",
        }
    }
}
