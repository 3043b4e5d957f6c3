//! Scores. A score is a finite number; "no score" and every fault are other types
//! (`decisions.md`: failure is never a number).

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Parts, RulerId, Table};

/// A finite score. Board scores are on a 0–100 scale, higher is better (O-RUL-5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(f64);

/// Why a number is not a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a score must be a finite number")]
pub struct ScoreError;

impl Score {
    /// Wraps a finite number; −0.0 becomes 0.0 so that equal scores have equal bytes.
    ///
    /// # Errors
    /// [`ScoreError`] for NaN and infinities.
    pub fn new(value: f64) -> Result<Self, ScoreError> {
        if value.is_finite() {
            Ok(Self(value + 0.0))
        } else {
            Err(ScoreError)
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Rounded to 4 decimals, the resolution of candidate identity and of what agents see.
    #[must_use]
    pub fn rounded(self) -> f64 {
        (self.0 * 1e4).round() / 1e4 + 0.0
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl TryFrom<f64> for Score {
    type Error = ScoreError;

    fn try_from(value: f64) -> Result<Self, ScoreError> {
        Self::new(value)
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> Self {
        score.0
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}", self.0)
    }
}

/// Which part of the hidden truth scored a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthHalf {
    /// What agents may query.
    A,
    /// What selection uses.
    B,
    /// Both; holdout and record rulers only (SCO-02).
    Whole,
}

/// A scored prediction set: the node score and what it is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreReport {
    /// Weighted mean of the components (RUL-01).
    pub total: Score,
    /// Score of each objective component.
    pub components: Table<RulerId, Score>,
    /// Every ranked metric.
    pub parts: Parts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_are_scores() {
        assert!(Score::new(f64::NAN).is_err());
        assert!(Score::new(f64::INFINITY).is_err());
        let zero = Score::new(-0.0).expect("finite");
        assert_eq!(zero.get().to_bits(), 0.0_f64.to_bits());
        assert!(serde_json::from_str::<Score>("null").is_err());
        assert!(serde_json::from_str::<Score>("\"1\"").is_err());
        assert!(serde_json::from_str::<Score>("true").is_err());
    }

    #[test]
    fn rounding_is_to_four_decimals() {
        assert_eq!(Score::new(1.234_56).expect("finite").rounded(), 1.2346);
    }
}
