//! The word behind `--ablate` (ABL-03) and the reply of a program that does not know it (ABL-04).

use vec_sandbox::PayloadExit;
use vec_types::Plan;

/// What is switched off where a plan names nothing usable.
pub const DEFAULT_MECHANISM: &str = "mechanism";
/// What a program prints about an argument that it does not take.
pub const UNSUPPORTED: &str = "unrecognized arguments";
/// Longest accepted name; a longer word is a sentence.
const NAME_CHARS_MAX: usize = 64;

/// The name given to `--ablate`: the plan's `ablate`, else its `mechanism` (the documents'
/// `mechanism_off_control`) if that is an identifier, else the first back-quoted identifier in it,
/// else `mechanism`. A word that is no identifier counts as absent: it becomes an argument of a
/// program, and `--x` or `a b` would be read as something else.
#[must_use]
pub fn ablate_name(plan: &Plan) -> String {
    let named = plan.ablate.as_deref().map(str::trim);
    let control = plan.mechanism.as_deref().map(str::trim).unwrap_or_default();
    let quoted = control.split('`').skip(1).step_by(2).map(str::trim);
    named
        .into_iter()
        .chain([control])
        .chain(quoted)
        .find(|word| is_identifier(word))
        .unwrap_or(DEFAULT_MECHANISM)
        .to_owned()
}

/// A letter or `_`, then letters, digits, `_` and `-`; ASCII, at most 64.
fn is_identifier(word: &str) -> bool {
    let mut bytes = word.bytes();
    let begins = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    begins
        && word.len() <= NAME_CHARS_MAX
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Did the program refuse the argument, rather than fail with the mechanism off? Then the control
/// says nothing: `unclear`.
#[must_use]
pub fn is_unsupported(exit: PayloadExit, stderr: &[u8]) -> bool {
    let refused = matches!(exit, PayloadExit::Code(code) if code != 0);
    refused && String::from_utf8_lossy(stderr).contains(UNSUPPORTED)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(ablate: Option<&str>, mechanism: Option<&str>) -> Plan {
        Plan {
            name: "n".to_owned(),
            motivation: String::new(),
            approach: String::new(),
            expected_groups: Vec::new(),
            risks: Vec::new(),
            family_id: None,
            mechanism: mechanism.map(str::to_owned),
            ablate: ablate.map(str::to_owned),
        }
    }

    #[test]
    fn names_resolve_in_order() {
        for (ablate, mechanism, name) in [
            (Some("bags"), Some("other"), "bags"),
            (Some(" bags "), None, "bags"),
            (None, Some("stage_wise"), "stage_wise"),
            (None, Some(" stage-wise "), "stage-wise"),
            (None, Some("turn off `smooth` and `x`"), "smooth"),
            (None, Some("call `f(x)` then `mix_in`"), "mix_in"),
            (None, Some("an `unclosed"), "unclosed"),
            (None, Some("turn the smoothing off"), "mechanism"),
            (None, Some("``"), "mechanism"),
            (None, Some("2nd"), "mechanism"),
            (None, None, "mechanism"),
            (Some("--seed"), Some("`k`"), "k"),
            (Some("a b"), None, "mechanism"),
            (Some(""), Some("w"), "w"),
        ] {
            assert_eq!(
                ablate_name(&plan(ablate, mechanism)),
                name,
                "{ablate:?} {mechanism:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_a_plan_says_is_one_harmless_argument(
            ablate in proptest::option::of(".{0,80}"),
            mechanism in proptest::option::of(".{0,80}"),
        ) {
            let name = ablate_name(&plan(ablate.as_deref(), mechanism.as_deref()));
            prop_assert!(is_identifier(&name), "{name:?}");
        }
    }

    #[test]
    fn only_a_refusal_of_the_argument_is_one() {
        let said = b"usage: run.py\nrun.py: error: unrecognized arguments: --ablate x\n";
        assert!(is_unsupported(PayloadExit::Code(2), said));
        assert!(is_unsupported(PayloadExit::Code(1), said));
        assert!(!is_unsupported(PayloadExit::Code(0), said));
        assert!(!is_unsupported(PayloadExit::Signal(9), said));
        assert!(!is_unsupported(PayloadExit::Code(2), b"ValueError"));
    }
}
