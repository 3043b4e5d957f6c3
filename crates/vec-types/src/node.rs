//! What a node is, before anything has happened to it.

use serde::{Deserialize, Serialize};

/// How a node came to be (OPR-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// A seed program, executed at run start.
    Seed,
    /// A minimal version of a method family, without parent.
    Draft,
    /// Run-time repair of a failed node.
    Debug,
    /// Structural repair of a scored node.
    Improve,
    /// Parameter tuning of a proven mechanism; off (TUN-01).
    Tune,
    /// Carried-over work of an earlier run, taken up again (CAR-17).
    Resume,
}

impl Operator {
    /// The word used in SQL, logs and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Draft => "draft",
            Self::Debug => "debug",
            Self::Improve => "improve",
            Self::Tune => "tune",
            Self::Resume => "resume",
        }
    }
}

/// What a seed program may become (SED-03, O-SED-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedState {
    /// The guard's baseline: always a possible parent, never promoted, never a final candidate.
    Anchor,
    /// A possible parent until its child cap, promotable.
    Exploration,
    /// Scored for reference; never a parent, never promoted.
    ReferenceOnly,
}
