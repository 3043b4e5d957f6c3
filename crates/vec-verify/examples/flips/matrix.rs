//! The matrix: every value of every event of a run, changed, with the rest of the run as it was. A
//! replay must name an event at or after the changed one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use vec_search::Event;
use vec_store::StoredEvent;
use vec_types::canonical_json;
use vec_verify::{Check, Finding, KnownEvent, Replay};

use super::leaves::{Kind, Leaf, changes, leaves, put};

/// What came of one kind of value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) values: usize,
    pub(crate) flips: usize,
    pub(crate) named: usize,
    /// Flips that nothing can see, by reason.
    pub(crate) exempt: BTreeMap<&'static str, usize>,
    /// Event kind and path of every value that went unnoticed, with one change as an example.
    pub(crate) missed: BTreeMap<(String, String), String>,
}

/// One changed run, for the proof that the program on disk says the same.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) what: String,
    pub(crate) seq: u64,
    pub(crate) event: Event,
    pub(crate) finding: Finding,
}

/// Results by kind of value.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    pub(crate) tallies: BTreeMap<Kind, Tally>,
    /// The first named flip of each kind of value, in a fact and in a decision.
    pub(crate) examples: Vec<Example>,
}

impl Matrix {
    pub(crate) fn missed(&self) -> usize {
        self.tallies.values().map(|tally| tally.missed.len()).sum()
    }
}

/// Why a value may go unnoticed: no digest may hold it.
fn exemption(leaf: &Leaf) -> Option<&'static str> {
    let path = leaf.path();
    if leaf.kind == Kind::WallTime {
        return Some("times and memory: they differ between equal runs, which promise equal bytes");
    }
    path.ends_with("commit/commit")
        .then_some("commit ids: they have a time in them; verify compares them with programs.git")
}

/// Runs the whole matrix in memory.
pub(crate) fn matrix(rows: Vec<StoredEvent>) -> Result<Matrix, String> {
    let events: Result<Vec<_>, _> = rows.into_iter().map(KnownEvent::read).collect();
    let events = events.map_err(|error| error.to_string())?;
    let batches: Vec<&[KnownEvent]> = events.chunk_by(|a, b| a.row.batch == b.row.batch).collect();
    let mut run = Run {
        matrix: Matrix::default(),
        seen: BTreeSet::new(),
        before: Replay::new(),
        batches: &batches,
    };
    for (at, batch) in batches.iter().enumerate() {
        for index in 0..batch.len() {
            run.event(at, index)?;
        }
        let replayed = run.before.batch(batch);
        replayed.map_err(|finding| format!("the run itself does not replay: {finding}"))?;
    }
    run.before
        .end()
        .map_err(|finding| format!("the run itself does not end: {finding}"))?;
    Ok(run.matrix)
}

struct Run<'a> {
    matrix: Matrix,
    seen: BTreeSet<(Kind, bool)>,
    /// The fold before the batch whose events are changed.
    before: Replay,
    batches: &'a [&'a [KnownEvent]],
}

impl Run<'_> {
    fn event(&mut self, at: usize, index: usize) -> Result<(), String> {
        let known = &self.batches[at][index];
        let json: Value = serde_json::from_str(&known.row.json).map_err(|e| e.to_string())?;
        for leaf in leaves(&json) {
            let tally = self.matrix.tallies.entry(leaf.kind).or_default();
            tally.values += 1;
            let changed = changes(&leaf).into_iter();
            let changed = changed.filter_map(|value| stored(&known.row, &put(&json, &leaf, value)));
            let enough = match leaf.value {
                Value::String(_) if leaf.kind != Kind::Status => 1,
                _ => usize::MAX,
            };
            for event in changed.take(enough) {
                self.flip(at, index, &leaf, event);
            }
        }
        Ok(())
    }

    fn flip(&mut self, at: usize, index: usize, leaf: &Leaf, changed: KnownEvent) {
        let row = &self.batches[at][index].row;
        let what = format!("event {} ({}) {}", row.seq, row.kind, leaf.path());
        let tally = self.matrix.tallies.entry(leaf.kind).or_default();
        tally.flips += 1;
        let event = changed.event.clone();
        let finding = replay(&self.before, &self.batches[at..], index, changed);
        match finding.filter(|finding| names(finding, row.seq)) {
            Some(finding) => {
                tally.named += 1;
                if self.seen.insert((leaf.kind, event.is_fact())) {
                    let seq = row.seq;
                    self.matrix.examples.push(Example {
                        what,
                        seq,
                        event,
                        finding,
                    });
                }
            }
            None => match exemption(leaf) {
                Some(reason) => *tally.exempt.entry(reason).or_default() += 1,
                None => {
                    let place = (row.kind.clone(), leaf.path());
                    let example = || format!("{what}, was {}", leaf.value);
                    tally.missed.entry(place).or_insert_with(example);
                }
            },
        }
    }
}

/// The row with another text, if the text is an event at all and says just this.
fn stored(row: &StoredEvent, changed: &Value) -> Option<KnownEvent> {
    let event: Event = serde_json::from_value(changed.clone()).ok()?;
    let json = String::from_utf8(canonical_json(&event).ok()?).ok()?;
    let is_same = canonical_json(changed).ok()? == json.as_bytes();
    let row = StoredEvent {
        kind: event.kind(),
        node: event.node(),
        json,
        ..row.clone()
    };
    is_same.then_some(KnownEvent { row, event })
}

/// Replays from the batch of the change to the first divergence.
fn replay(
    before: &Replay,
    batches: &[&[KnownEvent]],
    index: usize,
    changed: KnownEvent,
) -> Option<Finding> {
    let (first, rest) = batches.split_first()?;
    let mut first = first.to_vec();
    *first.get_mut(index)? = changed;
    let mut replay = before.clone();
    let mut all = std::iter::once(first.as_slice()).chain(rest.iter().copied());
    let found = all.find_map(|batch| replay.batch(batch).err());
    found.or_else(|| replay.end().err())
}

/// Does it name an event at or after the changed one?
fn names(finding: &Finding, seq: u64) -> bool {
    let number = finding.place.strip_prefix("event ");
    let number = number.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    finding.check == Check::Replay && number.is_some_and(|number| number >= seq)
}
