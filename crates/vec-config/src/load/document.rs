//! YAML text → figment value, refusing what figment would let pass: a key twice, numbers that
//! are not finite.

use std::fmt;

use figment::providers::{Format, Yaml};
use figment::value::{Dict, Empty, Tag, Value};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// One YAML document.
pub(super) struct Document(pub(super) Value);

pub(super) fn parse(text: &str) -> Result<Document, String> {
    // serde_yaml reads an empty document as a missing one.
    if text.trim().is_empty() {
        return Ok(Document(Value::Empty(Tag::Default, Empty::Unit)));
    }
    Yaml::from_str(text).map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor).map(Self)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if value.is_finite() {
            Ok(Value::from(value))
        } else {
            Err(E::custom(format_args!("{value} is not a finite number")))
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Empty(Tag::Default, Empty::Unit))
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Document(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(Tag::Default, values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut dict = Dict::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Document(value) = entries.next_value()?;
            if dict.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("key `{key}` is given twice")));
            }
        }
        Ok(Value::from(dict))
    }
}
