//! What the outside may see of a running run: its status and its stored events. Written by the
//! run's owner after each turn, read by the control service.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use vec_store::StoredEvent;

/// Events kept in memory for watchers; older ones are read from the archive.
const RING_LEN: usize = 4_096;

/// The latest state for readers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Latest {
    /// Last stored event.
    pub(crate) seq: u64,
    /// `RunStatus` as canonical JSON.
    pub(crate) status_json: Vec<u8>,
    /// Nothing more will come.
    pub(crate) is_over: bool,
}

/// Publishes; the reading side is [`FeedReader`].
#[derive(Debug)]
pub(crate) struct Feed {
    latest: watch::Sender<Latest>,
    ring: Ring,
}

/// Reads what the run publishes.
#[derive(Debug, Clone)]
pub(crate) struct FeedReader {
    latest: watch::Receiver<Latest>,
    ring: Ring,
}

// A few lines without await hold this lock.
type Ring = Arc<Mutex<VecDeque<StoredEvent>>>;

impl Feed {
    /// A feed and a reader to clone from.
    pub(crate) fn new() -> (Self, FeedReader) {
        let (sender, receiver) = watch::channel(Latest::default());
        let ring = Ring::default();
        (
            Self {
                latest: sender,
                ring: Arc::clone(&ring),
            },
            FeedReader {
                latest: receiver,
                ring,
            },
        )
    }

    /// Adds stored events; they become visible with the next [`Feed::publish`].
    pub(crate) fn extend(&self, events: &[StoredEvent]) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.extend(events.iter().cloned());
        let excess = ring.len().saturating_sub(RING_LEN);
        ring.drain(..excess);
    }

    /// Tells readers about a new state.
    pub(crate) fn publish(&self, latest: Latest) {
        self.latest.send_replace(latest);
    }
}

impl FeedReader {
    /// The latest state.
    pub(crate) fn latest(&self) -> Latest {
        self.latest.borrow().clone()
    }

    /// Waits for another state than the one last seen; `false` when the run's owner is gone.
    pub(crate) async fn changed(&mut self) -> bool {
        self.latest.changed().await.is_ok()
    }

    /// Events after `seq` that are still in memory, or `None` when some have left it.
    pub(crate) fn after(&self, seq: u64) -> Option<Vec<StoredEvent>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ring.front().map_or(seq + 1, |event| event.seq);
        (first <= seq + 1).then(|| {
            ring.iter()
                .filter(|event| event.seq > seq)
                .cloned()
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vec_types::{Digest, UnixMs};

    fn event(seq: u64) -> StoredEvent {
        StoredEvent {
            seq,
            batch: seq,
            at: UnixMs(0),
            kind: "draw".to_owned(),
            node: None,
            json: "{}".to_owned(),
            prev: Digest::ZERO,
            hash: Digest::ZERO,
        }
    }

    #[test]
    fn readers_are_told_when_events_left_memory() {
        let (feed, reader) = Feed::new();
        let last = RING_LEN as u64 + 10;
        let events: Vec<StoredEvent> = (1..=last).map(event).collect();
        feed.extend(&events);
        assert_eq!(reader.after(0), None);
        assert_eq!(reader.after(10).map(|events| events.len()), Some(RING_LEN));
        assert_eq!(reader.after(last).map(|events| events.len()), Some(0));
    }
}
