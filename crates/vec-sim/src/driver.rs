//! The controller's loop in miniature: one fact or tick per turn, decisions until none is left,
//! effects started from `wanted`, facts (and a share of the
//! decisions) through their stored form. Time is virtual.

mod checks;

use std::collections::BTreeMap;

use vec_search::{Effect, EffectId, Event, Outcome, RunState};
use vec_types::{InfraFault, UnixMs};

use crate::Invariant::{Accepts, Decides, Ends, Fold};
use crate::{fold, must};

use checks::{decides, survives_storage};

/// Batches in one turn before the run counts as one that never settles down.
const BATCHES_MAX: usize = 10_000;

/// Turns of one run before it counts as one that does not end.
const TURNS_MAX: usize = 100_000;

/// Every `DETERMINISM_SAMPLE`-th decision is asked for twice: asking costs what deciding does.
const DETERMINISM_SAMPLE: usize = 8;

/// Every `STORAGE_SAMPLE`-th decision is read back from its stored form; facts always are.
const STORAGE_SAMPLE: usize = 4;

/// Gives every effect an outcome and a duration, and sees what happens.
pub trait World {
    /// Milliseconds that the effect takes, and how it ends.
    fn run(&mut self, state: &RunState, effect: &Effect) -> (i64, Outcome);

    /// Sees every event after it was applied.
    fn saw(&mut self, _state: &RunState, _at: UnixMs, _event: &Event) {}

    /// Does the process die here, with a stored batch as the last thing that it did?
    fn dies(&mut self) -> bool {
        false
    }
}

/// Stored batches: what an archive holds, in order.
pub type Stored = Vec<(UnixMs, Vec<Event>)>;

/// A run in a world.
#[derive(Debug)]
pub struct Driver<W> {
    /// The fold of `stored`.
    pub state: RunState,
    /// Virtual time.
    pub now: UnixMs,
    /// Every batch so far.
    pub stored: Stored,
    /// The world.
    pub world: W,
    /// Effects that were given up while in work, and how they would have ended.
    pub dropped: Vec<(Effect, Outcome)>,
    in_work: BTreeMap<EffectId, (UnixMs, Effect, Outcome)>,
    batches: usize,
}

impl<W: World> Driver<W> {
    /// A run that begins at `at` with the fact `start`.
    pub fn new(world: W, start: Event, at: UnixMs) -> Self {
        let mut driver = Self::idle(world, at);
        driver.turn(Some(start));
        driver
    }

    /// A run before its first fact.
    pub fn idle(world: W, at: UnixMs) -> Self {
        Self {
            state: RunState::new(),
            now: at,
            stored: Vec::new(),
            world,
            dropped: Vec::new(),
            in_work: BTreeMap::new(),
            batches: 0,
        }
    }

    /// One turn at `now`.
    pub fn turn(&mut self, fact: Option<Event>) {
        if let Some(fact) = fact {
            self.store(vec![fact]);
        }
        for _ in 0..BATCHES_MAX {
            if self.state.outcome().is_none() && self.world.dies() {
                return self.crash();
            }
            let batch = self.decided();
            if batch.is_empty() {
                return self.sync();
            }
            self.store(batch);
        }
        must(false, Decides, || {
            format!("{BATCHES_MAX} batches at {} and no end", self.now)
        });
    }

    fn decided(&mut self) -> Vec<Event> {
        let batch = self.state.decide(self.now);
        self.batches += 1;
        if self.batches.is_multiple_of(DETERMINISM_SAMPLE) {
            decides(&batch, &self.state.decide(self.now));
        } else {
            decides(&batch, &batch);
        }
        batch
    }

    fn store(&mut self, batch: Vec<Event>) {
        self.stored
            .push((self.now, Vec::with_capacity(batch.len())));
        for event in batch {
            if event.is_fact() || self.stored.len().is_multiple_of(STORAGE_SAMPLE) {
                survives_storage(&event);
            }
            let applied = self.state.apply(self.now, &event);
            must(applied.is_ok(), Accepts, || {
                format!("{applied:?}: {event:?}")
            });
            // Kept before it is looked at, so that a breach is found behind its event.
            let Some((_, kept)) = self.stored.last_mut() else {
                return;
            };
            kept.push(event);
            if let Some(event) = kept.last() {
                self.world.saw(&self.state, self.now, event);
            }
        }
    }

    fn sync(&mut self) {
        let wanted = self.state.wanted();
        let gone: Vec<EffectId> = self
            .in_work
            .keys()
            .filter(|id| !wanted.iter().any(|effect| effect.id() == **id))
            .cloned()
            .collect();
        for (_, effect, outcome) in gone.iter().filter_map(|id| self.in_work.remove(id)) {
            self.dropped.push((effect, outcome));
        }
        for effect in wanted {
            let id = effect.id();
            if self.in_work.contains_key(&id) {
                continue;
            }
            let (duration, outcome) = self.world.run(&self.state, &effect);
            let done = self.now.plus_ms(duration.max(1));
            self.in_work.insert(id, (done, effect, outcome));
        }
    }

    /// Moves to the next effect end or deadline and takes that turn; false when there is none.
    pub fn step(&mut self) -> bool {
        let next = self
            .in_work
            .values()
            .map(|(done, effect, _)| {
                let cut = self.state.effect_deadline(effect).unwrap_or(*done);
                ((*done).min(cut.max(self.now)), *done > cut, effect.clone())
            })
            .min();
        let tick = self.state.next_deadline(self.now);
        match (next, tick) {
            (Some((at, _, _)), Some(tick)) if tick < at => self.tick_at(tick),
            (Some((at, is_cut, effect)), _) => {
                self.now = self.now.max(at);
                if let Some((_, _, outcome)) = self.in_work.remove(&effect.id()) {
                    let end = if is_cut { cut() } else { outcome };
                    self.end(effect, end);
                }
            }
            (None, Some(tick)) => self.tick_at(tick),
            (None, None) => return false,
        }
        true
    }

    fn tick_at(&mut self, at: UnixMs) {
        self.now = at;
        self.turn(None);
    }

    /// Ends an effect now; a second end of the same effect is refused.
    pub fn end(&mut self, effect: Effect, end: Outcome) {
        let fact = Event::EffectEnded { effect, end };
        let checked = self.state.check(self.now, &fact);
        must(checked.is_ok(), Accepts, || {
            format!("{checked:?}: {fact:?}")
        });
        self.turn(Some(fact.clone()));
        must(self.state.check(self.now, &fact).is_err(), Accepts, || {
            format!("it could end twice: {fact:?}")
        });
    }

    /// Steps until the run is over or nothing can happen.
    pub fn run_to_end(&mut self) {
        for _ in 0..TURNS_MAX {
            if self.state.outcome().is_some() || !self.step() {
                return;
            }
        }
        must(false, Ends, || format!("{TURNS_MAX} turns and no end"));
    }

    /// The process dies and another one folds what is stored.
    pub fn crash(&mut self) {
        let folded = fold(&self.stored);
        must(folded == self.state, Fold, || {
            format!("of {} batches at a crash", self.stored.len())
        });
        self.state = folded;
        // What the dead process had begun may still answer.
        let begun = std::mem::take(&mut self.in_work);
        let late = begun.into_values().map(|(_, effect, end)| (effect, end));
        self.dropped.extend(late);
        self.resume();
    }

    /// A new process takes over.
    pub fn resume(&mut self) {
        let start = self.state.resumes() + 1;
        self.turn(Some(Event::RunResume { start }));
    }

    /// All events in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.stored.iter().flat_map(|(_, batch)| batch)
    }

    /// Index of the first such event.
    pub fn position(&self, what: impl Fn(&Event) -> bool) -> Option<usize> {
        self.events().position(what)
    }
}

/// What the controller reports of an effect that it cut.
#[must_use]
pub fn cut() -> Outcome {
    Outcome::Interrupted {
        fault: InfraFault::BudgetCut,
        detail: "cut by its deadline".to_owned(),
    }
}
