//! `cargo bench -p vec-search`: cost of one selection, of the fold and of memory, at growing sizes,
//! with the ratios between sizes. Figures are printed, never asserted: machines differ.

mod made;
mod memory;

use std::hint::black_box;
use std::time::{Duration, Instant};

use vec_search::{Event, RunState};

use made::{Stored, T0, grown, imported};
use memory::{Counting, allocated};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];

/// Nodes of the run that gives a real event log of more than 100,000 events.
const GROWN_NODES: u32 = 7_000;

fn main() {
    selection();
    if std::env::var_os("ONLY_SELECTION").is_none() {
        fold();
    }
}

/// One whole new-node decision (draw, ranking, pool, choice, digest) over a tree of imports, and
/// the same with failures, ties and two thirds of the parents out of the pool.
fn selection() {
    println!("selection incl. ranking, draw and inputs digest");
    println!(
        "{:>9}  {:>10}  {:>7}  {:>12}",
        "nodes", "median", "ratio", "n log n"
    );
    let mut before: Option<(u32, f64)> = None;
    for size in SIZES {
        let state = imported(size);
        let took = median(31, || {
            black_box(state.decide(T0));
        });
        println!(
            "min {:?}",
            (0..31)
                .map(|_| {
                    let s = Instant::now();
                    black_box(state.decide(T0));
                    s.elapsed()
                })
                .min()
        );
        assert!(
            matches!(state.decide(T0).first(), Some(Event::Draw { .. })),
            "the next decision is a draw"
        );
        let ms = took.as_secs_f64() * 1e3;
        let ratio = before.map_or_else(String::new, |(_, last)| format!("{:.1}", ms / last));
        let expected = before.map_or_else(String::new, |(last, _)| {
            let cost = |n: f64| n * n.ln();
            format!("{:.1}", cost(f64::from(size)) / cost(f64::from(last)))
        });
        println!("{size:>9}  {ms:>7.3} ms  {ratio:>7}  {expected:>12}");
        before = Some((size, ms));
    }
}

/// The fold of a run that was driven by `decide`, and what its state holds per node.
fn fold() {
    println!("\nfold of a driven run");
    println!(
        "{:>9}  {:>9}  {:>10}  {:>12}  {:>14}  {:>12}",
        "nodes", "events", "median", "per 100,000", "bytes per node", "of it texts"
    );
    for size in [GROWN_NODES / 10, GROWN_NODES] {
        let started = Instant::now();
        let (events, texts) = grown(size);
        let driven = started.elapsed();
        let took = median(3, || {
            black_box(folded(&events));
        });
        let free = allocated();
        let state = folded(&events);
        let bytes = (allocated() - free) / u64::from(size);
        drop(state);
        let per_100_000 = took.as_secs_f64() * 1e5 / events.len() as f64;
        println!(
            "{size:>9}  {:>9}  {:>7.0} ms  {per_100_000:>10.3} s  {bytes:>14}  {:>12}",
            events.len(),
            took.as_secs_f64() * 1e3,
            texts / u64::from(size),
        );
        println!("           driven with decide, one node at a time: {driven:.1?}");
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

fn median(times: usize, mut work: impl FnMut()) -> Duration {
    let mut took: Vec<Duration> = (0..times)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[times / 2]
}
