//! Many seeds on many threads. The lowest failing seed is found whatever the number of threads:
//! seeds are handed out in order, and none above a failing one is begun.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::{Simulation, Tally, breach};

/// Events shown of a failing seed.
const LAST_EVENTS: usize = 20;

/// Characters shown of each of them.
const EVENT_CHARS: usize = 400;

/// What to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// First seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Threads, at least 1.
    pub jobs: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Seeds that ran, the failing one among them.
    pub seeds: u64,
    /// Stored events.
    pub events: u64,
    /// Nodes, seed programs among them.
    pub nodes: u64,
    /// How often each rule fired.
    pub tally: Tally,
    /// Time on the wall.
    pub wall: Duration,
    /// The lowest seed that failed.
    pub failure: Option<Failure>,
}

/// A seed that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The invariant's name, or `panic`.
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
    /// The last stored events, oldest first.
    pub last: Vec<String>,
}

struct Shared {
    next: u64,
    end: u64,
    outcome: Outcome,
}

/// Runs every seed up to the first that fails. `prepare` runs first on every thread.
#[must_use]
pub fn run(batch: Batch, prepare: &(dyn Fn() + Sync)) -> Outcome {
    let begun = Instant::now();
    let shared = Mutex::new(Shared {
        next: batch.first,
        end: batch.first.saturating_add(batch.seeds),
        outcome: Outcome::default(),
    });
    std::thread::scope(|scope| {
        for _ in 0..batch.jobs.max(1) {
            scope.spawn(|| {
                prepare();
                work(&shared);
            });
        }
    });
    let shared = shared.into_inner();
    let mut outcome = shared.map_or_else(|poisoned| poisoned.into_inner().outcome, |s| s.outcome);
    outcome.wall = begun.elapsed();
    outcome
}

fn work(shared: &Mutex<Shared>) {
    loop {
        let Ok(mut taken) = shared.lock() else { return };
        if taken.next >= taken.end {
            return;
        }
        let seed = taken.next;
        taken.next += 1;
        drop(taken);
        let (simulation, failure) = simulate(seed);
        let Ok(mut shared) = shared.lock() else {
            return;
        };
        shared.count(&simulation, failure);
    }
}

impl Shared {
    fn count(&mut self, simulation: &Simulation, failure: Option<Failure>) {
        let driver = &simulation.driver;
        self.outcome.seeds += 1;
        self.outcome.events += driver.world.watch.book.events;
        self.outcome.nodes += driver.world.watch.book.nodes.len() as u64;
        self.outcome.tally.merge(&driver.world.watch.tally);
        let known = self.outcome.failure.as_ref().map(|failure| failure.seed);
        if let Some(failure) = failure.filter(|new| known.is_none_or(|seed| new.seed < seed)) {
            // What was begun below it goes on; nothing above it is begun.
            self.end = self.end.min(failure.seed);
            self.outcome.failure = Some(failure);
        }
    }
}

/// One seed to its end or to its first breach or panic.
#[must_use]
pub fn simulate(seed: u64) -> (Simulation, Option<Failure>) {
    let mut simulation = Simulation::new(seed);
    let ran = catch_unwind(AssertUnwindSafe(|| simulation.run()));
    let failure = ran.err().map(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without text");
        let (invariant, what) = match breach(text) {
            Some((invariant, what)) => (invariant.as_str(), what),
            None => ("panic", text),
        };
        let place = PLACE.with_borrow(String::clone);
        let what = match invariant {
            "panic" => format!("{what} ({place})"),
            _ => what.to_owned(),
        };
        Failure {
            seed,
            invariant,
            what,
            last: last_events(&simulation),
        }
    });
    (simulation, failure)
}

/// The last events, with their time in milliseconds after the first.
fn last_events(simulation: &Simulation) -> Vec<String> {
    let stored = &simulation.driver.stored;
    let first = stored.first().map_or(0, |(at, _)| at.0);
    let mut last: Vec<String> = stored
        .iter()
        .rev()
        .flat_map(|(at, batch)| batch.iter().rev().map(move |event| (at.0 - first, event)))
        .take(LAST_EVENTS)
        .map(|(ms, event)| format!("{ms:>9} ms  {}", shown(event)))
        .collect();
    last.reverse();
    last
}

fn shown(event: &vec_search::Event) -> String {
    let bytes = vec_types::canonical_json(event).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.chars().take(EVENT_CHARS).collect()
}

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics print nothing from here on; the place of the last one on each thread is kept for the
/// report.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        PLACE.with_borrow_mut(|kept| *kept = place.unwrap_or_default());
    }));
}

/// Threads that can work at once.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
