//! Names of groups: which run a group belongs to is in its name.
//!
//! Invariants: a name is one path component, so that a supervisor may use it for one.

use crate::ScopeError;

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

#[cfg(test)]
mod tests {
    use super::*;

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
