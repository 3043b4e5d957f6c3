//! Walking maps and lists with the path kept.

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::plain::Mismatch;
use super::{Node, Sink};

/// The entries of a map.
pub(super) struct Entries<'s> {
    rest: serde_json::map::IntoIter,
    current: Option<(String, Value)>,
    here: Node<'s>,
}

impl<'s> Entries<'s> {
    pub(super) fn new(map: Map<String, Value>, path: Vec<String>, sink: &'s Sink) -> Self {
        Self {
            rest: map.into_iter(),
            current: None,
            here: Node {
                value: Value::Null,
                path,
                sink,
            },
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        self.current = self.rest.next();
        let Some((key, _)) = &self.current else {
            return Ok(None);
        };
        let path = self.here.child(key, Value::Null).path;
        let key = seed.deserialize(StringDeserializer::new(key.clone()));
        Node::located(path, key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let (key, value) = self.current.take().unwrap_or_default();
        let child = self.here.child(&key, value);
        let path = child.path.clone();
        Node::located(path, seed.deserialize(child))
    }
}

/// The items of a list.
pub(super) struct Items<'s> {
    rest: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    here: Node<'s>,
}

impl<'s> Items<'s> {
    pub(super) fn new(items: Vec<Value>, path: Vec<String>, sink: &'s Sink) -> Self {
        Self {
            rest: items.into_iter().enumerate(),
            here: Node {
                value: Value::Null,
                path,
                sink,
            },
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        let Some((index, value)) = self.rest.next() else {
            return Ok(None);
        };
        let child = self.here.child(&index.to_string(), value);
        let path = child.path.clone();
        Node::located(path, seed.deserialize(child)).map(Some)
    }
}
