//! Anchors and their keys `<half>:s<scoring seed>[:d<draw>]` (O-EVS-1): parsed, never matched by
//! prefix.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use vec_types::ScoringSeed;

/// Which truth an anchor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnchorHalf {
    /// What agents may query.
    A,
    /// What selection uses.
    B,
    /// Both halves.
    Whole,
}

/// One anchor's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AnchorKey {
    /// Half.
    pub half: AnchorHalf,
    /// Scoring seed.
    pub seed: ScoringSeed,
    /// Draw within the seed, where a ruler averages draws.
    pub draw: Option<u32>,
}

/// What 50 and 100 points mean on one row set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// Metric of the floor prediction (skill 0.5).
    pub floor: f64,
    /// Metric of a perfect prediction (skill 1).
    pub ceiling: f64,
    /// Rows scored.
    pub rows: u32,
}

/// Why a text is not an anchor key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an anchor key `<A|B|W>:s<seed>[:d<draw>]`: {0:?}")]
pub struct AnchorKeyError(String);

impl fmt::Display for AnchorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = match self.half {
            AnchorHalf::A => 'A',
            AnchorHalf::B => 'B',
            AnchorHalf::Whole => 'W',
        };
        write!(f, "{half}:s{}", self.seed)?;
        match self.draw {
            Some(draw) => write!(f, ":d{draw}"),
            None => Ok(()),
        }
    }
}

impl FromStr for AnchorKey {
    type Err = AnchorKeyError;

    fn from_str(text: &str) -> Result<Self, AnchorKeyError> {
        let parse = || {
            let mut fields = text.split(':');
            let half = match fields.next()? {
                "A" => AnchorHalf::A,
                "B" => AnchorHalf::B,
                "W" => AnchorHalf::Whole,
                _ => return None,
            };
            let seed = fields.next()?.strip_prefix('s')?.parse().ok()?;
            let draw = match fields.next() {
                Some(field) => Some(field.strip_prefix('d')?.parse().ok()?),
                None => None,
            };
            let key = Self {
                half,
                seed: ScoringSeed(seed),
                draw,
            };
            // One text per key: no `s+3`, no `s03`, no fourth field.
            (key.to_string() == text).then_some(key)
        };
        parse().ok_or_else(|| AnchorKeyError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for AnchorKey {
    type Error = AnchorKeyError;

    fn try_from(text: String) -> Result<Self, AnchorKeyError> {
        text.parse()
    }
}

impl From<AnchorKey> for String {
    fn from(key: AnchorKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_have_one_text() {
        for text in ["A:s0", "B:s3", "B:s3:d0", "W:s17:d4"] {
            let key: AnchorKey = text.parse().expect("key");
            assert_eq!(key.to_string(), text);
        }
        for bad in [
            "",
            "B",
            "B:3",
            "B:s",
            "B:s03",
            "B:s3:0",
            "B:s3:d",
            "C:s3",
            "B:s3:d0:x",
            "b:s3",
        ] {
            assert!(bad.parse::<AnchorKey>().is_err(), "{bad}");
        }
    }
}
