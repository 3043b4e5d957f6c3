//! The scorer proves itself before a run may use it: on every row set it must separate a perfect,
//! the floor's, a shuffled and a constant prediction in this order of sense, and give an A/A pair
//! the same bits (architecture §7). Scores only, never rows.

use serde::{Deserialize, Serialize};

use crate::scoring::{RowChoice, ScoreFailure, Scoring};

/// Tolerance on 50 and 100 points.
const POINTS_TOLERANCE: f64 = 1e-6;

/// The constant prediction lies this many floors away from the floor prediction.
const CONSTANT_DISTANCE: f64 = 3.0;

/// Scores (0–100) of the five test predictions on one row set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SelfTestNumbers {
    /// The truth itself.
    pub perfect: f64,
    /// The floor prediction.
    pub baseline: f64,
    /// The truth's own values on the wrong rows.
    pub shuffled: f64,
    /// One value far from all.
    pub constant: f64,
    /// The floor prediction scored twice.
    pub pair: [f64; 2],
}

/// Why a scorer must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SelfTestRefusal {
    /// A score is not a number.
    #[error("the scorer gives a score that is not finite")]
    NotFinite,
    /// Every prediction gets the same score.
    #[error("the scorer is constant: it does not separate predictions")]
    Constant,
    /// A worse prediction scores at least as high as the perfect one.
    #[error("the scorer is inverted: a worse prediction scores as high as the perfect one")]
    Inverted,
    /// The perfect prediction does not get 100.
    #[error("the perfect prediction does not score 100")]
    Perfect,
    /// The floor prediction does not get 50.
    #[error("the baseline prediction does not score 50")]
    Baseline,
    /// A far constant is as good as the floor.
    #[error("a constant far from the data scores as high as the baseline")]
    FarConstant,
    /// The same prediction gets two scores.
    #[error("the same prediction gets two different scores")]
    Pair,
}

/// Judges the scores of one row set.
///
/// # Errors
/// The first [`SelfTestRefusal`] that applies.
pub fn judge_self_test(numbers: &SelfTestNumbers) -> Result<(), SelfTestRefusal> {
    let SelfTestNumbers {
        perfect,
        baseline,
        shuffled,
        constant,
        pair,
    } = *numbers;
    let worse = [baseline, shuffled, constant];
    if ![perfect, pair[0], pair[1]]
        .iter()
        .chain(&worse)
        .all(|score| score.is_finite())
    {
        return Err(SelfTestRefusal::NotFinite);
    }
    if worse.iter().all(|score| *score == perfect) {
        return Err(SelfTestRefusal::Constant);
    }
    if worse.iter().any(|score| *score >= perfect) {
        return Err(SelfTestRefusal::Inverted);
    }
    if (perfect - 100.0).abs() > POINTS_TOLERANCE {
        return Err(SelfTestRefusal::Perfect);
    }
    if (baseline - 50.0).abs() > POINTS_TOLERANCE {
        return Err(SelfTestRefusal::Baseline);
    }
    if constant >= baseline {
        return Err(SelfTestRefusal::FarConstant);
    }
    if pair[0].to_bits() != pair[1].to_bits() {
        return Err(SelfTestRefusal::Pair);
    }
    Ok(())
}

/// Scores the five test predictions on one row set.
///
/// # Errors
/// [`ScoreFailure`] when one of them cannot be scored.
pub(crate) fn self_test(
    scoring: &Scoring,
    rows: RowChoice,
    floor_prediction: f64,
) -> Result<SelfTestNumbers, ScoreFailure> {
    let total = |make: &dyn Fn(&[f64]) -> Vec<f64>| {
        let predictions = scoring.predict(rows, make);
        scoring
            .score(rows, &predictions)
            .map(|report| report.total.get())
    };
    let floor = scoring.floor(rows).ok_or(ScoreFailure::UnknownRows(rows))?;
    let baseline = |targets: &[f64]| vec![floor_prediction; targets.len()];
    let far = |targets: &[f64]| {
        let mean = targets
            .iter()
            .map(|target| target / targets.len() as f64)
            .sum::<f64>();
        // Away from the data, so that it is worse than the floor whatever the floor's bias.
        let side = if mean > floor_prediction { -1.0 } else { 1.0 };
        vec![floor_prediction + side * CONSTANT_DISTANCE * floor; targets.len()]
    };
    Ok(SelfTestNumbers {
        perfect: total(&<[f64]>::to_vec)?,
        baseline: total(&baseline)?,
        shuffled: total(&rotated)?,
        constant: total(&far)?,
        pair: [total(&baseline)?, total(&baseline)?],
    })
}

/// Every row gets the value half the sorted order away: wrong wherever the truth is not constant
/// over half of it, without any luck of a draw.
fn rotated(targets: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by(|a, b| targets[*a].total_cmp(&targets[*b]).then(a.cmp(b)));
    let mut moved = targets.to_vec();
    for (rank, row) in order.iter().enumerate() {
        moved[*row] = targets[order[(rank + targets.len() / 2) % targets.len()]];
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: SelfTestNumbers = SelfTestNumbers {
        perfect: 100.0,
        baseline: 50.0,
        shuffled: 41.0,
        constant: 24.0,
        pair: [50.0, 50.0],
    };

    #[test]
    fn each_fault_of_a_scorer_is_refused_by_name() {
        assert_eq!(judge_self_test(&GOOD), Ok(()));
        let flip = |score: f64| 100.0 - score;
        let inverted = SelfTestNumbers {
            perfect: flip(GOOD.perfect),
            baseline: flip(GOOD.baseline),
            shuffled: flip(GOOD.shuffled),
            constant: flip(GOOD.constant),
            pair: [50.0, 50.0],
        };
        let constant = SelfTestNumbers {
            perfect: 50.0,
            baseline: 50.0,
            shuffled: 50.0,
            constant: 50.0,
            pair: [50.0, 50.0],
        };
        for (numbers, refusal) in [
            (inverted, SelfTestRefusal::Inverted),
            (constant, SelfTestRefusal::Constant),
            (
                SelfTestNumbers {
                    shuffled: 100.0,
                    ..GOOD
                },
                SelfTestRefusal::Inverted,
            ),
            (
                SelfTestNumbers {
                    perfect: 99.0,
                    ..GOOD
                },
                SelfTestRefusal::Perfect,
            ),
            (
                SelfTestNumbers {
                    baseline: 49.0,
                    ..GOOD
                },
                SelfTestRefusal::Baseline,
            ),
            (
                SelfTestNumbers {
                    constant: 50.0,
                    ..GOOD
                },
                SelfTestRefusal::FarConstant,
            ),
            (
                SelfTestNumbers {
                    pair: [50.0, 50.000_000_1],
                    ..GOOD
                },
                SelfTestRefusal::Pair,
            ),
            (
                SelfTestNumbers {
                    constant: f64::NAN,
                    ..GOOD
                },
                SelfTestRefusal::NotFinite,
            ),
        ] {
            assert_eq!(judge_self_test(&numbers), Err(refusal), "{numbers:?}");
        }
    }

    #[test]
    fn rotation_moves_every_value_of_distinct_targets() {
        let targets = [3.0, 1.0, 2.0, 9.0, 7.0];
        let mut moved = rotated(&targets);
        assert!(
            moved
                .iter()
                .zip(&targets)
                .all(|(moved, target)| moved != target)
        );
        moved.sort_by(f64::total_cmp);
        assert_eq!(moved, [1.0, 2.0, 3.0, 7.0, 9.0]);
    }
}
