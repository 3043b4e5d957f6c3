//! Finding the one JSON object in a model's reply.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::Value;

/// Longest reply that is looked at, in bytes.
pub(crate) const REPLY_BYTES_MAX: usize = 256 << 10;

/// Why a reply holds no usable JSON object. The texts go back to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Nothing at all.
    #[error("the reply is empty")]
    Empty,
    /// Longer than the harness reads.
    #[error("the reply has {bytes} bytes; at most {REPLY_BYTES_MAX} are read")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// No object.
    #[error("the reply holds no JSON object")]
    NoObject,
    /// It ends inside the object.
    #[error("the JSON object is cut off: the reply ends inside it")]
    Truncated,
    /// Looks like the object, but does not parse.
    #[error("the JSON object does not parse: {0}")]
    Malformed(String),
    /// Different objects compete.
    #[error("the reply holds {0} different JSON objects; exactly one is wanted")]
    Several(usize),
    /// A key appears twice.
    #[error("key `{0}` appears twice in the JSON object")]
    DuplicateKey(String),
    /// A needed key is missing.
    #[error("key `{0}` is missing")]
    Missing(&'static str),
    /// A key has another type.
    #[error("key `{key}` must be {expected}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A text is blank.
    #[error("key `{0}` must not be empty")]
    Blank(&'static str),
    /// A text is too long.
    #[error("key `{key}` has {chars} characters; at most {max} are accepted")]
    TextTooLong {
        /// The key.
        key: &'static str,
        /// Its length.
        chars: usize,
        /// Its cap.
        max: usize,
    },
    /// A list is too long.
    #[error("key `{key}` has {len} entries; at most {max} are accepted")]
    ListTooLong {
        /// The key.
        key: &'static str,
        /// Its length.
        len: usize,
        /// Its cap.
        max: usize,
    },
    /// NUL or another control character.
    #[error("key `{0}` holds control characters")]
    ControlCharacter(&'static str),
    /// Not of the library.
    #[error("`family_id` is `{found}`; known are {known} and `other`")]
    UnknownFamily {
        /// What the reply says.
        found: String,
        /// The library, in order.
        known: String,
    },
}

/// An object whose keys are unique.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(pub(crate) BTreeMap<String, Value>);

const DUPLICATE: &str = "duplicate key ";

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut keys = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if keys.contains_key(&key) {
                        return Err(A::Error::custom(format!("{DUPLICATE}{key}\n")));
                    }
                    keys.insert(key, value);
                }
                Ok(Object(keys))
            }
        }
        deserializer.deserialize_map(Unique)
    }
}

/// The one object in `reply` that has at least one of `known` keys. Prose, fences and other braces
/// around it do not matter; the same object twice counts once.
pub(crate) fn find_object(reply: &str, known: &[&str]) -> Result<Object, ReplyError> {
    if reply.len() > REPLY_BYTES_MAX {
        let bytes = reply.len();
        return Err(ReplyError::TooLong { bytes });
    }
    if reply.trim().is_empty() {
        return Err(ReplyError::Empty);
    }
    let mut found: Vec<Object> = Vec::new();
    let mut problem = None;
    let mut at = 0;
    while let Some(offset) = reply[at..].find('{') {
        let start = at + offset;
        let rest = &reply[start..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Object>();
        match stream.next() {
            Some(Ok(object)) => {
                at = start + stream.byte_offset();
                if object.0.keys().any(|key| known.contains(&key.as_str()))
                    && !found.contains(&object)
                {
                    found.push(object);
                }
            }
            Some(Err(error)) => {
                // Only what begins like an object of ours is worth a complaint.
                if known.iter().any(|key| begins_with_key(rest, key)) {
                    problem.get_or_insert_with(|| describe(&error));
                    break;
                }
                at = start + 1;
            }
            None => break,
        }
    }
    match (found.len(), problem) {
        (_, Some(problem)) => Err(problem),
        (0, None) => Err(ReplyError::NoObject),
        (1, None) => Ok(found.remove(0)),
        (several, None) => Err(ReplyError::Several(several)),
    }
}

fn begins_with_key(rest: &str, key: &str) -> bool {
    rest[1..]
        .trim_start()
        .strip_prefix(['"', '\''])
        .is_some_and(|rest| rest.starts_with(key))
}

fn describe(error: &serde_json::Error) -> ReplyError {
    let text = error.to_string();
    if error.is_eof() {
        return ReplyError::Truncated;
    }
    match text
        .strip_prefix(DUPLICATE)
        .and_then(|rest| rest.split_once('\n'))
    {
        Some((key, _)) => ReplyError::DuplicateKey(key.chars().take(80).collect()),
        None => ReplyError::Malformed(text.chars().take(200).collect()),
    }
}

impl Object {
    /// A text with at most `max` characters; `None` when absent or null.
    pub(crate) fn text(&self, key: &'static str, max: usize) -> Result<Option<String>, ReplyError> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => clean(key, text, max).map(Some),
            Some(_) => Err(ReplyError::WrongType {
                key,
                expected: "a string",
            }),
        }
    }

    /// A text that must be there and not blank.
    pub(crate) fn needed(&self, key: &'static str, max: usize) -> Result<String, ReplyError> {
        let text = self.text(key, max)?.ok_or(ReplyError::Missing(key))?;
        if text.trim().is_empty() {
            return Err(ReplyError::Blank(key));
        }
        Ok(text)
    }

    /// A list of texts; absent = empty.
    pub(crate) fn list(
        &self,
        key: &'static str,
        len_max: usize,
        max: usize,
    ) -> Result<Vec<String>, ReplyError> {
        let wrong = ReplyError::WrongType {
            key,
            expected: "a list of strings",
        };
        let items = match self.0.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(wrong),
        };
        if items.len() > len_max {
            let (len, max) = (items.len(), len_max);
            return Err(ReplyError::ListTooLong { key, len, max });
        }
        items
            .iter()
            .map(|item| match item {
                Value::String(text) => clean(key, text, max),
                _ => Err(wrong.clone()),
            })
            .collect()
    }

    /// A family of the library, or `other`; absent = `None`.
    pub(crate) fn family(
        &self,
        families: &[vec_types::FamilyId],
    ) -> Result<Option<vec_types::FamilyId>, ReplyError> {
        let Some(text) = self.text("family_id", 100)? else {
            return Ok(None);
        };
        let id = text.trim().parse::<vec_types::FamilyId>().ok();
        match id.filter(|id| id.as_str() == "other" || families.contains(id)) {
            Some(id) => Ok(Some(id)),
            None => {
                let known: Vec<String> = families.iter().map(|id| format!("`{id}`")).collect();
                Err(ReplyError::UnknownFamily {
                    found: text.chars().take(80).collect(),
                    known: known.join(", "),
                })
            }
        }
    }
}

fn clean(key: &'static str, text: &str, max: usize) -> Result<String, ReplyError> {
    let chars = text.chars().count();
    if chars > max {
        return Err(ReplyError::TextTooLong { key, chars, max });
    }
    if text
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
    {
        return Err(ReplyError::ControlCharacter(key));
    }
    Ok(text.to_owned())
}
