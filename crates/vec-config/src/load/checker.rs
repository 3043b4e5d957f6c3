//! Checking values one by one and keeping every problem. A refused value is replaced by a
//! harmless one, so that the rest is still checked; [`Checker::finish`] then refuses the whole.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{ConfigError, Layers, Problem};

/// Longest accepted free text in characters.
pub(crate) const TEXT_CHARS_MAX: usize = 2_000;

/// Which numbers pass.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    /// 0..=1.
    Probability,
    /// 0 < x <= limit.
    PositiveTo(f64),
    /// 0 <= x <= limit.
    UpTo(f64),
    /// 0 < x < 1.
    Share,
    /// 0 <= x; what is not finite does not get this far.
    NotNegative,
}

pub(crate) struct Checker<'l> {
    layers: &'l Layers,
    problems: Vec<Problem>,
}

impl<'l> Checker<'l> {
    pub(crate) fn new(layers: &'l Layers) -> Self {
        Self {
            layers,
            problems: Vec::new(),
        }
    }

    pub(crate) fn refuse(&mut self, key: &str, message: impl Into<String>) {
        let problem = self.layers.problem(key, message.into());
        self.problems.push(problem);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn layers(&self) -> &'l Layers {
        self.layers
    }

    /// A block of keys; `null` or nothing counts as an empty block.
    pub(crate) fn block<T: Default>(value: Option<T>) -> T {
        value.unwrap_or_default()
    }

    pub(crate) fn required<T>(&mut self, key: &str, value: Option<T>, what: &str) -> Option<T> {
        if value.is_none() {
            self.refuse(key, format!("missing; give {what}"));
        }
        value
    }

    pub(crate) fn whole(
        &mut self,
        key: &str,
        value: Option<u32>,
        range: RangeInclusive<u32>,
    ) -> u32 {
        let (low, high) = (*range.start(), *range.end());
        match value {
            Some(value) if range.contains(&value) => value,
            Some(value) => {
                self.refuse(key, format!("{value} is not in {low} to {high}"));
                low
            }
            None => {
                self.refuse(
                    key,
                    format!("missing; give a whole number, {low} to {high}"),
                );
                low
            }
        }
    }

    pub(crate) fn number(&mut self, key: &str, value: Option<f64>, rule: Numbers) -> f64 {
        let (passes, words): (fn(f64, f64) -> bool, String) = match rule {
            Numbers::Probability => (|x, _| (0.0..=1.0).contains(&x), "0 to 1".to_owned()),
            Numbers::PositiveTo(high) => (
                |x, high| x > 0.0 && x <= high,
                format!("above 0 and at most {high}"),
            ),
            Numbers::UpTo(high) => (|x, high| (0.0..=high).contains(&x), format!("0 to {high}")),
            Numbers::Share => (|x, _| x > 0.0 && x < 1.0, "above 0 and below 1".to_owned()),
            Numbers::NotNegative => (|x, _| x >= 0.0, "0 or more".to_owned()),
        };
        let high = match rule {
            Numbers::PositiveTo(high) | Numbers::UpTo(high) => high,
            Numbers::Probability | Numbers::Share | Numbers::NotNegative => 1.0,
        };
        match value {
            Some(value) if passes(value, high) => value,
            Some(value) => {
                self.refuse(key, format!("{value} must be {words}"));
                high
            }
            None => {
                self.refuse(key, format!("missing; give a number, {words}"));
                high
            }
        }
    }

    /// A free text: not blank, no control characters, at most [`TEXT_CHARS_MAX`].
    pub(crate) fn text(&mut self, key: &str, value: Option<String>) -> Option<String> {
        let value = value?;
        let plain = !value.chars().any(|c| c.is_control() && c != '\n');
        if value.trim().is_empty() || !plain || value.chars().count() > TEXT_CHARS_MAX {
            self.refuse(
                key,
                format!(
                    "must be a text of 1 to {TEXT_CHARS_MAX} characters without control characters"
                ),
            );
            return None;
        }
        Some(value)
    }

    /// An id or other word, parsed by its own rule.
    pub(crate) fn parse<T>(&mut self, key: &str, value: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        match value.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.refuse(key, format!("{error}"));
                None
            }
        }
    }

    /// As [`Self::parse`], but it must be there.
    pub(crate) fn parse_required<T>(
        &mut self,
        key: &str,
        value: Option<String>,
        what: &str,
    ) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let value = self.required(key, value, what)?;
        self.parse(key, &value)
    }

    /// What another loader made of the file that `key` names; its problems become ours.
    pub(crate) fn loaded<T>(&mut self, key: &str, result: Result<T, ConfigError>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(ConfigError::Invalid(problems)) => self.problems.extend(problems),
            Err(ConfigError::Read { path, source }) => {
                self.refuse(key, format!("cannot read {}: {source}", path.display()));
            }
            Err(error) => self.refuse(key, error.to_string()),
        }
        None
    }

    /// The value if nothing was refused. `value` is absent only after a refusal.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, ConfigError> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(ConfigError::Invalid(self.problems)),
        }
    }
}
