//! What a driver asks of every batch and event before they are stored.

use vec_search::Event;
use vec_types::canonical_json;

use crate::Invariant::{Decides, Storage};
use crate::must;

/// Decisions are the same when asked for again, and none of them is a fact.
pub(super) fn decides(batch: &[Event], again: &[Event]) {
    must(batch == again, Decides, || {
        format!("asked twice: {batch:?} and {again:?}")
    });
    let facts = batch.iter().any(Event::is_fact);
    must(!facts, Decides, || format!("a fact in {batch:?}"));
}

/// Its stored bytes read as the same event.
pub(super) fn survives_storage(event: &Event) {
    let bytes = canonical_json(event).unwrap_or_default();
    let read: Option<Event> = serde_json::from_slice(&bytes).ok();
    must(read.as_ref() == Some(event), Storage, || {
        format!("stored {event:?}, read {read:?}")
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::tests::raised;

    #[test]
    fn decisions_that_differ_or_hold_facts_are_a_breach() {
        let fact = [Event::RunResume { start: 1 }];
        assert_eq!(raised(|| decides(&fact, &fact)), Some(Decides));
        assert_eq!(raised(|| decides(&[], &fact)), Some(Decides));
        assert_eq!(raised(|| decides(&[], &[])), None);
    }

    #[test]
    fn an_event_that_is_stored_as_another_is_a_breach() {
        let pair = |score: f64| Event::GuardResult {
            candidate: vec_types::NodeId(1),
            pairs: Vec::new(),
            mean: Some(score),
            sd: None,
            lower_bound: None,
            complete: false,
            replace: false,
            why: String::new(),
            inputs_digest: vec_types::Digest::ZERO,
        };
        assert_eq!(raised(|| survives_storage(&pair(1.0))), None);
        let stored = raised(|| survives_storage(&pair(f64::NAN)));
        assert_eq!(stored, Some(Storage));
    }
}
