//! The daemons of a run, in the order in which they start. They end in reverse order, after the
//! controller.

use serde::{Deserialize, Serialize};

/// One daemon kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The scripted model.
    Playbook,
    /// The model gateway.
    Egress,
    /// Holds the truth.
    Scorer,
    /// The search.
    Controller,
}

impl Service {
    /// In order of start.
    pub const ALL: [Self; 4] = [Self::Playbook, Self::Egress, Self::Scorer, Self::Controller];

    /// The word in paths, logs and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Playbook => "playbook",
            Self::Egress => "egress",
            Self::Scorer => "scorer",
            Self::Controller => "controller",
        }
    }

    /// Its program below `code/bin`.
    #[must_use]
    pub const fn binary(self) -> &'static str {
        match self {
            Self::Playbook => "vec-playbook",
            Self::Egress => "vec-egress",
            Self::Scorer => "vec-scorer",
            Self::Controller => "vec-controller",
        }
    }

    /// Name of its listener: `s` for gRPC, `http.s` for plain HTTP.
    #[must_use]
    pub const fn socket_name(self) -> &'static str {
        match self {
            Self::Playbook | Self::Egress => "http.s",
            Self::Scorer | Self::Controller => "s",
        }
    }
}
