//! PLAN.json, as the Researcher's reply is understood (RES-06, O-RES-1).

use serde::{Deserialize, Serialize};

use crate::FamilyId;

/// A node's plan. Texts are at most [`Plan::TEXT_CHARS_MAX`] characters each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name of the idea.
    pub name: String,
    /// Why it should help.
    pub motivation: String,
    /// What the Engineer shall build.
    pub approach: String,
    /// Metric groups expected to move.
    #[serde(default)]
    pub expected_groups: Vec<String>,
    /// What may go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// Family of the idea library (DRF-11); absent = `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family_id: Option<FamilyId>,
    /// The mechanism that the ablation switches off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
    /// Name given to `--ablate` (ABL-03).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablate: Option<String>,
}

impl Plan {
    /// Longest accepted text.
    pub const TEXT_CHARS_MAX: usize = 4_000;
    /// Longest accepted list.
    pub const LIST_LEN_MAX: usize = 16;
}
