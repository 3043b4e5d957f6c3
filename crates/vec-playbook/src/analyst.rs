//! The scripted Analyst: says what the numbers say.

use serde_json::json;

use crate::context::Context;

pub(crate) fn reply(context: &Context) -> String {
    let (status, name, gain) = match &context.outcome {
        Some(outcome) => (outcome.status.as_str(), outcome.name.as_str(), outcome.gain),
        None => ("unknown", "", None),
    };
    let why = match (status, gain) {
        ("scored", Some(gain)) if gain > 0.0 => {
            format!("The score rose by {gain:.4} against the parent.")
        }
        ("scored", Some(gain)) => {
            format!("The score did not rise ({gain:+.4} against the parent).")
        }
        ("scored", None) => "There is no parent's score to compare with.".to_owned(),
        ("crash" | "timeout" | "invalid_format" | "oom" | "hung", _) => {
            "The fault lies in the realisation; the idea was not tested.".to_owned()
        }
        _ => "No result was produced.".to_owned(),
    };
    let refuted = matches!((status, gain), ("scored", Some(gain)) if gain < 0.0).then_some(name);
    let reply = json!({
        "summary": format!("{name} ended as {status}. {why}"),
        "what_changed": name,
        "why": why,
        "evidence": "the delta table of this node",
        "next_ideas": ["vary one parameter at a time"],
        "family_id": context.family,
        "refuted": refuted,
    });
    format!("```json\n{reply:#}\n```\n")
}
