//! Names of groups: which run a group belongs to is in its name.
//!
//! Invariants: only a name that this module takes for one of the run's is ever acted upon. Daemons
//! (`vec-<service>-<run8>`) belong to the launcher, never to a controller, and are not matched.

use crate::ScopeError;

/// Kinds of trees that a controller starts.
const KINDS: [&str; 3] = ["exec", "eng", "score"];
/// Longest name, in bytes (room for a suffix below the kernel's 255).
const MAX: usize = 200;

/// A name is one path component of plain characters that begins with `vec-`.
///
/// # Errors
/// [`ScopeError::Name`].
pub(crate) fn check(name: &str) -> Result<(), ScopeError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.starts_with("vec-") && name.len() <= MAX && name.chars().all(plain) {
        Ok(())
    } else {
        Err(ScopeError::Name {
            name: name.to_owned(),
        })
    }
}

/// It is the name of a tree that a controller of the run started.
#[must_use]
pub fn is_of_run(name: &str, run8: &str) -> bool {
    parts(name).is_some_and(|(_, run)| !run8.is_empty() && run == run8)
}

/// Kind and run of `vec-<kind>-<run8>-<rest>`.
fn parts(name: &str) -> Option<(&str, &str)> {
    let mut parts = name.strip_prefix("vec-")?.splitn(3, '-');
    let (kind, run, rest) = (parts.next()?, parts.next()?, parts.next()?);
    (KINDS.contains(&kind) && !run.is_empty() && !rest.is_empty()).then_some((kind, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_owns_what_its_controller_starts_and_nothing_else() {
        for (name, is) in [
            ("vec-exec-0a1b2c3d-n7-seed0", true),
            ("vec-exec-0a1b2c3d-n7-viewcheck_confirm~2", true),
            ("vec-eng-0a1b2c3d-n7", true),
            ("vec-score-0a1b2c3d-12", true),
            ("vec-controller-0a1b2c3d", false),
            ("vec-exec-0a1b2c3d", false),
            ("vec-exec-0a1b2c3d-", false),
            ("vec-exec-0a1b2c3e-n7-seed0", false),
            ("vec-exec-0a1b2c3d0-n7", false),
            ("vec-exec-n7-0a1b2c3d", false),
            ("xvec-exec-0a1b2c3d-n7", false),
            ("0a1b2c3d", false),
        ] {
            assert_eq!(is_of_run(name, "0a1b2c3d"), is, "{name}");
        }
        assert!(!is_of_run("vec-exec--n7", ""), "no run has no name");
    }

    #[test]
    fn names_are_one_plain_path_component() {
        for good in ["vec-exec-0a1b2c3d-n7-viewcheck_confirm", "vec-score-r-1"] {
            assert!(check(good).is_ok(), "{good}");
        }
        let long = format!("vec-{}", "x".repeat(MAX));
        for bad in [
            "",
            "exec-r-1",
            "vec-a/b",
            "vec-../..",
            "vec-a b",
            "vec-a~2",
            &long,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
