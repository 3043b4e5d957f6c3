//! Replay: facts are given, decisions must follow from them, byte for byte (architecture §3).
//! The first divergence ends the replay, since everything after it has another basis.

use vec_search::{Event, RunState};
use vec_types::{UnixMs, canonical_json};

use crate::archive::Known;
use crate::report::chain;
use crate::{Check, VerifyReport};

pub(crate) fn check(events: &[Known], open: bool, report: &mut VerifyReport) {
    let mut replay = Replay {
        state: RunState::new(),
        at: None,
        batches: 0,
    };
    let batches = events.chunk_by(|a, b| a.row.batch == b.row.batch);
    for batch in batches {
        if let Err(divergence) = replay.batch(batch) {
            report.findings.push(divergence);
            report.replayed_batches = Some(replay.batches);
            return;
        }
    }
    report.replayed_batches = Some(replay.batches);
    // An open run may have died between a fact and its decisions.
    if !open
        && let Some(last) = events.last()
        && let Err(divergence) = replay.nothing_due(last.row.seq + 1)
    {
        report.findings.push(divergence);
    }
}

struct Replay {
    state: RunState,
    /// Time of the last batch.
    at: Option<UnixMs>,
    batches: u64,
}

fn divergence(
    seq: u64,
    event: Option<&Event>,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> crate::Finding {
    let node = event.and_then(Event::node);
    let place = node.map_or_else(
        || format!("event {seq}"),
        |node| format!("event {seq} (node {node})"),
    );
    crate::Finding {
        check: Check::Replay,
        place,
        expected: expected.to_string(),
        found: found.to_string(),
    }
}

impl Replay {
    fn batch(&mut self, batch: &[Known]) -> Result<(), crate::Finding> {
        let Some(first) = batch.first() else {
            return Ok(());
        };
        if first.event.is_fact() {
            if let Some(second) = batch.get(1) {
                let found = format!("{} in the batch of a fact", second.row.kind);
                let event = Some(&second.event);
                return Err(divergence(second.row.seq, event, "its own batch", found));
            }
            // After a crash the decisions on the last fact may be missing; they come after the
            // resume.
            if !matches!(first.event, Event::RunResume { .. }) {
                self.nothing_due(first.row.seq)?;
            }
        } else {
            self.decisions(batch)?;
            self.batches += 1;
        }
        for known in batch {
            let applied = self.state.apply(known.row.at, &known.event);
            applied.map_err(|error| {
                let event = Some(&known.event);
                divergence(known.row.seq, event, "an event that fits", chain(&error))
            })?;
        }
        self.at = Some(first.row.at);
        Ok(())
    }

    fn decisions(&self, batch: &[Known]) -> Result<(), crate::Finding> {
        let Some(first) = batch.first() else {
            return Ok(());
        };
        let decided = self.state.decide(first.row.at);
        for index in 0..batch.len().max(decided.len()) {
            let expected = decided.get(index).map(text);
            let found = batch.get(index).map(|known| known.row.json.clone());
            if expected == found {
                continue;
            }
            let stored = batch.get(index).or_else(|| batch.last());
            let seq = stored.map_or(0, |known| known.row.seq);
            let event = decided
                .get(index)
                .or_else(|| batch.get(index).map(|known| &known.event));
            let none = || "no further decision".to_owned();
            let expected = expected.unwrap_or_else(none);
            return Err(divergence(seq, event, expected, found.unwrap_or_else(none)));
        }
        Ok(())
    }

    /// Before a fact, and at the end, nothing is left to decide.
    fn nothing_due(&self, seq: u64) -> Result<(), crate::Finding> {
        let Some(at) = self.at else {
            return Ok(());
        };
        match self.state.decide(at).first() {
            None => Ok(()),
            Some(due) => Err(divergence(
                seq,
                Some(due),
                text(due),
                "no decision before it",
            )),
        }
    }
}

fn text(event: &Event) -> String {
    canonical_json(event).map_or_else(
        |error| error.to_string(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}
