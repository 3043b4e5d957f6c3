//! The event chain: `hash = sha256(prev ++ "\n" ++ seq ++ "\n" ++ batch ++ "\n" ++ at ++ "\n" ++
//! json)`, over the stored text. Pure.

use vec_search::Event;
use vec_types::{Digest, NodeId, UnixMs};

use crate::StoreError;

/// A row of `events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Number, from 1.
    pub seq: u64,
    /// Number of its batch (one transaction), from 1.
    pub batch: u64,
    /// When; the same for the whole batch.
    pub at: UnixMs,
    /// One word.
    pub kind: String,
    /// The node that it concerns.
    pub node: Option<NodeId>,
    /// Canonical JSON of the event, as stored and hashed.
    pub json: String,
    /// Hash of the event before; zeros before the first.
    pub prev: Digest,
    /// Hash of this event.
    pub hash: Digest,
}

impl StoredEvent {
    /// The event.
    ///
    /// # Errors
    /// [`StoreError::EventDecode`] when this version does not know it.
    pub fn event(&self) -> Result<Event, StoreError> {
        serde_json::from_str(&self.json).map_err(|source| StoreError::EventDecode {
            seq: self.seq,
            source,
        })
    }
}

/// The first event that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} {what}")]
pub struct EventFault {
    /// Its place, from 1.
    pub seq: u64,
    /// What is wrong with it.
    pub what: String,
}

/// Hash of an event in its place.
#[must_use]
pub fn event_hash(prev: Digest, seq: u64, batch: u64, at: UnixMs, json: &str) -> Digest {
    let UnixMs(at) = at;
    Digest::of(format!("{prev}\n{seq}\n{batch}\n{at}\n{json}").as_bytes())
}

/// Checks numbers, batches, times, hashes and the derived columns of all events from the first.
///
/// # Errors
/// The first event that does not hold.
pub fn check_events(events: &[StoredEvent]) -> Result<(), EventFault> {
    let (mut prev, mut batch, mut at) = (Digest::ZERO, 0, None);
    for (index, row) in events.iter().enumerate() {
        let seq = index as u64 + 1;
        let fault = |what: String| Err(EventFault { seq, what });
        if row.seq != seq {
            return fault(format!("is missing; the next one has number {}", row.seq));
        }
        if row.prev != prev {
            return fault(format!(
                "says prev {}, the event before is {prev}",
                row.prev
            ));
        }
        let hash = event_hash(prev, seq, row.batch, row.at, &row.json);
        if row.hash != hash {
            return fault(format!("says hash {}, its text gives {hash}", row.hash));
        }
        let same_batch = row.batch == batch && at == Some(row.at);
        if row.batch != batch + 1 && !same_batch {
            return fault(format!("breaks batch order: {} after {batch}", row.batch));
        }
        if let Ok(event) = row.event()
            && (event.kind() != row.kind || event.node() != row.node)
        {
            let kind = event.kind();
            return fault(format!(
                "is filed as {:?} of node {:?}, its text is {kind:?} of node {:?}",
                row.kind,
                row.node,
                event.node()
            ));
        }
        (prev, batch, at) = (hash, row.batch, Some(row.at));
    }
    Ok(())
}
