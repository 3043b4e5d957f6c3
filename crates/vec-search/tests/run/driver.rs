//! The controller's loop in miniature: one fact or tick per turn, decisions until none is left,
//! effects started from `wanted`, every event through its stored form.

use std::collections::BTreeMap;

use vec_search::{Effect, EffectId, Event, Outcome, RunState};
use vec_types::{InfraFault, UnixMs, canonical_json};

/// Batches in one turn before the run counts as one that never settles down.
const BATCHES_MAX: usize = 10_000;

/// Gives every effect an outcome and a duration in milliseconds.
pub(crate) trait World {
    fn run(&mut self, state: &RunState, effect: &Effect) -> (i64, Outcome);
    /// Sees every event after it was applied.
    fn saw(&mut self, _state: &RunState, _at: UnixMs, _event: &Event) {}
}

pub(crate) struct Driver<W> {
    pub(crate) state: RunState,
    pub(crate) now: UnixMs,
    pub(crate) stored: Vec<(UnixMs, Vec<Event>)>,
    pub(crate) world: W,
    in_work: BTreeMap<EffectId, (UnixMs, Effect, Outcome)>,
}

impl<W: World> Driver<W> {
    pub(crate) fn new(world: W, start: Event, at: UnixMs) -> Self {
        let mut driver = Self {
            state: RunState::new(),
            now: at,
            stored: Vec::new(),
            world,
            in_work: BTreeMap::new(),
        };
        driver.turn(Some(start));
        driver
    }

    /// One turn at `now`.
    pub(crate) fn turn(&mut self, fact: Option<Event>) {
        if let Some(fact) = fact {
            self.store(vec![fact]);
        }
        for _ in 0..BATCHES_MAX {
            let batch = self.state.decide(self.now);
            assert_eq!(
                batch,
                self.state.decide(self.now),
                "decide is not deterministic"
            );
            if batch.is_empty() {
                self.sync();
                return;
            }
            assert!(batch.iter().all(|event| !event.is_fact()), "{batch:?}");
            self.store(batch);
        }
        panic!("{BATCHES_MAX} batches at {} and no end", self.now);
    }

    /// Events pass through their stored bytes, as in the archive.
    fn store(&mut self, batch: Vec<Event>) {
        for event in &batch {
            let bytes = canonical_json(event).expect("encodes");
            let read: Event = serde_json::from_slice(&bytes).expect("decodes");
            assert_eq!(&read, event, "an event does not survive storage");
            let applied = self.state.apply(self.now, &read);
            applied.unwrap_or_else(|error| panic!("{error}: {event:?}"));
            self.world.saw(&self.state, self.now, event);
        }
        self.stored.push((self.now, batch));
    }

    fn sync(&mut self) {
        let wanted = self.state.wanted();
        self.in_work
            .retain(|id, _| wanted.iter().any(|effect| effect.id() == *id));
        for effect in wanted {
            if self.in_work.contains_key(&effect.id()) {
                continue;
            }
            let (duration, outcome) = self.world.run(&self.state, &effect);
            let done = self.now.plus_ms(duration.max(1));
            self.in_work.insert(effect.id(), (done, effect, outcome));
        }
    }

    /// Moves to the next effect end or deadline and takes that turn; false when there is none.
    pub(crate) fn step(&mut self) -> bool {
        let next = self
            .in_work
            .values()
            .map(|(done, effect, _)| {
                let cut = self.state.effect_deadline(effect).expect("known node");
                ((*done).min(cut.max(self.now)), *done > cut, effect.clone())
            })
            .min();
        let tick = self.state.next_deadline(self.now);
        match (next, tick) {
            (Some((at, _, _)), Some(tick)) if tick < at => self.tick_at(tick),
            (Some((at, is_cut, effect)), _) => {
                self.now = self.now.max(at);
                let (_, _, outcome) = self.in_work.remove(&effect.id()).expect("in work");
                let end = if is_cut { cut() } else { outcome };
                self.end(effect, end);
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

    /// Ends an effect now; a second end of the same effect must be refused.
    pub(crate) fn end(&mut self, effect: Effect, end: Outcome) {
        let fact = Event::EffectEnded { effect, end };
        self.state
            .check(self.now, &fact)
            .expect("wanted effects may end");
        self.turn(Some(fact.clone()));
        assert!(
            self.state.check(self.now, &fact).is_err(),
            "it ended twice: {fact:?}"
        );
    }

    pub(crate) fn run_to_end(&mut self) {
        for _ in 0..100_000 {
            if self.state.outcome().is_some() || !self.step() {
                return;
            }
        }
        panic!("the run does not end");
    }

    /// The process dies and another one folds what is stored.
    pub(crate) fn crash(&mut self) {
        let folded = fold(&self.stored);
        assert_eq!(folded, self.state, "the fold of the stored events differs");
        self.state = folded;
        self.in_work.clear();
        self.resume();
    }

    pub(crate) fn resume(&mut self) {
        let start = self.state.resumes() + 1;
        self.turn(Some(Event::RunResume { start }));
    }

    /// All events in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.stored.iter().flat_map(|(_, batch)| batch)
    }

    pub(crate) fn position(&self, what: impl Fn(&Event) -> bool) -> Option<usize> {
        self.events().position(what)
    }
}

pub(crate) fn cut() -> Outcome {
    Outcome::Interrupted {
        fault: InfraFault::BudgetCut,
        detail: "cut by its deadline".to_owned(),
    }
}

pub(crate) fn fold(stored: &[(UnixMs, Vec<Event>)]) -> RunState {
    let mut state = RunState::new();
    for (at, batch) in stored {
        for event in batch {
            state.apply(*at, event).expect("stored events apply");
        }
    }
    state
}

/// What `verify --replay` does: every decision batch is found again, and nothing more.
pub(crate) fn replay(stored: &[(UnixMs, Vec<Event>)]) -> Result<(), String> {
    let mut state = RunState::new();
    let mut last = UnixMs(0);
    for (index, (at, batch)) in stored.iter().enumerate() {
        let is_fact = batch.iter().any(Event::is_fact);
        let expected = if is_fact {
            state.decide(last)
        } else {
            state.decide(*at)
        };
        let found = if is_fact { &[][..] } else { &batch[..] };
        let (expected, found) = (canonical_json(&expected), canonical_json(found));
        if expected.expect("encodes") != found.expect("encodes") {
            return Err(format!("batch {index} at {at}: {batch:?}"));
        }
        for event in batch {
            state.apply(*at, event).map_err(|error| error.to_string())?;
        }
        last = *at;
    }
    if state.decide(last).is_empty() {
        Ok(())
    } else {
        Err("decisions are missing at the end".to_owned())
    }
}
