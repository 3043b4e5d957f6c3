//! The results of control runs decide nothing (ABL-05): the same seed in a world in which they are
//! others comes to the same decisions at the same times, but for the results themselves.

use serde_json::Value;
use vec_search::{Effect, Event, ExecResult, Outcome, RunState, ScoreResult};
use vec_types::{ExecName, UnixMs};

use crate::Invariant::Ablation;
use crate::driver::Stored;
use crate::fixture::{done, done_as, scored};
use crate::must;

/// Wall time of a control run that is another one.
const VIEW_MS: i64 = 1_000;

/// Another result for a control run, with the same effects as before: no effect where there was one,
/// an effect where there was none, and for every third node one that cannot be compared, or can.
pub(crate) fn permuted(state: &RunState, effect: &Effect, outcome: Outcome) -> Outcome {
    let (Some(policy), Some(node)) = (state.policy(), state.node(effect.node())) else {
        return outcome;
    };
    let is_third = node.id.0.is_multiple_of(3);
    let other = match (effect, &outcome) {
        (
            Effect::Execute {
                exec: exec @ ExecName::Ablate,
                ..
            },
            Outcome::Executed { report },
        ) => match &report.result {
            ExecResult::Done { digests } if Some(digests) == node.digests => {
                Some(done(policy, *exec, "permuted", VIEW_MS))
            }
            ExecResult::Done { .. } => node
                .digests
                .and_then(|seed_0| done_as(policy, *exec, seed_0, VIEW_MS)),
            ExecResult::Fault { .. } => None,
        },
        (
            Effect::Score {
                exec: ExecName::Ablate,
                ..
            },
            Outcome::Scored { result },
        ) if is_third => Some(match result {
            ScoreResult::Done { .. } => Outcome::Scored {
                result: ScoreResult::InvalidFormat {
                    detail: "permuted".to_owned(),
                },
            },
            ScoreResult::InvalidFormat { .. } => scored(policy, 50.0),
        }),
        _ => None,
    };
    other.unwrap_or(outcome)
}

/// Results of control runs in order.
#[must_use]
pub fn results(stored: &Stored) -> Vec<&Event> {
    let events = stored.iter().flat_map(|(_, batch)| batch);
    events
        .filter(|event| matches!(event, Event::AblationResult { .. }))
        .collect()
}

/// Two runs of one seed with different results of control runs.
///
/// # Panics
/// When their decisions differ otherwise.
pub(crate) fn decide_nothing(run: &Stored, other: &Stored) {
    let (mine, theirs) = (decisions(run), decisions(other));
    let first = mine
        .iter()
        .zip(&theirs)
        .find(|(mine, theirs)| mine != theirs);
    must(
        mine.len() == theirs.len() && first.is_none(),
        Ablation,
        || {
            format!(
                "{} and {} decisions with other results of control runs, the first that differ: {first:?}",
                mine.len(),
                theirs.len()
            )
        },
    );
}

/// Every decision but results of control runs, without the digests of what it saw: those hold the
/// results too, so that none of them can be changed unnoticed.
fn decisions(stored: &Stored) -> Vec<(UnixMs, Value)> {
    let events = stored
        .iter()
        .flat_map(|(at, batch)| batch.iter().map(move |event| (*at, event)));
    let decisions = events
        .filter(|(_, event)| !event.is_fact() && !matches!(event, Event::AblationResult { .. }));
    decisions
        .map(|(at, event)| {
            let mut value = serde_json::to_value(event).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.remove("inputs_digest");
            }
            (at, value)
        })
        .collect()
}
