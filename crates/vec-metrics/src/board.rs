//! From metric values to points, ruler scores and the board score (RUL-01, RUL-08).

use std::collections::BTreeMap;

use crate::skill::{Anchors, Direction, SkillError, skill};

/// Points of a perfect prediction (O-RUL-5).
const POINTS_MAX: f64 = 100.0;

/// One ranked metric of a ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSpec {
    /// Metric name, e.g. `rmse`.
    pub name: String,
    /// Weight within the ruler, ≥ 0.
    pub weight: f64,
    /// What a better value looks like.
    pub direction: Direction,
    /// Floor and ceiling on the rows that are scored.
    pub anchors: Anchors,
}

/// One metric of a scored prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPart {
    /// Metric name.
    pub metric: String,
    /// Value in the metric's own unit.
    pub raw: f64,
    /// Skill in 0..=1.
    pub skill: f64,
    /// `100 · weight · skill`: what it adds to the ruler's score.
    pub points: f64,
    /// Weight within the ruler, normalised to a sum of 1.
    pub weight: f64,
}

/// Score of one ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct RulerScore {
    /// Sum of the points, in 0..=100.
    pub score: f64,
    /// Every metric, in the order of the specs.
    pub parts: Vec<MetricPart>,
}

/// Why there is no score.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoardError {
    /// A metric or component that the board ranks has no value.
    #[error("no value for {0}")]
    Missing(String),
    /// A value for something that the board does not rank.
    #[error("value for {0}, which the board does not rank")]
    Extra(String),
    /// A value is NaN or infinite.
    #[error("value of {0} is not finite")]
    NotFinite(String),
    /// Weights are negative, not finite, or sum to 0.
    #[error("weights must be finite, not negative and sum to more than 0")]
    Weights,
    /// A metric has no skill.
    #[error("skill of {metric}")]
    Skill {
        /// The metric.
        metric: String,
        /// Why.
        #[source]
        source: SkillError,
    },
}

/// Scores one ruler: exactly the metrics of `specs` must have a value.
///
/// # Errors
/// [`BoardError`] for missing, extra and non-finite values, weights and degenerate anchors.
pub fn ruler_score(
    specs: &[MetricSpec],
    values: &BTreeMap<String, f64>,
) -> Result<RulerScore, BoardError> {
    if let Some(extra) = values
        .keys()
        .find(|name| !specs.iter().any(|s| s.name == **name))
    {
        return Err(BoardError::Extra(extra.clone()));
    }
    let sum = weight_sum(specs.iter().map(|spec| spec.weight))?;
    let mut parts = Vec::with_capacity(specs.len());
    for spec in specs {
        let raw = finite(&spec.name, values.get(&spec.name))?;
        let skill =
            skill(raw, spec.anchors, spec.direction).map_err(|source| BoardError::Skill {
                metric: spec.name.clone(),
                source,
            })?;
        let weight = spec.weight / sum;
        let points = POINTS_MAX * weight * skill;
        parts.push(MetricPart {
            metric: spec.name.clone(),
            raw,
            skill,
            points,
            weight,
        });
    }
    let score = parts.iter().map(|part| part.points).sum();
    Ok(RulerScore { score, parts })
}

/// Weighted mean of the components; a board needs all of them (O-RUL-4).
///
/// # Errors
/// [`BoardError`] for missing, extra and non-finite components and for unusable weights.
pub fn board_score(
    weights: &BTreeMap<String, f64>,
    components: &BTreeMap<String, f64>,
) -> Result<f64, BoardError> {
    if let Some(extra) = components.keys().find(|name| !weights.contains_key(*name)) {
        return Err(BoardError::Extra(extra.clone()));
    }
    let sum = weight_sum(weights.values().copied())?;
    let mut total = 0.0;
    for (name, weight) in weights {
        total += weight / sum * finite(name, components.get(name))?;
    }
    Ok(total)
}

fn finite(name: &str, value: Option<&f64>) -> Result<f64, BoardError> {
    match value {
        None => Err(BoardError::Missing(name.to_owned())),
        Some(value) if value.is_finite() => Ok(*value),
        Some(_) => Err(BoardError::NotFinite(name.to_owned())),
    }
}

fn weight_sum(weights: impl Iterator<Item = f64>) -> Result<f64, BoardError> {
    let mut sum = 0.0;
    for weight in weights {
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(BoardError::Weights);
        }
        sum += weight;
    }
    if sum > 0.0 && sum.is_finite() {
        Ok(sum)
    } else {
        Err(BoardError::Weights)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rmse;

    fn values(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    fn rmse_spec(floor: f64) -> MetricSpec {
        MetricSpec {
            name: "rmse".to_owned(),
            weight: 1.0,
            direction: Direction::LowerIsBetter,
            anchors: Anchors {
                floor,
                ceiling: 0.0,
            },
        }
    }

    #[test]
    fn perfect_is_100_and_the_floor_50() {
        let specs = [rmse_spec(7.5)];
        let score = |raw| {
            ruler_score(&specs, &values(&[("rmse", raw)]))
                .expect("scored")
                .score
        };
        assert_eq!(score(0.0), 100.0);
        assert_eq!(score(7.5), 50.0);
        assert!(score(7.4) > 50.0 && score(7.6) < 50.0);
    }

    #[test]
    fn parts_add_up_and_weights_are_normalised() {
        let mut second = rmse_spec(1.0);
        second.name = "other".to_owned();
        second.weight = 3.0;
        let scored = ruler_score(
            &[rmse_spec(1.0), second],
            &values(&[("rmse", 0.0), ("other", 1.0)]),
        )
        .expect("scored");
        assert_eq!(scored.score, 25.0 + 37.5);
        assert_eq!(scored.parts[1].weight, 0.75);
    }

    #[test]
    fn missing_extra_and_non_finite_values_are_failures() {
        let specs = [rmse_spec(1.0)];
        let refused =
            |pairs: &[(&str, f64)]| ruler_score(&specs, &values(pairs)).expect_err("refused");
        assert_eq!(refused(&[]), BoardError::Missing("rmse".into()));
        assert_eq!(
            refused(&[("rmse", 1.0), ("mae", 1.0)]),
            BoardError::Extra("mae".into())
        );
        assert_eq!(
            refused(&[("rmse", f64::NAN)]),
            BoardError::NotFinite("rmse".into())
        );
        let flat = ruler_score(&[rmse_spec(0.0)], &values(&[("rmse", 1.0)])).expect_err("flat");
        assert!(matches!(flat, BoardError::Skill { .. }));
    }

    #[test]
    fn board_score_needs_every_component() {
        let weights = values(&[("proxy", 0.5), ("x3", 0.5)]);
        assert_eq!(
            board_score(&weights, &values(&[("proxy", 60.0), ("x3", 40.0)])),
            Ok(50.0)
        );
        assert_eq!(
            board_score(&weights, &values(&[("proxy", 60.0)])),
            Err(BoardError::Missing("x3".into()))
        );
        for bad in [
            &[("a", 0.0)][..],
            &[("a", -1.0), ("b", 2.0)],
            &[("a", f64::NAN)],
            &[],
        ] {
            let components = values(&bad.iter().map(|(n, _)| (*n, 1.0)).collect::<Vec<_>>());
            assert_eq!(
                board_score(&values(bad), &components),
                Err(BoardError::Weights)
            );
        }
    }

    proptest! {
        #[test]
        fn a_prediction_closer_to_truth_never_scores_less(
            truth in proptest::collection::vec(-1e3..1e3_f64, 2..60), near in 0.0..1.0_f64, far in 1.0..2.0_f64,
        ) {
            let floor_prediction = vec![2e3; truth.len()];
            let floor = rmse(&truth, &floor_prediction).expect("finite");
            let at = |t: f64| -> Vec<f64> { truth.iter().map(|x| x + t * (2e3 - x)).collect() };
            let score = |p: &[f64]| {
                let raw = rmse(&truth, p).expect("finite");
                ruler_score(&[rmse_spec(floor)], &values(&[("rmse", raw)])).expect("scored").score
            };
            prop_assert_eq!(score(&truth), 100.0);
            prop_assert_eq!(score(&floor_prediction), 50.0);
            prop_assert!(score(&at(near)) >= 50.0 - 1e-9);
            prop_assert!(score(&at(far)) <= 50.0 + 1e-9);
        }
    }
}
