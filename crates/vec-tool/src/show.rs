//! Answers for people (a table) and for programs (one JSON object per call).

use std::io::Write as _;

use serde_json::{Value, json};
use vec_proto::pb::scorer::v1 as pb;

use crate::EXIT_OTHER;
use crate::args::Verb;
use crate::call::Answer;

/// Exit code of an invalid prediction.
const EXIT_INVALID: u8 = 2;

/// Exit code of a used-up quota.
const EXIT_EXHAUSTED: u8 = 3;

const fn exit(answer: &Answer) -> u8 {
    match answer {
        Answer::Scored { .. } | Answer::Valid { .. } => 0,
        Answer::Invalid { .. } => EXIT_INVALID,
        Answer::Exhausted(_) => EXIT_EXHAUSTED,
        Answer::Failed(_) => EXIT_OTHER,
    }
}

/// For people, with the exit code.
pub(crate) fn table(verb: Verb, answer: &Answer) -> (String, u8) {
    let name = verb.name();
    let text = match answer {
        Answer::Scored { report, remaining } => scores(report, *remaining),
        Answer::Valid { remaining } => format!("format ok; queries left: {remaining}\n"),
        Answer::Invalid {
            problem: pb::InvalidFormat { code, detail },
            remaining,
        } => {
            format!(
                "{name}: invalid format: {code}: {detail} (not charged; queries left: {remaining})\n"
            )
        }
        Answer::Exhausted(message) | Answer::Failed(message) => format!("{name}: {message}\n"),
    };
    (text, exit(answer))
}

fn scores(report: &pb::Report, remaining: u32) -> String {
    let mut rows = vec![["ruler", "metric", "raw", "skill", "points", "weight"].map(str::to_owned)];
    for part in &report.parts {
        let pb::Part {
            ruler,
            metric,
            raw,
            skill,
            points,
            weight,
        } = part;
        let number = |value: &f64| format!("{value:.4}");
        let (raw, skill, points) = (number(raw), number(skill), number(points));
        rows.push([
            ruler.clone(),
            metric.clone(),
            raw,
            skill,
            points,
            format!("{weight:.2}"),
        ]);
    }
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Names to the left, numbers to the right.
            let cell = if column < 2 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let total = report.total;
    text.push_str(&format!(
        "total {total:.4} of 100 (50 = baseline); queries left: {remaining}\n"
    ));
    text
}

/// For programs, with the exit code.
pub(crate) fn json(verb: Verb, answer: &Answer) -> (String, u8) {
    let mut value = match answer {
        Answer::Scored { report, remaining } => report_json(report, *remaining),
        Answer::Valid { remaining } => json!({"status": "ok", "remaining": remaining}),
        Answer::Invalid {
            problem: pb::InvalidFormat { code, detail },
            remaining,
        } => json!({
            "status": "invalid_format", "code": code, "detail": detail, "remaining": remaining,
        }),
        Answer::Exhausted(message) => {
            json!({"status": "quota_exhausted", "message": message, "remaining": 0})
        }
        Answer::Failed(message) => json!({"status": "error", "message": message}),
    };
    value["verb"] = verb.name().into();
    (format!("{value}\n"), exit(answer))
}

fn report_json(report: &pb::Report, remaining: u32) -> Value {
    let components: serde_json::Map<String, Value> = report
        .components
        .iter()
        .map(|component| (component.ruler.clone(), component.score.into()))
        .collect();
    let part = |part: &pb::Part| {
        let pb::Part {
            ruler,
            metric,
            raw,
            skill,
            points,
            weight,
        } = part;
        json!({
            "ruler": ruler, "metric": metric, "raw": raw, "skill": skill, "points": points,
            "weight": weight,
        })
    };
    let parts: Vec<Value> = report.parts.iter().map(part).collect();
    json!({
        "status": "scored", "total": report.total, "components": components, "parts": parts,
        "remaining": remaining,
    })
}

/// Prints; 0, or the exit code when nobody reads.
pub(crate) fn out(text: &str) -> u8 {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => 0,
        Err(_) => EXIT_OTHER,
    }
}

/// Prints to stderr; 0, or the exit code when nobody reads.
pub(crate) fn err(text: &str) -> u8 {
    match std::io::stderr().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => EXIT_OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> pb::Report {
        let part = pb::Part {
            ruler: "main".into(),
            metric: "rmse".into(),
            raw: 55.1234,
            skill: 0.5123,
            points: 51.23,
            weight: 1.0,
        };
        let component = pb::Component {
            ruler: "main".into(),
            score: 51.23,
        };
        pb::Report {
            total: 51.23,
            components: vec![component],
            parts: vec![part],
        }
    }

    #[test]
    fn a_score_is_a_table_and_an_object() {
        let answer = Answer::Scored {
            report: report(),
            remaining: 17,
        };
        let expected = "\
ruler  metric      raw   skill   points  weight
main   rmse    55.1234  0.5123  51.2300    1.00
total 51.2300 of 100 (50 = baseline); queries left: 17
";
        assert_eq!(table(Verb::Score, &answer), (expected.to_owned(), 0));
        let (text, code) = json(Verb::Score, &answer);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (code, &value["components"]["main"], &value["remaining"]),
            (0, &json!(51.23), &json!(17))
        );
        assert_eq!(value["parts"][0]["raw"], json!(55.1234));
    }

    #[test]
    fn each_end_has_its_exit_code_and_one_line() {
        let problem = pb::InvalidFormat {
            code: "empty".into(),
            detail: "the file is empty".into(),
        };
        for (answer, code) in [
            (Answer::Valid { remaining: 1 }, 0),
            (
                Answer::Invalid {
                    problem,
                    remaining: 1,
                },
                2,
            ),
            (Answer::Exhausted("quota exhausted".into()), 3),
            (Answer::Failed("no".into()), 1),
        ] {
            for (text, shown) in [table(Verb::Check, &answer), json(Verb::Check, &answer)] {
                assert_eq!((shown, text.lines().count()), (code, 1), "{text}");
            }
        }
    }
}
