//! The Researcher's reply (RES-06, O-RES-1).

use vec_types::{FamilyId, Plan};

use crate::json_reply::{ReplyError, find_object};

/// Why a reply is no plan; its Display goes back to the model once (RES-07).
pub type PlanError = ReplyError;

/// Longest plan name in characters: it heads METHOD.md and tables.
const NAME_CHARS_MAX: usize = 200;
/// Keys of a plan; others are dropped.
const KEYS: [&str; 8] = [
    "name",
    "motivation",
    "approach",
    "expected_groups",
    "risks",
    "family_id",
    "mechanism",
    "ablate",
];

/// The plan in `reply`. `families` is the board's idea library.
///
/// # Errors
/// [`PlanError`], one variant per way in which a reply can be damaged.
pub fn parse_plan(reply: &str, families: &[FamilyId]) -> Result<Plan, PlanError> {
    let object = find_object(reply, &KEYS)?;
    let (chars, len) = (Plan::TEXT_CHARS_MAX, Plan::LIST_LEN_MAX);
    let name = object.needed("name", NAME_CHARS_MAX)?;
    let ablate = object.text("ablate", NAME_CHARS_MAX)?;
    Ok(Plan {
        name: name.split_whitespace().collect::<Vec<_>>().join(" "),
        motivation: object.needed("motivation", chars)?,
        approach: object.needed("approach", chars)?,
        expected_groups: object.list("expected_groups", len, chars)?,
        risks: object.list("risks", len, chars)?,
        family_id: object.family(families)?,
        mechanism: object
            .text("mechanism", chars)?
            .filter(|text| !text.trim().is_empty()),
        ablate: ablate_name(ablate)?,
    })
}

/// `--ablate` takes one word (ABL-03): it becomes an argument of the program.
fn ablate_name(text: Option<String>) -> Result<Option<String>, PlanError> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let word = text.trim();
    let fits = word.len() <= 64
        && !word.starts_with('-')
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if fits {
        Ok(Some(word.to_owned()))
    } else {
        Err(PlanError::WrongType {
            key: "ablate",
            expected: "one word of letters, digits, `_` and `-`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn families() -> Vec<FamilyId> {
        vec!["linear".parse().expect("id"), "trees".parse().expect("id")]
    }

    fn good() -> serde_json::Value {
        json!({
            "name": "ridge with squares", "motivation": "curvature", "approach": "Add squares.",
            "expected_groups": ["main"], "risks": ["overfitting"], "family_id": "linear",
            "mechanism": "squares", "ablate": "squares",
        })
    }

    fn parse(reply: &str) -> Result<Plan, PlanError> {
        parse_plan(reply, &families())
    }

    #[test]
    fn good_replies_in_every_wrapping() {
        let json = good().to_string();
        let pretty = serde_json::to_string_pretty(&good()).expect("encodes");
        let plan = parse(&json).expect("plain");
        assert_eq!(plan.ablate.as_deref(), Some("squares"));
        for reply in [
            format!("Here it is:\n```json\n{pretty}\n```\nGood luck!"),
            format!("````\n```\n{json}\n```\n````"),
            format!("The set {{a, b}} and {{}} matter.\n{json}"),
            format!("{json}\n{json}"),
            format!("\u{feff}{json}"),
            format!("{{\"thought\": \"first\"}} {json}"),
        ] {
            assert_eq!(parse(&reply), Ok(plan.clone()), "{reply}");
        }
        let mut extra = good();
        extra["_compliance"] = json!("dropped");
        extra["data_requests"] = json!([{"accession": "x"}]);
        extra["ablate"] = json!(null);
        extra["name"] = json!(" ridge\n with  squares");
        let parsed = parse(&extra.to_string()).expect("unknown keys are dropped");
        assert_eq!(
            parsed,
            Plan {
                ablate: None,
                ..plan
            }
        );
    }

    #[test]
    fn damaged_replies_are_typed() {
        let json = good().to_string();
        let mut other = good();
        other["name"] = json!("another");
        let with = |key: &str, value: serde_json::Value| {
            let mut plan = good();
            plan[key] = value;
            plan.to_string()
        };
        let without = |key: &str| {
            let mut plan = good();
            plan.as_object_mut().expect("object").remove(key);
            plan.to_string()
        };
        let long = "x".repeat(Plan::TEXT_CHARS_MAX + 1);
        let many = vec!["r"; Plan::LIST_LEN_MAX + 1];
        let cases: Vec<(String, &str)> = vec![
            (String::new(), "empty"),
            ("  \n".into(), "empty"),
            ("I could not decide.".into(), "no JSON object"),
            ("<html><body>502</body></html>".into(), "no JSON object"),
            ("[1, 2]".into(), "no JSON object"),
            ("{\"thought\": 1}".into(), "no JSON object"),
            (json[..json.len() / 2].into(), "cut off"),
            (format!("```json\n{}", &json[..json.len() - 1]), "cut off"),
            (format!("{json}\n{other}"), "2 different"),
            (json.replacen(':', "", 1), "does not parse"),
            (json.replace('"', "'"), "does not parse"),
            (json.replacen("curvature", "\\ud800", 1), "does not parse"),
            (json.replacen("\"risks\"", "\"name\"", 1), "appears twice"),
            (with("motivation", json!("a\u{0}b")), "control characters"),
            (
                with("motivation", json!(7)),
                "`motivation` must be a string",
            ),
            (
                with("approach", json!("  ")),
                "`approach` must not be empty",
            ),
            (with("approach", json!(long)), "4001 characters"),
            (with("name", json!("n".repeat(201))), "201 characters"),
            (with("risks", json!(many)), "17 entries"),
            (with("risks", json!("one")), "a list of strings"),
            (with("risks", json!([1])), "a list of strings"),
            (
                with("family_id", json!("forest")),
                "known are `linear`, `trees`",
            ),
            (with("family_id", json!("../x")), "known are"),
            (with("ablate", json!("a b")), "one word"),
            (with("ablate", json!("--seed")), "one word"),
            (without("name"), "`name` is missing"),
            (without("motivation"), "`motivation` is missing"),
            (without("approach"), "`approach` is missing"),
            (
                "x".repeat(super::super::json_reply::REPLY_BYTES_MAX + 1),
                "are read",
            ),
        ];
        for (reply, expected) in cases {
            let error = parse(&reply).expect_err(&reply);
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_a_crash() {
        let reply = format!("{{\"name\": {}", "[".repeat(200_000));
        assert!(matches!(parse(&reply), Err(PlanError::Malformed(_))));
        let many = "{".repeat(100_000);
        assert_eq!(parse(&many), Err(PlanError::NoObject));
    }

    #[test]
    fn other_is_a_family() {
        let mut plan = good();
        plan["family_id"] = json!("other");
        let plan = parse(&plan.to_string()).expect("parses");
        assert_eq!(plan.family_id.expect("set").as_str(), "other");
    }
}
