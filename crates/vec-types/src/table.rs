//! A map for few entries that is built once: sorted keys, which equal tables may share, and the
//! values beside them. A `BTreeMap` of two entries takes a leaf for eleven.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Pool;

/// A map that does not change. Read as a `BTreeMap`; as JSON an object with sorted keys, and a
/// key that stands there twice is refused.
#[derive(Clone, PartialEq, Eq)]
pub struct Table<K, V> {
    /// Strictly ascending.
    keys: Arc<Vec<K>>,
    /// One per key.
    values: Box<[V]>,
}

impl<K, V> Table<K, V> {
    /// One without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Has it no entry?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Keys in order.
    pub fn keys(&self) -> std::slice::Iter<'_, K> {
        self.keys.iter()
    }

    /// Values in the order of their keys.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.values.iter()
    }

    /// Entries in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.keys.iter().zip(&self.values)
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let found = self.keys.binary_search_by(|own| own.borrow().cmp(key));
        self.values.get(found.ok()?)
    }

    /// Is the key there?
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K: PartialEq, V> Table<K, V> {
    /// Lets it point at the pool's copy of its keys.
    pub fn share_keys(&mut self, pool: &mut Pool<Vec<K>>) {
        pool.share(&mut self.keys);
    }
}

type Iter<'a, K, V> = std::iter::Zip<std::slice::Iter<'a, K>, std::slice::Iter<'a, V>>;

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            keys: Arc::default(),
            values: Box::default(),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.iter().zip(&self.values)
    }
}

impl<K: Clone, V> IntoIterator for Table<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Zip<std::vec::IntoIter<K>, std::vec::IntoIter<V>>;

    fn into_iter(self) -> Self::IntoIter {
        let keys = Arc::unwrap_or_clone(self.keys);
        keys.into_iter().zip(self.values.into_vec())
    }
}

impl<K: Ord, V> From<BTreeMap<K, V>> for Table<K, V> {
    fn from(map: BTreeMap<K, V>) -> Self {
        let (keys, values): (Vec<K>, Vec<V>) = map.into_iter().unzip();
        Self {
            keys: Arc::new(keys),
            values: values.into(),
        }
    }
}

/// The last of equal keys stands, as in a `BTreeMap`.
impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        entries.into_iter().collect::<BTreeMap<K, V>>().into()
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for Table<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Table<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K, V> Deserialize<'de> for Table<K, V>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for Entries<K, V>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    type Value = Table<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = access.next_entry::<K, V>()? {
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands there twice"));
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests;
