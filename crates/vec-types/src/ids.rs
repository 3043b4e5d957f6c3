//! Ids. One newtype per kind, so that a program seed never stands where a scoring seed belongs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::word::is_word;
use crate::{Digest, UnixMs};

/// Longest accepted text of an id. Ids become path components and socket names.
pub(crate) const ID_LEN_MAX: usize = 96;

/// Why a text is not an id of the kind named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind}: {text:?} ({rule})")]
pub struct IdError {
    kind: &'static str,
    text: String,
    rule: &'static str,
}

pub(crate) fn refuse(kind: &'static str, text: &str, rule: &'static str) -> IdError {
    IdError {
        kind,
        text: text.chars().take(ID_LEN_MAX).collect(),
        rule,
    }
}

/// A board such as `T1:val` or `diabetes`. `:` separates the parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoardId(String);

impl BoardId {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// File-name form: `:` becomes `__` (EXT-01, O-RUL-6).
    #[must_use]
    pub fn file_name(&self) -> String {
        self.0.replace(':', "__")
    }

    /// Lower-case slug for run ids: letters and digits only, at most 16.
    #[must_use]
    pub fn slug(&self) -> String {
        self.0
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .take(16)
            .collect()
    }
}

impl fmt::Display for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BoardId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() <= ID_LEN_MAX && text.split(':').all(is_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(refuse("board id", text, "words joined by ':'"))
        }
    }
}

impl TryFrom<String> for BoardId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<BoardId> for String {
    fn from(id: BoardId) -> Self {
        id.0
    }
}

/// A run: `YYYYMMDD-HHMMSS-<board slug>-<4 base32>` (`decisions.md`, Formats).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl RunId {
    /// A fresh id. The caller makes its directory exclusively and retries on collision.
    ///
    /// # Errors
    /// When the operating system's random source fails.
    pub fn generate(board: &BoardId, at: UnixMs) -> Result<Self, getrandom::Error> {
        let mut random = [0; 4];
        getrandom::fill(&mut random)?;
        let suffix: String = random
            .iter()
            .map(|b| char::from(BASE32[usize::from(b & 31)]))
            .collect();
        Ok(Self(format!("{}-{}-{suffix}", at.compact(), board.slug())))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// First 8 hex digits of sha256(run id): the run's name in socket paths, scopes and units.
    #[must_use]
    pub fn run8(&self) -> String {
        Digest::of(self.0.as_bytes()).short(8)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let refused = || refuse("run id", text, "YYYYMMDD-HHMMSS-<board slug>-<4 base32>");
        let digits =
            |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<&str> = text.split('-').collect();
        let [date, time, slug, suffix] = parts[..] else {
            return Err(refused());
        };
        let slug_ok = (1..=16).contains(&slug.len())
            && slug
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let suffix_ok = suffix.len() == 4 && suffix.bytes().all(|b| BASE32.contains(&b));
        if digits(date, 8) && digits(time, 6) && slug_ok && suffix_ok {
            Ok(Self(text.to_owned()))
        } else {
            Err(refused())
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

/// A node of a certain run, `<run>#<node>`: where an imported node is from, and the stable
/// identity of carried-over work (CAR-14, CON-06).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunNode {
    /// Run.
    pub run: RunId,
    /// Node of that run.
    pub node: NodeId,
}

impl fmt::Display for RunNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.run, self.node)
    }
}

impl FromStr for RunNode {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parsed = text.split_once('#').and_then(|(run, node)| {
            Some(Self {
                run: run.parse().ok()?,
                node: node.parse().ok()?,
            })
        });
        parsed
            .filter(|origin| origin.to_string() == text)
            .ok_or_else(|| refuse("node of a run", text, "<run id>#<node>"))
    }
}

impl TryFrom<String> for RunNode {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<RunNode> for String {
    fn from(origin: RunNode) -> Self {
        origin.to_string()
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number_id!(
    /// A node of the search tree, from 0 in order of creation.
    NodeId(u32));
number_id!(
    /// The `--seed` of a program (CTR-02).
    ProgramSeed(u32));
number_id!(
    /// The seed of the scorer's own sampling; equals the program seed in local scoring (CTR-02).
    ScoringSeed(u32));
number_id!(
    /// The seed of the operator draw (O-OPR-1).
    SearchSeed(u32));

/// One execution of a node's program: `seed<k>`, `seed<k>g<n>`, `fresh<k>` or `final` (O-EXE-1).
/// Its text is the directory name below `nodes/<id>/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ExecName {
    /// Search and promotion seeds 0, 1, 2: the first time that a seed is run.
    Seed(ProgramSeed),
    /// A seed run again by a later promotion: in another data epoch (EPO-04), or after an
    /// infrastructure fault (O-PRO-1).
    Again {
        /// Program seed.
        seed: ProgramSeed,
        /// Generation of the promotion (PRO-07).
        generation: u32,
    },
    /// The final guard's fresh seeds.
    Fresh(ProgramSeed),
    /// The run on the final view that makes the answer, with program seed 0.
    Final,
    /// Seed 0 with one mechanism switched off (ABL-01).
    Ablate,
    /// Seed 0 on a view in disguise (VCK-01).
    ViewCheck {
        /// Attempts before this one.
        attempt: u32,
    },
    /// Seed 0 on the view itself, to confirm a difference (VCK-02).
    ViewCheckConfirm {
        /// As that of the check.
        attempt: u32,
    },
    /// Seed 0 once more from a cold start, without weights (PVW-11).
    Repro,
}

impl ExecName {
    /// The `--seed` that the program gets.
    #[must_use]
    pub const fn program_seed(self) -> ProgramSeed {
        match self {
            Self::Seed(seed) | Self::Fresh(seed) | Self::Again { seed, .. } => seed,
            Self::Final
            | Self::Ablate
            | Self::ViewCheck { .. }
            | Self::ViewCheckConfirm { .. }
            | Self::Repro => ProgramSeed(0),
        }
    }

    /// Is its prediction scored? The answer's is placed; checks compare predictions alone.
    #[must_use]
    pub const fn is_scored(self) -> bool {
        match self {
            Self::Seed(_) | Self::Again { .. } | Self::Fresh(_) | Self::Ablate => true,
            Self::Final | Self::ViewCheck { .. } | Self::ViewCheckConfirm { .. } | Self::Repro => {
                false
            }
        }
    }

    /// Does its score count for the ranking score? True for search and promotion seeds.
    #[must_use]
    pub const fn is_ranked(self) -> bool {
        matches!(self, Self::Seed(_) | Self::Again { .. })
    }
}

impl fmt::Display for ExecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => write!(f, "seed{seed}"),
            Self::Again { seed, generation } => write!(f, "seed{seed}g{generation}"),
            Self::Fresh(seed) => write!(f, "fresh{seed}"),
            Self::Final => f.write_str("final"),
            Self::Ablate => f.write_str("ablate"),
            Self::ViewCheck { attempt: 0 } => f.write_str("viewcheck"),
            Self::ViewCheck { attempt } => write!(f, "viewcheckg{attempt}"),
            Self::ViewCheckConfirm { attempt: 0 } => f.write_str("viewcheck_confirm"),
            Self::ViewCheckConfirm { attempt } => write!(f, "viewcheck_confirmg{attempt}"),
            Self::Repro => f.write_str("repro"),
        }
    }
}

impl FromStr for ExecName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = |digits: &str| digits.parse::<u32>().ok();
        let seed = |digits: &str| number(digits).map(ProgramSeed);
        let attempt = |rest: &str| match rest.strip_prefix('g') {
            Some(digits) => number(digits),
            None => rest.is_empty().then_some(0),
        };
        let parsed = if text == "final" {
            Some(Self::Final)
        } else if text == "ablate" {
            Some(Self::Ablate)
        } else if text == "repro" {
            Some(Self::Repro)
        } else if let Some(rest) = text.strip_prefix("viewcheck_confirm") {
            attempt(rest).map(|attempt| Self::ViewCheckConfirm { attempt })
        } else if let Some(rest) = text.strip_prefix("viewcheck") {
            attempt(rest).map(|attempt| Self::ViewCheck { attempt })
        } else if let Some(digits) = text.strip_prefix("seed") {
            match digits.split_once('g') {
                None => seed(digits).map(Self::Seed),
                Some((digits, generation)) => seed(digits)
                    .zip(number(generation))
                    .map(|(seed, generation)| Self::Again { seed, generation }),
            }
        } else if let Some(digits) = text.strip_prefix("fresh") {
            seed(digits).map(Self::Fresh)
        } else {
            None
        };
        parsed
            .filter(|name| name.to_string() == text)
            .ok_or_else(|| {
                refuse(
                    "execution name",
                    text,
                    "seed<k>, seed<k>g<n>, fresh<k>, final, ablate, viewcheck[g<n>], viewcheck_confirm[g<n>] or repro",
                )
            })
    }
}

impl TryFrom<String> for ExecName {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<ExecName> for String {
    fn from(name: ExecName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_round_trip_and_are_checked() {
        let board: BoardId = "T2:heart:val_extrap".parse().expect("board");
        assert_eq!(board.file_name(), "T2__heart__val_extrap");
        assert!("a:..".parse::<BoardId>().is_err());
        let run = RunId::generate(&board, UnixMs(1_796_063_999_000)).expect("random");
        assert_eq!(run.as_str().parse(), Ok(run.clone()));
        assert!(run.as_str().starts_with("20261130-"), "{run}");
        assert_eq!(run.run8().len(), 8);
        for bad in [
            "",
            "../x",
            "20261130-101010-a-b",
            "20261130-101010-a/b-abcd",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn nodes_of_runs_round_trip() {
        let text = "20270115-080000-diabetes-abcd#12";
        let origin: RunNode = text.parse().expect("fits");
        assert_eq!(
            (origin.node, origin.to_string()),
            (NodeId(12), text.to_owned())
        );
        for bad in [
            "#1",
            "20270115-080000-diabetes-abcd",
            "20270115-080000-diabetes-abcd#01",
        ] {
            assert!(bad.parse::<RunNode>().is_err(), "{bad}");
        }
    }

    #[test]
    fn execution_names_round_trip() {
        for name in [
            ExecName::Seed(ProgramSeed(0)),
            ExecName::Fresh(ProgramSeed(17)),
            ExecName::Again {
                seed: ProgramSeed(1),
                generation: 2,
            },
            ExecName::Final,
            ExecName::Ablate,
            ExecName::ViewCheck { attempt: 0 },
            ExecName::ViewCheck { attempt: 2 },
            ExecName::ViewCheckConfirm { attempt: 0 },
            ExecName::ViewCheckConfirm { attempt: 1 },
            ExecName::Repro,
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for bad in [
            "viewcheckg0",
            "viewcheck1",
            "viewcheckg01",
            "viewcheck_",
            "ablate0",
            "seed",
            "seed01",
            "fresh-1",
            "Final",
            "seed+1",
            "seed1g",
            "seedg1",
            "seed1g01",
        ] {
            assert!(bad.parse::<ExecName>().is_err(), "{bad}");
        }
    }
}
