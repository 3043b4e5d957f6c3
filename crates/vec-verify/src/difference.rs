//! What is different between the decision that follows and the one that is stored, in one line.

use serde_json::Value;
use vec_search::{Event, RunState};
use vec_types::{NodeId, canonical_json};

use crate::replay::KnownEvent;

/// Longest value that is shown, in characters: texts of models have no end.
const VALUE_CHARS_MAX: usize = 160;

/// The field that only says that something which the decision saw was another.
const DIGEST: &str = "inputs_digest";

/// One difference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// JSON path inside the event; absent when the events have nothing to compare.
    pub path: Option<String>,
    pub expected: String,
    pub found: String,
}

impl Difference {
    pub(crate) fn words(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            path: None,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// Kind and node of an event.
pub(crate) fn name(event: &Event) -> String {
    let kind = event.kind();
    event
        .node()
        .map_or_else(|| kind.clone(), |node| format!("{kind} of node {node}"))
}

/// The first difference between what follows from `state` and what is stored in its place.
pub(crate) fn between(
    state: &RunState,
    due: Option<&Event>,
    stored: Option<&KnownEvent>,
) -> Option<Difference> {
    match (due, stored) {
        (None, None) => None,
        (Some(due), None) => Some(Difference::words(
            name(due),
            "no such event: the batch ends before it",
        )),
        (None, Some(stored)) => Some(Difference::words(
            "no further decision in this batch",
            name(&stored.event),
        )),
        (Some(due), Some(stored)) if text(due) == stored.row.json => None,
        (Some(due), Some(stored)) => Some(of_events(state, due, stored)),
    }
}

fn of_events(state: &RunState, due: &Event, stored: &KnownEvent) -> Difference {
    if due.kind() != stored.event.kind() {
        return Difference::words(name(due), name(&stored.event));
    }
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (expected, found) = (value(&text(due)), value(&stored.row.json));
    match first(&expected, &found, "") {
        Some(difference) if difference.path.as_deref() == Some(DIGEST) => Difference {
            found: format!("{}: {}", difference.found, seen(state, due)),
            ..difference
        },
        Some(difference) => difference,
        None => Difference::words("canonical JSON", "the same values in another notation"),
    }
}

/// Which stored facts a digest is over, as far as the decision's kind says.
fn seen(state: &RunState, due: &Event) -> String {
    let nodes = match due {
        Event::NodeSettled { node, .. } => {
            let parent = state.node(*node).and_then(|view| view.parent);
            let parent = parent.map(|parent| format!(" or of its parent, node {parent},"));
            format!(" of node {node}{}", parent.unwrap_or_default())
        }
        Event::PromotionDone { node, .. } | Event::PromotionFailed { node, .. } => {
            format!(" of node {node}")
        }
        Event::GuardResult { candidate, .. } => {
            format!(" of {}", sides(state, *candidate))
        }
        _ => String::new(),
    };
    format!(
        "a score, visit, status or epoch{nodes} that this decision saw is not the one stored before it"
    )
}

fn sides(state: &RunState, candidate: NodeId) -> String {
    match state.baseline() {
        Some(baseline) => {
            format!("the candidate, node {candidate}, or the baseline, node {baseline},")
        }
        None => format!("node {candidate}"),
    }
}

/// The first difference in order of keys, a digest of inputs last: it follows from the others.
fn first(expected: &Value, found: &Value, path: &str) -> Option<Difference> {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}/{key}"),
    };
    match (expected, found) {
        (Value::Object(due), Value::Object(stored)) => {
            let mut keys: Vec<&String> = due.keys().chain(stored.keys()).collect();
            keys.sort_by_key(|key| (*key == DIGEST, *key));
            keys.dedup();
            let mut keys = keys.into_iter();
            keys.find_map(|key| one(due.get(key), stored.get(key), &below(key)))
        }
        (Value::Array(due), Value::Array(stored)) => {
            let mut indices = 0..due.len().max(stored.len());
            indices.find_map(|at| one(due.get(at), stored.get(at), &below(&at.to_string())))
        }
        _ => one(Some(expected), Some(found), path),
    }
}

fn one(expected: Option<&Value>, found: Option<&Value>, path: &str) -> Option<Difference> {
    match (expected, found) {
        (Some(Value::Object(_)), Some(Value::Object(_)))
        | (Some(Value::Array(_)), Some(Value::Array(_))) => expected
            .zip(found)
            .and_then(|(due, stored)| first(due, stored, path)),
        _ if expected == found => None,
        _ => Some(Difference {
            path: Some(path.to_owned()),
            expected: shown(expected),
            found: shown(found),
        }),
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn text(event: &Event) -> String {
    canonical_json(event).map_or_else(
        |error| error.to_string(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn difference(expected: &Value, found: &Value) -> (String, String, String) {
        let found = first(expected, found, "").expect("different");
        let path = found.path.expect("a path");
        (path, found.expected, found.found)
    }

    #[test]
    fn the_first_difference_is_named_by_its_path_and_digests_come_last() {
        let words = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        for (expected, found, named) in [
            (
                json!({"inputs_digest": "a", "standings": [[1, 0.5], [2, 0.25]]}),
                json!({"inputs_digest": "b", "standings": [[1, 0.5], [2, 0.3]]}),
                words("standings/1/1", "0.25", "0.3"),
            ),
            (
                json!({"inputs_digest": "a", "u": 1}),
                json!({"inputs_digest": "b", "u": 1}),
                words("inputs_digest", "\"a\"", "\"b\""),
            ),
            (
                json!({"a": [1]}),
                json!({"a": [1, 2]}),
                words("a/1", "nothing", "2"),
            ),
            (
                json!({"a": 1, "b": 2}),
                json!({"a": 1}),
                words("b", "2", "nothing"),
            ),
            (
                json!({"a": {"b": 1}}),
                json!({"a": 1}),
                words("a", "{\"b\":1}", "1"),
            ),
        ] {
            assert_eq!(difference(&expected, &found), named);
        }
        assert_eq!(first(&json!({"a": [1]}), &json!({"a": [1]}), ""), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let (_, expected, _) = difference(&json!({"a": "ä".repeat(500)}), &json!({"a": ""}));
        assert_eq!(expected.chars().count(), VALUE_CHARS_MAX + 1);
    }
}
