//! The key of weights (PVW-02): what a training depends on, and nothing else.

use serde::{Deserialize, Serialize};
use vec_config::CandidateEnvironment;
use vec_types::{Digest, TreeId, canonical_json};

use crate::ExecError;

/// Everything that the weights of one view depend on. The view's name and the program seed are not
/// in it (the latter only where it trains): proxy10 shares the weights of proxy by content
/// (O-PVW-2), promotion and guard seeds replay those of seed 0 (PVW-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyParts {
    /// Tree of the committed solution.
    pub tree: TreeId,
    /// Seed that trains (CTR-02).
    pub train_seed: u32,
    /// Manifest hash of the view (`evalspec.view_content`).
    pub view_content: Digest,
    /// See [`environment_digest`].
    pub environment: Digest,
    /// Arguments beyond the usual ones, such as `--ablate bags` (PVW-09).
    pub extra_args: Vec<String>,
}

impl KeyParts {
    /// sha256 over the canonical JSON of the parts.
    ///
    /// # Errors
    /// [`ExecError::Canonical`] never happens for these types.
    pub fn key(&self) -> Result<Digest, ExecError> {
        let bytes = canonical_json(self).map_err(ExecError::Canonical)?;
        Ok(Digest::of(&bytes))
    }
}

/// The environment by content: Python with its packages, variables, CPU model (EVS-01).
///
/// # Errors
/// [`ExecError::Canonical`] never happens for this type.
pub fn environment_digest(environment: &CandidateEnvironment) -> Result<Digest, ExecError> {
    let bytes = canonical_json(environment).map_err(ExecError::Canonical)?;
    Ok(Digest::of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn parts() -> KeyParts {
        KeyParts {
            tree: "a".repeat(64).parse().expect("tree"),
            train_seed: 0,
            view_content: Digest::of(b"view"),
            environment: Digest::of(b"env"),
            extra_args: Vec::new(),
        }
    }

    #[test]
    fn every_part_changes_the_key() {
        let base = parts().key().expect("key");
        assert_eq!(base, parts().key().expect("key"));
        type Change = fn(&mut KeyParts);
        let changes: [Change; 6] = [
            |p| p.tree = "b".repeat(64).parse().expect("tree"),
            |p| p.train_seed = 1,
            |p| p.view_content = Digest::of(b"other"),
            |p| p.environment = Digest::of(b"other"),
            |p| p.extra_args = vec!["--ablate".to_owned(), "x".to_owned()],
            |p| p.extra_args = vec!["--ablate x".to_owned()],
        ];
        let mut keys = vec![base];
        for change in changes {
            let mut changed = parts();
            change(&mut changed);
            let key = changed.key().expect("key");
            assert!(!keys.contains(&key), "{changed:?}");
            keys.push(key);
        }
    }
}
