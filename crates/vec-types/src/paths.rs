//! Paths inside a run directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest accepted relative path in bytes.
const PATH_LEN_MAX: usize = 512;

/// Why a text is not a relative path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a path below a run directory: {0:?} (relative, no '.', '..', empty or control parts)")]
pub struct PathError(String);

/// A path below a run directory: relative, `/`-separated, no `.` or `..`, no control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

impl RelPath {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path below `root`.
    #[must_use]
    pub fn under(&self, root: &Path) -> PathBuf {
        root.join(&self.0)
    }

    /// First component.
    #[must_use]
    pub fn top(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RelPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let part_ok =
            |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
        if text.len() <= PATH_LEN_MAX && text.split('/').all(part_ok) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PathError(text.chars().take(PATH_LEN_MAX).collect()))
        }
    }
}

impl TryFrom<String> for RelPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_root_pass() {
        for good in ["a", "nodes/3/PLAN.json", "a/..b"] {
            assert!(good.parse::<RelPath>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a//b",
            "a/./b",
            "a/..",
            "a\nb",
            &"x".repeat(513),
        ] {
            assert!(bad.parse::<RelPath>().is_err(), "{bad}");
        }
    }
}
