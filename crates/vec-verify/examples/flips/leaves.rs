//! Every value of a stored event, what kind of value it is, and the smallest plausible changes.

use std::collections::BTreeSet;

use serde_json::{Number, Value, json};
use vec_types::NodeStatus;

/// What a value is, as far as its place in the event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Score,
    Visit,
    Epoch,
    Draw,
    Digest,
    WallTime,
    Status,
    Boolean,
    Policy,
    Number,
    Text,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Visit => "visit input",
            Self::Epoch => "epoch",
            Self::Draw => "draw",
            Self::Digest => "digest",
            Self::WallTime => "time and memory",
            Self::Status => "status, reason, verdict",
            Self::Boolean => "boolean",
            Self::Policy => "locked rule",
            Self::Number => "other number",
            Self::Text => "text and name",
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) kind: Kind,
}

impl Leaf {
    pub(crate) fn path(&self) -> String {
        self.path.join("/")
    }
}

/// Every leaf of an event but its `kind`, which is not a value. Absent values cannot be changed.
pub(crate) fn leaves(event: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(event, &mut Vec::new(), &mut found);
    let of = event
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    found.retain(|(path, _)| path.as_slice() != ["kind"]);
    let with_kind = found.into_iter().map(|(path, value)| Leaf {
        kind: kind(of, &path, &value),
        path,
        value,
    });
    with_kind.collect()
}

fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Value)>) {
    let mut below = |key: String, value: &Value| {
        path.push(key);
        walk(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| below(index.to_string(), value));
        }
        Value::Null => {}
        leaf => found.push((path.clone(), leaf.clone())),
    }
}

fn kind(event: &str, path: &[String], value: &Value) -> Kind {
    let has = |name: &str| path.iter().any(|key| key == name);
    let last = path.last().map_or("", String::as_str);
    match value {
        _ if has("policy") => Kind::Policy,
        Value::Bool(_) => Kind::Boolean,
        Value::String(text) if text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit()) => {
            Kind::Digest
        }
        Value::String(text) if WORDS.contains(&text.as_str()) || is_status(text) => Kind::Status,
        Value::String(_) => Kind::Text,
        _ if has("standings") || last == "pool" => Kind::Visit,
        _ if last == "epoch" => Kind::Epoch,
        _ if event == "draw" && last != "node" => Kind::Draw,
        _ if has("components") || has("parts") || has("pairs") && last != "seed" => Kind::Score,
        _ if SCORES.contains(&last) => Kind::Score,
        _ if has("wall_ms") || TIMES.contains(&last) => Kind::WallTime,
        _ => Kind::Number,
    }
}

const SCORES: [&str; 5] = ["total", "mean", "sd", "lower_bound", "ranking"];

const TIMES: [&str; 2] = ["harness_ms", "max_rss_kib"];

/// Words of the enums that events hold, but for the statuses.
const WORDS: [&str; 47] = [
    "seed",
    "draft",
    "improve",
    "debug",
    "resume",
    "tune",
    "launching",
    "seeding",
    "search",
    "settling",
    "final",
    "stopped",
    "budget",
    "agent_early_exit",
    "operator",
    "infra",
    "reserve_improve",
    "argmax_u",
    "argmax_u_busy",
    "argmax_u_suspended",
    "debug_target",
    "round_robin",
    "coverage",
    "explore",
    "exploit",
    "plateau",
    "faulty",
    "lost",
    "abandoned",
    "pass",
    "fail",
    "error",
    "review",
    "seeds",
    "deadline",
    "finished",
    "stalled",
    "hand_off",
    "written",
    "placeholder",
    "missing",
    "plan",
    "comply",
    "engineer",
    "analyze",
    "budget_cut",
    "infra_oom",
];

/// Names that are written in a fixed way, where any other text would be refused.
const NAMES: [&str; 4] = ["seed0", "seed1", "seed2", "fresh3"];

fn is_status(text: &str) -> bool {
    NodeStatus::ALL.iter().any(|status| status.as_str() == text)
}

/// Other values for a leaf. Some may not fit the event's type; then they cannot be stored. Of texts
/// one that fits is enough.
pub(crate) fn changes(leaf: &Leaf) -> Vec<Value> {
    match &leaf.value {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => numbers(number),
        Value::String(text) if leaf.kind == Kind::Digest => vec![json!(other_digit(text))],
        Value::String(text) => texts(text),
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// A real number: by 0.0001 and to its neighbour. An integer: by one either way.
fn numbers(number: &Number) -> Vec<Value> {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) if !number.is_f64() => vec![json!(integer + 1), json!(integer - 1)],
        (_, Some(real)) => vec![json!(real + 0.0001), json!(real.next_up())],
        _ => Vec::new(),
    }
}

fn other_digit(text: &str) -> String {
    let digit = if text.starts_with('0') { "1" } else { "0" };
    format!("{digit}{}", &text[1..])
}

/// A word of an enum: every other word. Any other text: longer by a letter, or a name of its kind.
fn texts(text: &str) -> Vec<Value> {
    let statuses = NodeStatus::ALL.iter().map(|status| status.as_str());
    let words = WORDS.iter().copied().chain(statuses);
    if WORDS.contains(&text) || is_status(text) {
        let others: BTreeSet<&str> = words.filter(|word| *word != text).collect();
        return others.into_iter().map(|word| json!(word)).collect();
    }
    let names = NAMES
        .iter()
        .filter(|name| **name != text)
        .map(|name| json!(name));
    std::iter::once(json!(format!("{text}x")))
        .chain(names)
        .collect()
}

/// The event with another value at the leaf's place.
pub(crate) fn put(event: &Value, leaf: &Leaf, value: Value) -> Value {
    let mut changed = event.clone();
    let pointer: String = leaf
        .path
        .iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect();
    if let Some(place) = changed.pointer_mut(&pointer) {
        *place = value;
    }
    changed
}
