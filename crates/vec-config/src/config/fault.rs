//! Fault injection for crash tests: named in the lock, a reason against submission.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `fault`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The k-th entry kills the controller's k-th start; `event:each` stays in force for every
    /// later start.
    pub kill_controller: Vec<FaultPoint>,
}

impl Fault {
    /// The fault of the controller's `start`, counted from 0.
    #[must_use]
    pub fn for_start(&self, start: u32) -> Option<&FaultPoint> {
        let points = &self.kill_controller;
        let each = points
            .iter()
            .position(|point| *point == FaultPoint::EachEvent);
        let index = usize::try_from(start).ok()?;
        points.get(each.map_or(index, |each| index.min(each)))
    }
}

/// Where the controller is killed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FaultPoint {
    /// `event:<kind>`: after the first event of the kind.
    Event(String),
    /// `event:each`: after the first event of every kind, one death per start.
    EachEvent,
    /// `store:<step>`: inside a write step of the store.
    Store(String),
    /// `weights:<step>`: inside a training of weights, or the store's batch that registers them.
    Weights(String),
}

impl fmt::Display for FaultPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(kind) => write!(f, "event:{kind}"),
            Self::EachEvent => f.write_str("event:each"),
            Self::Store(step) => write!(f, "store:{step}"),
            Self::Weights(step) => write!(f, "weights:{step}"),
        }
    }
}

impl TryFrom<String> for FaultPoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        match text.split_once(':') {
            Some(("event", "each")) => Ok(Self::EachEvent),
            Some(("event", kind)) if word(kind) => Ok(Self::Event(kind.to_owned())),
            Some(("store", step)) if word(step) => Ok(Self::Store(step.to_owned())),
            Some(("weights", step)) if word(step) => Ok(Self::Weights(step.to_owned())),
            _ => Err(format!(
                "`{text}` is not `event:<kind>`, `event:each`, `store:<step>` or `weights:<step>`"
            )),
        }
    }
}

impl From<FaultPoint> for String {
    fn from(point: FaultPoint) -> Self {
        point.to_string()
    }
}
