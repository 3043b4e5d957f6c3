//! METHOD.md: the harness's placeholder, and what became of it (MTH).

use std::fmt::Write as _;

use vec_search::MethodState;
use vec_types::Plan;

/// How a placeholder's first line begins; detection looks for nothing else (O-MTH-2).
pub const AUTO_PREFIX: &str = "[auto:";
/// How METHOD begins where a session says that nothing was worth changing (MTH-07).
pub const NO_CHANGE_PREFIX: &str = "NO_CHANGE:";

/// METHOD.md as the harness writes it before the session (MTH-01).
#[must_use]
pub fn method_placeholder(plan: &Plan) -> String {
    let name = plan.name.replace(['\r', '\n'], " ");
    let mut text = format!("{AUTO_PREFIX} Engineer 未完成] {name}\n\n");
    if let Some(family) = &plan.family_id {
        let _ = writeln!(text, "family_id: {family}");
    }
    if let Some(mechanism) = &plan.mechanism {
        let _ = writeln!(text, "mechanism: {mechanism}");
    }
    let _ = writeln!(text, "approach: {}", plan.approach);
    if let Some(ablate) = &plan.ablate {
        let _ = writeln!(text, "mechanism-off control: `--ablate {ablate}`");
    }
    text
}

/// The first line that holds anything.
#[must_use]
pub fn first_line(method: &str) -> Option<&str> {
    method
        .trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
}

/// Does METHOD say that the session found nothing worth changing?
#[must_use]
pub fn is_no_change(first_line: &str) -> bool {
    first_line.starts_with(NO_CHANGE_PREFIX)
}

/// What METHOD.md is at the end of a session; `None` = the file is not there.
#[must_use]
pub fn method_state(method: Option<&str>) -> MethodState {
    match method.and_then(first_line) {
        None => MethodState::Missing,
        Some(line) if line.starts_with(AUTO_PREFIX) => MethodState::Placeholder,
        Some(line) => MethodState::Written {
            first_line: line.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            name: "ridge\nwith squares".into(),
            motivation: "m".into(),
            approach: "Expand the inputs.".into(),
            expected_groups: vec![],
            risks: vec![],
            family_id: Some("linear".parse().expect("id")),
            mechanism: Some("squares".into()),
            ablate: Some("squares".into()),
        }
    }

    #[test]
    fn the_placeholder_has_its_literal_first_line_and_is_recognised() {
        let text = method_placeholder(&plan());
        assert_eq!(
            text.lines().next(),
            Some("[auto: Engineer 未完成] ridge with squares")
        );
        assert!(text.contains("family_id: linear\nmechanism: squares\napproach: Expand"));
        assert!(text.contains("`--ablate squares`"));
        assert_eq!(method_state(Some(&text)), MethodState::Placeholder);
    }

    #[test]
    fn states() {
        assert_eq!(method_state(None), MethodState::Missing);
        assert_eq!(method_state(Some("\u{feff} \n\t\n")), MethodState::Missing);
        assert_eq!(
            method_state(Some("[auto: whatever")),
            MethodState::Placeholder
        );
        let written = method_state(Some("\n  NO_CHANGE: no gain in 4 trials \nmore"));
        let MethodState::Written { first_line } = written else {
            panic!("{written:?}");
        };
        assert!(is_no_change(&first_line), "{first_line}");
        assert!(!is_no_change("We tried NO_CHANGE: first"));
    }
}
