//! Reads a tree into a written form and collects every unknown key and every wrong type, not
//! only the first.

mod access;
mod plain;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::nearest::nearest;
use access::{Entries, Items};
use plain::Mismatch;

/// Wrong types looked for before giving up; each costs one pass.
const MISMATCHES_MAX: usize = 50;

/// Key path and message of each problem.
type Found = Vec<(String, String)>;

#[derive(Default)]
struct Sink {
    // Key path, and the key paths that were possible there.
    unknown: RefCell<BTreeSet<(String, Vec<String>)>>,
    // Every key path that a structure knows, wherever a pass has been.
    known: RefCell<BTreeSet<String>>,
}

/// Reads `tree`, or says everything that keeps it from being read.
pub(super) fn read<T: DeserializeOwned>(mut tree: Value) -> Result<T, Found> {
    let sink = Sink::default();
    let mut mismatches: Found = Vec::new();
    loop {
        let node = Node {
            value: tree.clone(),
            path: Vec::new(),
            sink: &sink,
        };
        match T::deserialize(node) {
            Ok(value) if mismatches.is_empty() && sink.unknown.borrow().is_empty() => {
                return Ok(value);
            }
            Ok(_) => break,
            Err(Mismatch { path, message }) => {
                let path = path.unwrap_or_default();
                let gone = remove(&mut tree, &path);
                mismatches.push((join(&path), message));
                // Not removable = the root itself is wrong: nothing more to find.
                if !gone || mismatches.len() >= MISMATCHES_MAX {
                    break;
                }
            }
        }
    }
    let known = sink.known.into_inner();
    let unknown = sink.unknown.into_inner();
    let mut found: Found = unknown
        .into_iter()
        .map(|(key, siblings)| {
            let message = unknown_message(&key, &siblings, &known);
            (key, message)
        })
        .collect();
    found.extend(mismatches);
    Err(found)
}

/// Keys that files of earlier versions have, and what to do about each.
const REMOVED: [(&str, &str); 1] = [(
    "checks",
    "this key was removed, view checks cannot be switched off any more; delete it. Control runs are \
     switched on by ablation.enabled, the share of nodes that are checked at once is viewcheck.sample",
)];

fn unknown_message(key: &str, siblings: &[String], known: &BTreeSet<String>) -> String {
    if let Some((_, remedy)) = REMOVED.iter().find(|(removed, _)| *removed == key) {
        return (*remedy).to_owned();
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    // The right key in the wrong place first, then the nearest key of this place.
    let word = last(key);
    let moved = known.iter().find(|path| last(path) == word);
    let guess = moved
        .map(String::as_str)
        .or_else(|| nearest(key, siblings.iter().map(String::as_str)));
    match guess {
        Some(guess) => format!("unknown key; nearest known key: {guess}"),
        None => "unknown key".to_owned(),
    }
}

fn join(path: &[String]) -> String {
    if path.is_empty() {
        return "(top)".to_owned();
    }
    path.join(".")
}

// Removes the value at `path`; a list is removed as a whole.
fn remove(tree: &mut Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    let Value::Object(map) = tree else {
        return false;
    };
    let inner_is_map = map.get(first).is_some_and(Value::is_object);
    if rest.is_empty() || !inner_is_map {
        return map.remove(first).is_some();
    }
    map.get_mut(first).is_some_and(|inner| remove(inner, rest))
}

/// A part of the tree and where it is.
struct Node<'s> {
    value: Value,
    path: Vec<String>,
    sink: &'s Sink,
}

impl<'s> Node<'s> {
    fn child(&self, part: &str, value: Value) -> Node<'s> {
        let mut path = self.path.clone();
        path.push(part.to_owned());
        Node {
            value,
            path,
            sink: self.sink,
        }
    }

    fn place(&self, key: &str) -> String {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        join(&path)
    }

    // Errors get the innermost path that is known.
    fn located<T>(path: Vec<String>, result: Result<T, Mismatch>) -> Result<T, Mismatch> {
        result.map_err(|error| Mismatch {
            path: error.path.or(Some(path)),
            message: error.message,
        })
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let path = self.path.clone();
        let result = match self.value {
            Value::Array(items) => visitor.visit_seq(Items::new(items, self.path, self.sink)),
            Value::Object(map) => visitor.visit_map(Entries::new(map, self.path, self.sink)),
            // Not serde_json's own: its errors would speak of u32 and f64.
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(text) => visitor.visit_string(text),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => visitor.visit_u64(value),
                (None, Some(value), _) => visitor.visit_i64(value),
                (None, None, value) => visitor.visit_f64(value.unwrap_or(f64::NAN)),
            },
        };
        Self::located(path, result)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let result = match self.value {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            value => Err(Mismatch::custom(format_args!(
                "expected one of {}, found {}",
                variants.join(", "),
                plain::found(&value)
            ))),
        };
        Self::located(self.path, result)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if self.value.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let path = self.path.clone();
        Self::located(path, visitor.visit_newtype_struct(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let known: Vec<String> = fields.iter().map(|field| self.place(field)).collect();
        self.sink.known.borrow_mut().extend(known.iter().cloned());
        let Node { value, path, sink } = self;
        let Value::Object(map) = value else {
            let message = format!(
                "expected a map with keys such as {}, found {}",
                fields
                    .iter()
                    .take(3)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", "),
                plain::found(&value)
            );
            return Err(Mismatch {
                path: Some(path),
                message,
            });
        };
        let (mine, others): (Vec<_>, Vec<_>) = map
            .into_iter()
            .partition(|(key, _)| fields.contains(&key.as_str()));
        for (key, _) in others {
            let mut place = path.clone();
            place.push(key);
            sink.unknown
                .borrow_mut()
                .insert((join(&place), known.clone()));
        }
        let entries = Entries::new(mine.into_iter().collect(), path.clone(), sink);
        Node::located(path, visitor.visit_map(entries))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}
