//! Root mean squared error, the metric of tabular boards.

/// Largest magnitude of a prediction or target. Keeps every difference finite, so that a wild but
/// finite prediction is a very bad score and not a failure of the scorer.
pub const VALUE_MAX: f64 = 1e300;

/// Differences within these magnitudes are squared as they are; others are scaled first.
const PLAIN_MIN: f64 = 1e-140;
const PLAIN_MAX: f64 = 1e140;

/// Why a metric has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// Nothing to compare.
    #[error("no rows to compare")]
    Empty,
    /// The two sides have different lengths.
    #[error("{truth} truth rows but {prediction} predicted rows")]
    Length {
        /// Rows of the truth.
        truth: usize,
        /// Rows of the prediction.
        prediction: usize,
    },
    /// A value is NaN, infinite or beyond [`VALUE_MAX`]. `row` counts from 0.
    #[error("row {row} of the {side} is not a finite number within ±1e300")]
    Value {
        /// `truth` or `prediction`.
        side: &'static str,
        /// Row in the order given, from 0.
        row: usize,
    },
}

/// Root of the mean squared difference, in the unit of the target; 0 is perfect.
///
/// Sums in the order given, so that equal inputs give equal bits. Never overflows: where squares
/// could, differences are first divided by a power of two, which is exact.
///
/// # Errors
/// [`MetricError`] for no rows, different lengths, and values that are not finite or too large.
pub fn rmse(truth: &[f64], prediction: &[f64]) -> Result<f64, MetricError> {
    if truth.len() != prediction.len() {
        return Err(MetricError::Length {
            truth: truth.len(),
            prediction: prediction.len(),
        });
    }
    if truth.is_empty() {
        return Err(MetricError::Empty);
    }
    check("truth", truth)?;
    check("prediction", prediction)?;
    let differences = || truth.iter().zip(prediction).map(|(t, p)| t - p);
    let largest = differences().fold(0.0_f64, |largest, d| largest.max(d.abs()));
    if largest == 0.0 {
        return Ok(0.0);
    }
    let scale = if (PLAIN_MIN..=PLAIN_MAX).contains(&largest) {
        1.0
    } else {
        largest.log2().floor().exp2()
    };
    let squares: f64 = differences().map(|d| (d / scale) * (d / scale)).sum();
    Ok((squares / truth.len() as f64).sqrt() * scale)
}

fn check(side: &'static str, values: &[f64]) -> Result<(), MetricError> {
    let within = |value: &f64| value.is_finite() && value.abs() <= VALUE_MAX;
    match values.iter().position(|value| !within(value)) {
        Some(row) => Err(MetricError::Value { side, row }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(rmse(&[1.0, 2.0], &[1.0, 2.0]), Ok(0.0));
        assert_eq!(rmse(&[0.0, 0.0], &[3.0, 4.0]), Ok(12.5_f64.sqrt()));
        assert_eq!(rmse(&[5.0], &[2.0]), Ok(3.0));
    }

    #[test]
    fn extreme_magnitudes_neither_overflow_nor_vanish() {
        assert_eq!(rmse(&[-VALUE_MAX], &[VALUE_MAX]), Ok(2e300));
        assert_eq!(rmse(&[0.0, 0.0], &[2e-200, 2e-200]), Ok(2e-200));
        let tiny = rmse(&[0.0], &[f64::MIN_POSITIVE]).expect("finite");
        assert!(tiny > 0.0);
    }

    #[test]
    fn what_is_not_a_number_is_a_typed_failure() {
        assert_eq!(rmse(&[], &[]), Err(MetricError::Empty));
        assert!(matches!(
            rmse(&[1.0], &[]),
            Err(MetricError::Length {
                truth: 1,
                prediction: 0
            })
        ));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.1 * VALUE_MAX] {
            let side = "prediction";
            assert_eq!(
                rmse(&[1.0, 1.0], &[1.0, bad]),
                Err(MetricError::Value { side, row: 1 })
            );
            let side = "truth";
            assert_eq!(
                rmse(&[bad], &[1.0]),
                Err(MetricError::Value { side, row: 0 })
            );
        }
    }

    proptest! {
        #[test]
        fn scaling_is_exact(values in proptest::collection::vec((-1e3..1e3_f64, -1e3..1e3_f64), 1..40)) {
            let (truth, prediction): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            let up = |v: &[f64]| v.iter().map(|x| x * 2.0_f64.powi(600)).collect::<Vec<_>>();
            let plain = rmse(&truth, &prediction).expect("finite");
            let scaled = rmse(&up(&truth), &up(&prediction)).expect("finite");
            let back = scaled * 2.0_f64.powi(-600);
            prop_assert!((back - plain).abs() <= plain * 1e-15);
        }

        #[test]
        fn a_wider_miss_is_never_better(truth in proptest::collection::vec(-1e6..1e6_f64, 1..40), miss in 0.0..1e6_f64, more in 1.0..1e3_f64) {
            let at = |d: f64| truth.iter().map(|t| t + d).collect::<Vec<_>>();
            prop_assert!(rmse(&truth, &at(miss + more)) .expect("finite") > rmse(&truth, &at(miss)).expect("finite"));
        }
    }
}
