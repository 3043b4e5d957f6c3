//! Parameters of a program: their ranges, drawing a setting, stepping to a neighbouring one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vec_types::FamilyId;

use crate::Family;
use crate::deal::Dice;

/// A range as written; exactly one of the keys is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterFile {
    log: Option<[f64; 2]>,
    linear: Option<[f64; 2]>,
    int: Option<[i64; 2]>,
    choice: Option<Vec<String>>,
}

impl ParameterFile {
    pub(crate) fn check(self) -> Result<ParameterRange, String> {
        let finite = |[low, high]: [f64; 2]| low.is_finite() && high.is_finite() && low <= high;
        match (self.log, self.linear, self.int, self.choice) {
            (Some([low, high]), None, None, None) if finite([low, high]) && low > 0.0 => {
                Ok(ParameterRange::Log { low, high })
            }
            (None, Some([low, high]), None, None) if finite([low, high]) => {
                Ok(ParameterRange::Linear { low, high })
            }
            (None, None, Some([low, high]), None) if low <= high && high.abs() < 1 << 40 && low.abs() < 1 << 40 => {
                Ok(ParameterRange::Int { low, high })
            }
            (None, None, None, Some(words)) if !words.is_empty() && words.iter().all(|word| is_word(word)) => {
                Ok(ParameterRange::Choice(words))
            }
            _ => Err("needs exactly one of `log: [low, high]` (above 0), `linear: [low, high]`, `int: [low, high]`, `choice: [words]`".to_owned()),
        }
    }
}

/// Words go into programs inside quotes.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Where a parameter's value may lie, borders included.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterRange {
    /// Positive, drawn evenly in the logarithm.
    Log {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
    /// Drawn evenly.
    Linear {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
    /// Whole numbers.
    Int {
        /// Smallest.
        low: i64,
        /// Largest.
        high: i64,
    },
    /// One of these words.
    Choice(Vec<String>),
}

/// One value. Numbers have at most 4 significant digits, so that texts stay short and exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum ParameterValue {
    /// Whole.
    Int(i64),
    /// Real, finite.
    Real(f64),
    /// A word.
    Word(String),
}

impl From<ParameterValue> for serde_json::Value {
    fn from(value: ParameterValue) -> Self {
        match value {
            ParameterValue::Int(value) => value.into(),
            ParameterValue::Real(value) => value.into(),
            ParameterValue::Word(word) => word.into(),
        }
    }
}

impl TryFrom<serde_json::Value> for ParameterValue {
    type Error = &'static str;

    fn try_from(value: serde_json::Value) -> Result<Self, Self::Error> {
        match &value {
            serde_json::Value::String(word) if is_word(word) => Ok(Self::Word(word.clone())),
            serde_json::Value::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_f64().map(Self::Real))
                .ok_or("a parameter must be a finite number"),
            _ => Err("a parameter must be a number or a word"),
        }
    }
}

impl ParameterValue {
    /// As a Python literal.
    #[must_use]
    pub fn literal(&self) -> String {
        match self {
            Self::Int(value) => value.to_string(),
            Self::Real(value) => format!("{value:?}"),
            Self::Word(word) => format!("\"{word}\""),
        }
    }
}

/// A family with a value for each of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The family.
    pub family: FamilyId,
    /// Values by name.
    pub values: BTreeMap<String, ParameterValue>,
}

impl Settings {
    /// A setting anywhere in the ranges.
    pub(crate) fn draw(id: &FamilyId, family: &Family, dice: &mut Dice) -> Self {
        let values = family
            .parameters
            .iter()
            .map(|(name, range)| (name.clone(), range.at(dice.unit())))
            .collect();
        Self {
            family: id.clone(),
            values,
        }
    }

    /// A setting near this one: every parameter moves with probability 0.6, at least one does.
    pub(crate) fn step(&self, family: &Family, dice: &mut Dice) -> Self {
        let mut values = self.values.clone();
        let always = dice.below(family.parameters.len().max(1));
        for (index, (name, range)) in family.parameters.iter().enumerate() {
            let (moves, shift) = (dice.unit() < 0.6, (dice.unit() - 0.5) * 0.6);
            if moves || index == always {
                let at = values.get(name).map_or(0.5, |value| range.position(value));
                values.insert(name.clone(), range.at((at + shift).clamp(0.0, 1.0)));
            }
        }
        Self {
            family: self.family.clone(),
            values,
        }
    }

    /// These values, brought into the family's ranges; what is missing is taken from the middle.
    pub(crate) fn fitted(
        id: &FamilyId,
        family: &Family,
        values: &BTreeMap<String, ParameterValue>,
    ) -> Self {
        let fit = |(name, range): (&String, &ParameterRange)| {
            let value = match values.get(name) {
                Some(value) if range.holds(value) => value.clone(),
                Some(value) => range.at(range.position(value)),
                None => range.at(0.5),
            };
            (name.clone(), value)
        };
        Self {
            family: id.clone(),
            values: family.parameters.iter().map(fit).collect(),
        }
    }
}

impl ParameterRange {
    /// The value at `unit` in 0..=1 of the range.
    fn at(&self, unit: f64) -> ParameterValue {
        match self {
            Self::Log { low, high } => {
                let value = (low.ln() + unit * (high.ln() - low.ln())).exp();
                ParameterValue::Real(short(value).clamp(*low, *high))
            }
            Self::Linear { low, high } => {
                ParameterValue::Real(short(low + unit * (high - low)).clamp(*low, *high))
            }
            Self::Int { low, high } => {
                let places = (high - low + 1) as f64;
                ParameterValue::Int((low + (unit * places) as i64).min(*high))
            }
            Self::Choice(words) => {
                let place = ((unit * words.len() as f64) as usize).min(words.len() - 1);
                ParameterValue::Word(words[place].clone())
            }
        }
    }

    /// Where `value` lies in the range, 0..=1; the middle for what does not fit at all.
    fn position(&self, value: &ParameterValue) -> f64 {
        let number = match value {
            ParameterValue::Int(value) => *value as f64,
            ParameterValue::Real(value) => *value,
            ParameterValue::Word(word) => {
                let Self::Choice(words) = self else {
                    return 0.5;
                };
                let place = words.iter().position(|known| known == word);
                return place.map_or(0.5, |place| (place as f64 + 0.5) / words.len() as f64);
            }
        };
        let share = |value: f64, low: f64, high: f64| match high > low {
            true => ((value - low) / (high - low)).clamp(0.0, 1.0),
            false => 0.5,
        };
        match self {
            Self::Log { low, high } if number > 0.0 => share(number.ln(), low.ln(), high.ln()),
            Self::Linear { low, high } => share(number, *low, *high),
            Self::Int { low, high } => share(number + 0.5, *low as f64, (high + 1) as f64),
            Self::Log { .. } | Self::Choice(_) => 0.5,
        }
    }

    fn holds(&self, value: &ParameterValue) -> bool {
        match (self, value) {
            (Self::Log { low, high } | Self::Linear { low, high }, ParameterValue::Real(value)) => {
                (*low..=*high).contains(value)
            }
            (Self::Int { low, high }, ParameterValue::Int(value)) => (*low..=*high).contains(value),
            (Self::Choice(words), ParameterValue::Word(word)) => words.contains(word),
            _ => false,
        }
    }
}

/// Rounded to 4 significant digits.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(yaml: &str) -> Result<ParameterRange, String> {
        let file: ParameterFile = serde_yaml::from_str(yaml).map_err(|e| e.to_string())?;
        file.check()
    }

    #[test]
    fn ranges_are_checked() {
        for good in [
            "log: [0.1, 10]",
            "linear: [-1, 1]",
            "int: [3, 3]",
            "choice: [a, b_2]",
        ] {
            let range = range(good).expect(good);
            for unit in [0.0, 0.3, 1.0] {
                let value = range.at(unit);
                assert!(range.holds(&value), "{good} {value:?}");
                assert_eq!(range.at(range.position(&value)), value, "{good} at {unit}");
            }
        }
        for bad in [
            "{}",
            "log: [0, 1]",
            "log: [2, 1]",
            "linear: [.nan, 1]",
            "int: [5, 4]",
            "choice: []",
            "choice: ['a\"b']",
            "{int: [1, 2], log: [1, 2]}",
            "step: [1, 2]",
        ] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn foreign_values_are_brought_into_the_range() {
        let int = range("int: [4, 9]").expect("range");
        for (value, expected) in [
            (ParameterValue::Int(100), 9),
            (ParameterValue::Int(-3), 4),
            (ParameterValue::Real(6.2), 6),
            (ParameterValue::Word("x".into()), 7),
        ] {
            assert_eq!(int.at(int.position(&value)), ParameterValue::Int(expected));
        }
        let log = range("log: [1, 100]").expect("range");
        let zero = ParameterValue::Real(0.0);
        assert_eq!(log.at(log.position(&zero)), ParameterValue::Real(10.0));
    }

    #[test]
    fn literals_are_python() {
        assert_eq!(ParameterValue::Real(1e-7).literal(), "1e-7");
        assert_eq!(ParameterValue::Real(3.0).literal(), "3.0");
        assert_eq!(ParameterValue::Int(-2).literal(), "-2");
        assert_eq!(ParameterValue::Word("a".into()).literal(), "\"a\"");
        assert_eq!(short(12.345_678), 12.35);
    }
}
