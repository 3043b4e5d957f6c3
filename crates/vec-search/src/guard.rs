//! The statistics of the final guard (FIN-07, O-FIN-2): one-sided 97.5 % t lower bound of the mean
//! paired gain.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use vec_types::NodeId;

use crate::Pair;

/// Confidence of the one-sided bound.
pub const GUARD_CONFIDENCE: f64 = 0.975;

/// Mean, spread and lower bound of paired gains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GuardStats {
    /// Mean gain of the candidate over the baseline.
    pub mean: f64,
    /// Sample standard deviation (n − 1).
    pub sd: f64,
    /// mean − t(0.975, n − 1)·sd/√n.
    pub lower_bound: f64,
}

/// What the guard found (payload of `guard_result`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardVerdict {
    /// The one candidate.
    pub candidate: NodeId,
    /// Scores per fresh seed, as far as they came.
    pub pairs: Vec<Pair>,
    /// Figures; absent when incomplete.
    pub mean: Option<f64>,
    /// Sample standard deviation.
    pub sd: Option<f64>,
    /// One-sided 97.5 % lower bound of the mean gain.
    pub lower_bound: Option<f64>,
    /// Every pair is there and the spread is usable.
    pub complete: bool,
    /// The candidate replaces the baseline.
    pub replace: bool,
    /// One sentence for people.
    pub why: String,
}

/// Statistics of the gains; absent for fewer than two, or when a figure is not finite.
#[must_use]
pub fn guard_stats(gains: &[f64]) -> Option<GuardStats> {
    let pairs = u32::try_from(gains.len()).ok().filter(|n| *n >= 2)?;
    let n = f64::from(pairs);
    let mean = gains.iter().sum::<f64>() / n;
    let squares: f64 = gains.iter().map(|gain| (gain - mean) * (gain - mean)).sum();
    let sd = (squares / (n - 1.0)).sqrt();
    let lower_bound = mean - t_quantile(pairs - 1)? * sd / n.sqrt();
    let stats = GuardStats {
        mean,
        sd,
        lower_bound,
    };
    (mean.is_finite() && sd.is_finite() && lower_bound.is_finite()).then_some(stats)
}

/// Quantile 0.975 of Student's t. Rounded to 9 decimals: logarithms of different C libraries
/// differ in the last bit, and a replay on another machine must find the same bytes.
fn t_quantile(freedom: u32) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, f64::from(freedom)).ok()?;
    let start = distribution.inverse_cdf(GUARD_CONFIDENCE);
    Some((polished(&distribution, start) * 1e9).round() / 1e9)
}

// The library's inverse is an approximation; bisect its distribution function around it.
fn polished(distribution: &StudentsT, start: f64) -> f64 {
    let (mut low, mut high) = (start * 0.9, start * 1.1);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if distribution.cdf(middle) < GUARD_CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_the_tables() {
        for (freedom, expected) in [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (4, 2.776_445_105),
            (9, 2.262_157_163),
            (30, 2.042_272_456),
            (100, 1.983_971_519),
        ] {
            let found = t_quantile(freedom).expect("defined");
            assert!((found - expected).abs() < 2e-9, "{freedom}: {found}");
        }
    }

    #[test]
    fn hand_computed_example() {
        // gains 1..5: mean 3, sd √2.5, bound 3 − 2.776445105·√2.5/√5 = 3 − 2.776445105·√0.5.
        let stats = guard_stats(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five gains");
        assert_eq!(stats.mean, 3.0);
        assert!((stats.sd - 2.5_f64.sqrt()).abs() < 1e-15);
        assert!((stats.lower_bound - (3.0 - 2.776_445_105 * 0.5_f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn fewer_than_two_gains_or_overflow_give_nothing() {
        assert_eq!(guard_stats(&[]), None);
        assert_eq!(guard_stats(&[1.0]), None);
        assert_eq!(guard_stats(&[f64::MAX, f64::MAX, -f64::MAX]), None);
        let equal = guard_stats(&[0.5, 0.5, 0.5]).expect("three gains");
        assert_eq!((equal.sd, equal.lower_bound), (0.0, 0.5));
    }
}
