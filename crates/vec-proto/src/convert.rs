//! Conversions between messages and the workspace's nouns. Sizes of repeated fields are bounded
//! here: a peer that sends more is refused, not read.

use std::collections::BTreeMap;

use tonic::Status;
use vec_types::{ExecName, NodeId, Part, RulerId, Score, ScoreReport, ScoringSeed};

use crate::pb::scorer::v1 as pb;

/// Most components or parts in one report.
const REPORT_ITEMS_MAX: usize = 1_024;

/// A message that does not say what it must.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A field is absent.
    #[error("message lacks {0}")]
    Missing(&'static str),
    /// A field holds what it must not.
    #[error("message field {field} is not valid: {why}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl ProtocolError {
    /// `field` is wrong for the reason given.
    #[expect(clippy::needless_pass_by_value, reason = "callers map errors into it")]
    pub fn invalid(field: &'static str, why: impl ToString) -> Self {
        Self::Invalid {
            field,
            why: why.to_string(),
        }
    }
}

impl From<ProtocolError> for Status {
    fn from(error: ProtocolError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

/// Rows of half B (`decisions.md`, Statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowSet {
    /// The draw of the search rows.
    Search,
    /// A share of the guard rows.
    Guard,
}

impl TryFrom<pb::RowSet> for RowSet {
    type Error = ProtocolError;

    fn try_from(rows: pb::RowSet) -> Result<Self, ProtocolError> {
        match rows {
            pb::RowSet::Unspecified => Err(ProtocolError::Missing("header.rows")),
            pb::RowSet::Search => Ok(Self::Search),
            pb::RowSet::Guard => Ok(Self::Guard),
        }
    }
}

impl From<RowSet> for pb::RowSet {
    fn from(rows: RowSet) -> Self {
        match rows {
            RowSet::Search => Self::Search,
            RowSet::Guard => Self::Guard,
        }
    }
}

/// What a Score call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreCall {
    /// Execution id `<run8>-<node>-<exec>`; repeats are idempotent.
    pub request_id: String,
    /// The node.
    pub node: NodeId,
    /// The execution whose predictions follow.
    pub exec: ExecName,
    /// Seed of the scorer's own sampling.
    pub scoring_seed: ScoringSeed,
    /// Rows to score on.
    pub rows: RowSet,
}

impl TryFrom<pb::ScoreHeader> for ScoreCall {
    type Error = ProtocolError;

    fn try_from(header: pb::ScoreHeader) -> Result<Self, ProtocolError> {
        let rows = pb::RowSet::try_from(header.rows)
            .map_err(|error| ProtocolError::invalid("header.rows", error))?;
        let pb::ScoreHeader {
            request_id,
            node,
            exec,
            scoring_seed,
            rows: _,
        } = header;
        if request_id.is_empty() {
            return Err(ProtocolError::Missing("header.request_id"));
        }
        Ok(Self {
            request_id,
            node: NodeId(node),
            exec: exec
                .parse()
                .map_err(|error| ProtocolError::invalid("header.exec", error))?,
            scoring_seed: ScoringSeed(scoring_seed),
            rows: rows.try_into()?,
        })
    }
}

impl From<ScoreCall> for pb::ScoreHeader {
    fn from(call: ScoreCall) -> Self {
        let ScoreCall {
            request_id,
            node,
            exec,
            scoring_seed,
            rows,
        } = call;
        Self {
            request_id,
            node: node.0,
            exec: exec.to_string(),
            scoring_seed: scoring_seed.0,
            rows: pb::RowSet::from(rows).into(),
        }
    }
}

impl TryFrom<pb::Part> for Part {
    type Error = ProtocolError;

    fn try_from(part: pb::Part) -> Result<Self, ProtocolError> {
        let pb::Part {
            ruler,
            metric,
            raw,
            skill,
            points,
            weight,
        } = part;
        if metric.is_empty() {
            return Err(ProtocolError::Missing("part.metric"));
        }
        if !raw.is_finite() || !points.is_finite() {
            return Err(ProtocolError::invalid(
                "part",
                "raw and points must be finite",
            ));
        }
        if !(0.0..=1.0).contains(&skill) {
            return Err(ProtocolError::invalid("part.skill", "must be in 0..=1"));
        }
        // The weight is the lock's; on the wire it is for readers without the lock.
        if !(0.0..=1.0).contains(&weight) {
            return Err(ProtocolError::invalid("part.weight", "must be in 0..=1"));
        }
        Ok(Self {
            ruler: parse_ruler(&ruler)?,
            metric,
            raw,
            skill,
            points,
        })
    }
}

impl TryFrom<pb::Report> for ScoreReport {
    type Error = ProtocolError;

    fn try_from(report: pb::Report) -> Result<Self, ProtocolError> {
        let pb::Report {
            total,
            components,
            parts,
        } = report;
        if components.is_empty() {
            return Err(ProtocolError::Missing("report.components"));
        }
        if components.len() > REPORT_ITEMS_MAX || parts.len() > REPORT_ITEMS_MAX {
            return Err(ProtocolError::invalid(
                "report",
                format!("more than {REPORT_ITEMS_MAX} components or parts"),
            ));
        }
        let mut by_ruler = BTreeMap::new();
        for pb::Component { ruler, score } in components {
            let score = finite("component.score", score)?;
            if by_ruler.insert(parse_ruler(&ruler)?, score).is_some() {
                return Err(ProtocolError::invalid(
                    "component.ruler",
                    format!("{ruler} twice"),
                ));
            }
        }
        Ok(Self {
            total: finite("report.total", total)?,
            components: by_ruler.into(),
            parts: parts
                .into_iter()
                .map(Part::try_from)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Weight of each (ruler, metric) within its ruler, in 0..=1, as locked.
pub type Weights = BTreeMap<(RulerId, String), f64>;

/// A report as a message. A part without an entry in `weights` is the only metric of its ruler:
/// weight 1.
#[must_use]
pub fn report_to_pb(report: ScoreReport, weights: &Weights) -> pb::Report {
    let ScoreReport {
        total,
        components,
        parts,
    } = report;
    let part_to_pb = |part: Part| {
        let Part {
            ruler,
            metric,
            raw,
            skill,
            points,
        } = part;
        let key = (ruler, metric);
        let weight = weights.get(&key).copied().unwrap_or(1.0);
        pb::Part {
            ruler: key.0.to_string(),
            metric: key.1,
            raw,
            skill,
            points,
            weight,
        }
    };
    pb::Report {
        total: total.get(),
        components: components
            .into_iter()
            .map(|(ruler, score)| pb::Component {
                ruler: ruler.to_string(),
                score: score.get(),
            })
            .collect(),
        parts: parts.into_iter().map(part_to_pb).collect(),
    }
}

fn finite(field: &'static str, value: f64) -> Result<Score, ProtocolError> {
    Score::new(value).map_err(|error| ProtocolError::invalid(field, error))
}

fn parse_ruler(text: &str) -> Result<RulerId, ProtocolError> {
    text.parse()
        .map_err(|error| ProtocolError::invalid("ruler", error))
}

#[cfg(test)]
mod tests;
