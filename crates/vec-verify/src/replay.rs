//! Replay: facts are given, decisions must follow from them, byte for byte (architecture §3).
//! The first divergence ends the replay, since everything after it has another basis.

use vec_search::{Event, RunState};
use vec_store::{StoreError, StoredEvent};
use vec_types::UnixMs;

use crate::difference::{self, Difference};
use crate::report::chain;
use crate::{Check, Finding, VerifyReport};

/// A stored event that this version can read, with its row.
#[derive(Debug, Clone)]
pub struct KnownEvent {
    /// As stored.
    pub row: StoredEvent,
    /// What it says.
    pub event: Event,
}

impl KnownEvent {
    /// Reads a row.
    ///
    /// # Errors
    /// [`StoreError::EventDecode`] when this version does not know the event.
    pub fn read(row: StoredEvent) -> Result<Self, StoreError> {
        let event = row.event()?;
        Ok(Self { row, event })
    }
}

pub(crate) fn check(events: &[KnownEvent], open: bool, report: &mut VerifyReport) {
    let mut replay = Replay::new();
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
    if !open && let Err(divergence) = replay.end() {
        report.findings.push(divergence);
    }
}

/// A replay under way: the fold of the batches so far. A clone goes on from the same point.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    state: RunState,
    /// Time of the last batch.
    at: Option<UnixMs>,
    /// Number of the last event.
    seq: u64,
    batches: u64,
}

impl Replay {
    /// Before the first batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one batch: a fact must fit, decisions must be the ones that follow.
    ///
    /// # Errors
    /// The first divergence; the replay is of no use after it.
    pub fn batch(&mut self, batch: &[KnownEvent]) -> Result<(), Finding> {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
            return Ok(());
        };
        if first.event.is_fact() {
            self.fact(first, batch.get(1))?;
        } else {
            self.decisions(batch)?;
            self.batches += 1;
        }
        for known in batch {
            let applied = self.state.apply(known.row.at, &known.event);
            applied.map_err(|error| {
                let what = Difference::words("an event that fits", chain(&error));
                divergence(known.row.seq, Some(&known.event), what)
            })?;
        }
        self.at = Some(first.row.at);
        self.seq = last.row.seq;
        Ok(())
    }

    /// After the last batch nothing is left to decide, unless the run is open.
    ///
    /// # Errors
    /// The decision that is missing.
    pub fn end(&self) -> Result<(), Finding> {
        self.nothing_due(self.seq + 1)
    }

    fn fact(&self, fact: &KnownEvent, second: Option<&KnownEvent>) -> Result<(), Finding> {
        if let Some(second) = second {
            let found = format!("{} in the batch of a fact", difference::name(&second.event));
            let what = Difference::words("a batch of its own", found);
            return Err(divergence(second.row.seq, Some(&second.event), what));
        }
        // After a crash the decisions on the last fact may be missing; they come after the resume.
        if matches!(fact.event, Event::RunResume { .. }) {
            return Ok(());
        }
        self.nothing_due(fact.row.seq)
    }

    fn decisions(&self, batch: &[KnownEvent]) -> Result<(), Finding> {
        let Some(first) = batch.first() else {
            return Ok(());
        };
        let decided = self.state.decide(first.row.at);
        for index in 0..batch.len().max(decided.len()) {
            let (due, stored) = (decided.get(index), batch.get(index));
            let Some(what) = difference::between(&self.state, due, stored) else {
                continue;
            };
            let seq = stored.or_else(|| batch.last()).map_or(0, |k| k.row.seq);
            let event = due.or_else(|| stored.map(|known| &known.event));
            return Err(divergence(seq, event, what));
        }
        Ok(())
    }

    /// Before a fact, and at the end, nothing is left to decide.
    fn nothing_due(&self, seq: u64) -> Result<(), Finding> {
        let Some(at) = self.at else {
            return Ok(());
        };
        match self.state.decide(at).first() {
            None => Ok(()),
            Some(due) => {
                let what = Difference::words(difference::name(due), "no decision before it");
                Err(divergence(seq, Some(due), what))
            }
        }
    }
}

fn divergence(seq: u64, event: Option<&Event>, what: Difference) -> Finding {
    let node = event.and_then(Event::node);
    let place = node.map_or_else(
        || format!("event {seq}"),
        |node| format!("event {seq} (node {node})"),
    );
    Finding {
        check: Check::Replay,
        place,
        rule: event.filter(|event| !event.is_fact()).map(Event::rule),
        path: what.path,
        expected: what.expected,
        found: what.found,
    }
}
