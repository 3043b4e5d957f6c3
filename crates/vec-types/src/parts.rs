//! Ranked metrics of a score. Every score of a board has the same ones, so names and numbers are
//! kept apart and the names can be shared.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Pool, RulerId};

/// One ranked metric of one ruler (RUL-08).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Ruler that it belongs to.
    pub ruler: RulerId,
    /// Metric name, e.g. `rmse`.
    pub metric: String,
    /// Raw value in the metric's own unit.
    pub raw: f64,
    /// Skill in 0..=1: 0.5 at the floor, 1 at the ceiling (EXT-03).
    pub skill: f64,
    /// Points that it contributes to the ruler's score.
    pub points: f64,
}

/// A [`Part`] where it stands in [`Parts`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartRef<'a> {
    /// As [`Part::ruler`].
    pub ruler: &'a RulerId,
    /// As [`Part::metric`].
    pub metric: &'a str,
    /// As [`Part::raw`].
    pub raw: f64,
    /// As [`Part::skill`].
    pub skill: f64,
    /// As [`Part::points`].
    pub points: f64,
}

/// Whose numbers they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartName {
    ruler: RulerId,
    metric: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Numbers {
    raw: f64,
    skill: f64,
    points: f64,
}

/// Parts in the scorer's order; as JSON a list of [`Part`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parts {
    names: Arc<Vec<PartName>>,
    /// One per name.
    numbers: Box<[Numbers]>,
}

impl Parts {
    /// Parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Every part in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PartRef<'_>> {
        let pairs = self.names.iter().zip(&self.numbers);
        pairs.map(|(name, numbers)| PartRef {
            ruler: &name.ruler,
            metric: &name.metric,
            raw: numbers.raw,
            skill: numbers.skill,
            points: numbers.points,
        })
    }

    /// Lets it point at the pool's copy of its names.
    pub fn share_names(&mut self, pool: &mut Pool<Vec<PartName>>) {
        pool.share(&mut self.names);
    }
}

impl IntoIterator for Parts {
    type Item = Part;
    type IntoIter = std::vec::IntoIter<Part>;

    fn into_iter(self) -> Self::IntoIter {
        let parts: Vec<Part> = self.iter().map(Part::from).collect();
        parts.into_iter()
    }
}

impl From<PartRef<'_>> for Part {
    fn from(part: PartRef<'_>) -> Self {
        Self {
            ruler: part.ruler.clone(),
            metric: part.metric.to_owned(),
            raw: part.raw,
            skill: part.skill,
            points: part.points,
        }
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        let split = parts.into_iter().map(|part| {
            let name = PartName {
                ruler: part.ruler,
                metric: part.metric.into(),
            };
            let numbers = Numbers {
                raw: part.raw,
                skill: part.skill,
                points: part.points,
            };
            (name, numbers)
        });
        let (names, numbers): (Vec<PartName>, Vec<Numbers>) = split.unzip();
        Self {
            names: Arc::new(names),
            numbers: numbers.into(),
        }
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        parts.into_iter().collect()
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Part>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts() -> impl Strategy<Value = Vec<Part>> {
        let part = ("[a-c]", "[a-c]{1,3}", [-9.0..9.0, 0.0..1.0, -1e3..1e3]);
        let part = part.prop_map(|(ruler, metric, [raw, skill, points])| Part {
            ruler: ruler.parse().expect("word"),
            metric,
            raw,
            skill,
            points,
        });
        prop::collection::vec(part, 0..6)
    }

    proptest! {
        #[test]
        fn the_list_is_kept_as_it_is(list in parts()) {
            let parts = Parts::from(list.clone());
            prop_assert_eq!((parts.len(), parts.is_empty()), (list.len(), list.is_empty()));
            prop_assert!(parts.iter().map(Part::from).eq(list.iter().cloned()));
            prop_assert!(parts.clone().into_iter().eq(list.iter().cloned()));
            let json = serde_json::to_string(&parts).expect("json");
            prop_assert_eq!(&json, &serde_json::to_string(&list).expect("json"));
            prop_assert_eq!(serde_json::from_str::<Parts>(&json).expect("list"), parts);
        }
    }

    #[test]
    fn equal_names_come_to_be_shared() {
        let parts = |points| {
            Parts::from(vec![Part {
                ruler: "main".parse().expect("word"),
                metric: "rmse".to_owned(),
                raw: 1.0,
                skill: 0.5,
                points,
            }])
        };
        let (mut one, mut two, mut pool) = (parts(1.0), parts(2.0), Pool::default());
        one.share_names(&mut pool);
        two.share_names(&mut pool);
        assert!(Arc::ptr_eq(&one.names, &two.names));
        assert_eq!((one, two), (parts(1.0), parts(2.0)));
    }
}
