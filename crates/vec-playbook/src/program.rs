//! Programs out of templates: header, parameters, and the fault that a card asks for.

use std::collections::BTreeMap;

use crate::deal::OutcomeCard;
use crate::parameters::{ParameterValue, Settings};
use crate::{Family, escape};

/// Where the board's shared code goes.
pub(crate) const PRELUDE: &str = "{{prelude}}";
/// The line, with its indentation, that a fault replaces; a variable `predictions` is in scope.
const FAULT: &str = "{{fault}}";
const HEADER_FAMILY: &str = "# family: ";
const HEADER_PARAMS: &str = "# params: ";

/// Does a template name exactly `parameters` and have one place for faults?
pub(crate) fn check_template<'a>(
    template: &str,
    parameters: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let mut rest = template.replacen(FAULT, "", 1);
    if rest.len() == template.len() {
        return Err(format!("the template has no line {FAULT}"));
    }
    for name in parameters {
        let place = format!("{{{{{name}}}}}");
        if !rest.contains(&place) {
            return Err(format!("the template does not use parameter {place}"));
        }
        rest = rest.replace(&place, "");
    }
    match rest.find("{{") {
        None => Ok(()),
        Some(at) => {
            let name: String = rest[at..].chars().take(30).collect();
            Err(format!("the template uses {name:?}, which is no parameter"))
        }
    }
}

/// The program: `card` decides whether it is sound.
#[must_use]
pub fn render(family: &Family, settings: &Settings, card: OutcomeCard) -> String {
    let params = serde_json::to_string(&settings.values).unwrap_or_default();
    let mut text = format!(
        "#!/usr/bin/env python3\n{HEADER_FAMILY}{}\n{HEADER_PARAMS}{params}\n",
        settings.family
    );
    let fault = fault_lines(card);
    for line in family.template.lines() {
        match line.strip_suffix(FAULT) {
            Some(indent) => {
                for fault in &fault {
                    text.push_str(indent);
                    text.push_str(fault);
                    text.push('\n');
                }
            }
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    for (name, value) in &settings.values {
        text = text.replace(&format!("{{{{{name}}}}}"), &value.literal());
    }
    text
}

fn fault_lines(card: OutcomeCard) -> Vec<&'static str> {
    match card {
        OutcomeCard::Crash => {
            vec!["raise ArithmeticError(\"the system of equations has no solution\")"]
        }
        OutcomeCard::Timeout => vec!["while True:", "    predictions = list(predictions)"],
        OutcomeCard::Nan => vec!["predictions = [float(\"nan\") for _ in predictions]"],
        OutcomeCard::Escape => escape::PROGRAM_LINES.to_vec(),
        OutcomeCard::Normal
        | OutcomeCard::NoChange
        | OutcomeCard::MissingMethod
        | OutcomeCard::AutoMethod
        | OutcomeCard::PlanInvalid => Vec::new(),
    }
}

/// Family word and values of a program that [`render`] wrote.
pub(crate) fn read_header(run_py: &str) -> Option<(String, BTreeMap<String, ParameterValue>)> {
    let mut lines = run_py.lines().skip(1);
    let family = lines.next()?.strip_prefix(HEADER_FAMILY)?;
    let params = lines.next()?.strip_prefix(HEADER_PARAMS)?;
    Some((family.to_owned(), serde_json::from_str(params).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Family {
        Family {
            template: "A = {{a}}\ndef main():\n    predictions = [A]\n    {{fault}}\n    print(predictions)\n".into(),
            per_view: vec![],
            summary: String::new(),
            mechanism: String::new(),
            ablate: "x".into(),
            motivation: String::new(),
            approach: String::new(),
            ideas: vec![],
            parameters: BTreeMap::new(),
        }
    }

    #[test]
    fn programs_carry_their_settings_and_faults() {
        let settings = Settings {
            family: "linear".parse().expect("id"),
            values: [("a".to_owned(), ParameterValue::Real(0.5))].into(),
        };
        let normal = render(&family(), &settings, OutcomeCard::Normal);
        assert_eq!(
            normal,
            "#!/usr/bin/env python3\n# family: linear\n# params: {\"a\":0.5}\nA = 0.5\ndef main():\n    predictions = [A]\n    print(predictions)\n"
        );
        let (word, values) = read_header(&normal).expect("reads back");
        assert_eq!((word.as_str(), values), ("linear", settings.values.clone()));
        for (card, sign) in [
            (OutcomeCard::Crash, "\n    raise "),
            (
                OutcomeCard::Timeout,
                "\n    while True:\n        predictions",
            ),
            (OutcomeCard::Nan, "\n    predictions = [float(\"nan\")"),
            (OutcomeCard::Escape, "/etc/shadow"),
        ] {
            let text = render(&family(), &settings, card);
            assert!(text.contains(sign), "{text}");
            assert!(!text.contains("{{"), "{text}");
        }
        assert_eq!(read_header("print(1)\n"), None);
    }

    #[test]
    fn templates_must_fit_their_parameters() {
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let check = |text: &str, list: &[&str]| check_template(text, names(list).iter());
        assert_eq!(check("{{a}}\n{{fault}}\n", &["a"]), Ok(()));
        for (text, list, why) in [
            ("{{a}}", &["a"][..], "no line {{fault}}"),
            ("{{fault}}", &["a"], "does not use parameter {{a}}"),
            ("{{a}} {{b}} {{fault}}", &["a"], "{{b}}"),
            ("{{fault}} {{fault}}", &[], "{{fault}}"),
        ] {
            let problem = check(text, list).expect_err(text);
            assert!(problem.contains(why), "{problem}");
        }
    }
}
