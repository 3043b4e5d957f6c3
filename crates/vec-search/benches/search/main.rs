//! `cargo bench -p vec-search`: cost of one selection, of the fold and of memory, at growing sizes,
//! with the ratios between sizes. Figures are printed, never asserted: machines differ.

mod made;
mod memory;

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use vec_search::RunState;

use made::{Stored, T0, grown, imported};
use memory::{Counting, allocated};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];

/// Nodes of the run that gives a real event log of more than 100,000 events.
const GROWN_NODES: u32 = 7_000;

fn main() {
    selection();
    fold();
}

/// One whole new-node decision (draw, ranking, pool, choice, digest) over a tree of imports: a third
/// failed, many ties, random parents. The least time is the one to compare: other work on the
/// machine only adds.
fn selection() {
    say("selection incl. ranking, draw and inputs digest");
    say(&format!(
        "{:>9}  {:>11}  {:>11}  {:>11}  {:>9}",
        "nodes", "least", "median", "times least", "n log n"
    ));
    let mut before: Option<(u32, f64)> = None;
    for size in SIZES {
        let state = imported(size);
        let took = times(31, || {
            black_box(state.decide(T0));
        });
        let (least, median) = (ms(took[0]), ms(took[took.len() / 2]));
        let growth = before.map_or_else(String::new, |(last, time)| {
            let cost = |n: u32| f64::from(n) * f64::from(n).ln();
            format!("{:>11.1}  {:>9.1}", least / time, cost(size) / cost(last))
        });
        say(&format!(
            "{size:>9}  {least:>8.3} ms  {median:>8.3} ms  {growth}"
        ));
        before = Some((size, least));
    }
}

/// The fold of a run that was driven by `decide`, and what its state holds per node.
fn fold() {
    say("\nfold of a driven run");
    say(&format!(
        "{:>9}  {:>9}  {:>9}  {:>12}  {:>14}  {:>12}",
        "nodes", "events", "least", "per 100,000", "bytes per node", "of it texts"
    ));
    for size in [GROWN_NODES / 10, GROWN_NODES] {
        let (events, texts) = grown(size);
        let took = times(5, || {
            black_box(folded(&events));
        });
        let free = allocated();
        let state = folded(&events);
        let bytes = (allocated() - free) / u64::from(size);
        drop(state);
        let least = ms(took[0]);
        let per_100_000 = least * 1e5 / events.len() as f64;
        say(&format!(
            "{size:>9}  {:>9}  {least:>6.0} ms  {per_100_000:>9.0} ms  {bytes:>14}  {:>12}",
            events.len(),
            texts / u64::from(size),
        ));
    }
}

fn folded(events: &[Stored]) -> RunState {
    let mut state = RunState::new();
    for (at, event) in events {
        state
            .apply(*at, event)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    state
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Sorted times of some repetitions.
fn times(repetitions: usize, mut work: impl FnMut()) -> Vec<Duration> {
    let mut took: Vec<Duration> = (0..repetitions)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    took.sort_unstable();
    took
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe is no failure of a bench.
    let _ = writeln!(out, "{line}");
}
