//! The first node of every identity key, two keys or more per scored node: most of them stand in
//! one sorted list without gaps, the newest in a map that is merged into it from time to time.

use std::collections::BTreeMap;

use vec_types::{Digest, NodeId};

/// Half of a SHA-256. Among 10^9 keys two that differ are taken for one with probability 10^-21,
/// and making such a pair on purpose takes 2^64 hashes.
type Key = [u8; 16];

/// The map is merged once it holds more than an eighth of the list, and this many.
const MERGE_MIN: usize = 32;

/// A map from keys to nodes, to which keys are only added.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Firsts {
    /// Ascending.
    sorted: Vec<(Key, NodeId)>,
    newest: BTreeMap<Key, NodeId>,
}

impl Firsts {
    /// The node that claimed the key first; now `node` if none did.
    pub(super) fn claim(&mut self, key: &Digest, node: NodeId) -> NodeId {
        let key = short(key);
        if let Ok(at) = self.sorted.binary_search_by_key(&key, |(own, _)| *own) {
            return self.sorted[at].1;
        }
        let first = *self.newest.entry(key).or_insert(node);
        if self.newest.len() > MERGE_MIN.max(self.sorted.len() / 8) {
            self.merge();
        }
        first
    }

    fn merge(&mut self) {
        let mut merged = Vec::with_capacity(self.sorted.len() + self.newest.len());
        let mut old = std::mem::take(&mut self.sorted).into_iter().peekable();
        for (key, node) in std::mem::take(&mut self.newest) {
            while let Some(entry) = old.next_if(|(own, _)| *own < key) {
                merged.push(entry);
            }
            merged.push((key, node));
        }
        merged.extend(old);
        self.sorted = merged;
    }
}

fn short(digest: &Digest) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&digest.as_bytes()[..size_of::<Key>()]);
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn says_what_a_map_says(keys in prop::collection::vec(0_u16..300, 0..600)) {
            let mut firsts = Firsts::default();
            let mut map = BTreeMap::new();
            for (node, key) in (0..).map(NodeId).zip(keys) {
                let key = Digest::of(&key.to_le_bytes());
                prop_assert_eq!(firsts.claim(&key, node), *map.entry(key).or_insert(node));
            }
            prop_assert!(firsts.sorted.is_sorted());
            prop_assert_eq!(firsts.sorted.len() + firsts.newest.len(), map.len());
            prop_assert_eq!(firsts.sorted.capacity(), firsts.sorted.len());
        }
    }
}
