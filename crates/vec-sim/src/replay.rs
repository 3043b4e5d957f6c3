//! Reading what is stored: the fold of a prefix, and what `verify --replay` does: every decision batch
//! is found again, and nothing more.

use vec_search::{Event, RunState};
use vec_types::{UnixMs, canonical_json};

use crate::Invariant::Accepts;
use crate::must;

/// The state after these batches.
#[must_use]
pub fn fold(stored: &[(UnixMs, Vec<Event>)]) -> RunState {
    let mut state = RunState::new();
    for (at, batch) in stored {
        for event in batch {
            let applied = state.apply(*at, event);
            must(applied.is_ok(), Accepts, || {
                format!("stored, then refused: {applied:?}: {event:?}")
            });
        }
    }
    state
}

/// Decides anew at every stored batch and compares the bytes.
///
/// # Errors
/// The first batch that differs, in words.
pub fn replay(stored: &[(UnixMs, Vec<Event>)]) -> Result<(), String> {
    let mut state = RunState::new();
    let mut last = UnixMs(0);
    for (index, (at, batch)) in stored.iter().enumerate() {
        let problem = match batch.first() {
            // After a crash the decisions on the last fact may be missing; they follow the resume.
            Some(Event::RunResume { .. }) => None,
            Some(fact) if fact.is_fact() => differs(&state.decide(last), &[]),
            _ => differs(&state.decide(*at), batch),
        };
        if let Some(problem) = problem {
            return Err(format!("batch {index} at {at}: {problem}"));
        }
        for event in batch {
            state.apply(*at, event).map_err(|error| error.to_string())?;
        }
        last = *at;
    }
    match differs(&state.decide(last), &[]) {
        None => Ok(()),
        Some(problem) => Err(format!("at the end: {problem}")),
    }
}

fn differs(expected: &[Event], found: &[Event]) -> Option<String> {
    // Equal events may differ in bytes (0 and -0), unequal ones cannot agree in them.
    let bytes = |events: &[Event]| canonical_json(events).unwrap_or_default();
    let same = expected == found && (found.is_empty() || bytes(expected) == bytes(found));
    (!same).then(|| format!("expected {expected:?}, found {found:?}"))
}
