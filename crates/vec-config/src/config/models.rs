//! Models: who uses which, and where each is reached (MOD).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Single-turn roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes PLAN.json.
    Researcher,
    /// Judges plans beyond the pattern pass; optional.
    Compliance,
    /// Writes ANALYSIS.json.
    Analyst,
    /// Reviews high-ranking nodes.
    Reviewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [
        Self::Researcher,
        Self::Compliance,
        Self::Analyst,
        Self::Reviewer,
    ];

    /// The word used in configs, logs and paths.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Researcher => "researcher",
            Self::Compliance => "compliance",
            Self::Analyst => "analyst",
            Self::Reviewer => "reviewer",
        }
    }

    /// A run cannot do without a model for this role.
    #[must_use]
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::Compliance)
    }
}

/// `models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// Chain of model ids per role, first choice first, never empty (MOD-04).
    pub roles: BTreeMap<Role, Vec<String>>,
    /// The Engineer.
    pub engineer: EngineerModel,
    /// Where models are reached, by the endpoint's name.
    pub endpoints: BTreeMap<String, Endpoint>,
}

impl Models {
    /// Every model id in use with the endpoint that serves it.
    #[must_use]
    pub fn used(&self) -> BTreeMap<&str, &Endpoint> {
        let ids: BTreeSet<&str> = self.roles.values().flatten().map(String::as_str).collect();
        ids.into_iter()
            .filter_map(|id| Some((id, self.endpoint_of(id)?)))
            .collect()
    }

    /// The endpoint that serves a model id.
    #[must_use]
    pub fn endpoint_of(&self, model: &str) -> Option<&Endpoint> {
        self.endpoints
            .values()
            .find(|endpoint| endpoint.models.iter().any(|id| id == model))
    }

    /// The playbook that scripts the Engineer; absent for other frameworks.
    #[must_use]
    pub fn engineer_playbook(&self) -> Option<&PathBuf> {
        let endpoint = self.endpoints.get(&self.engineer.endpoint)?;
        match (self.engineer.framework, &endpoint.kind) {
            (EngineerFramework::Scripted, EndpointKind::Playbook { playbook }) => Some(playbook),
        }
    }
}

/// `models.engineer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineerModel {
    /// What runs in the Engineer's sandbox.
    pub framework: EngineerFramework,
    /// Name of the endpoint that it uses; for `scripted` its playbook is the script.
    pub endpoint: String,
}

/// What runs in the Engineer's sandbox (CDX-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineerFramework {
    /// `vec-playbook engineer`: the offline double.
    Scripted,
}

/// `models.endpoints.<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What it is.
    pub kind: EndpointKind,
    /// Model ids that it serves; no id is served twice.
    pub models: Vec<String>,
}

/// What an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointKind {
    /// The scripted model, fed by a playbook file (absolute path).
    Playbook {
        /// The playbook file.
        playbook: PathBuf,
    },
}

impl EndpointKind {
    /// A scripted model: never submittable.
    #[must_use]
    pub const fn is_scripted(&self) -> bool {
        match self {
            Self::Playbook { .. } => true,
        }
    }

    /// Reached on the loopback interface instead of over a Unix socket or the network.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        match self {
            Self::Playbook { .. } => false,
        }
    }
}

/// `engineer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engineer {
    /// Longest session; absent = until hand-off (ENG-06).
    pub minutes: Option<f64>,
    /// Address space of a session (ENG-03).
    pub memory_gb: f64,
    /// Size of a session's work directory, which is in memory.
    pub work_gb: f64,
}

/// `engineer_stall` (ENG-05).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineerStall {
    /// Silence that is one strike.
    pub seconds: u32,
    /// Strikes that end the session.
    pub strikes: u32,
}
