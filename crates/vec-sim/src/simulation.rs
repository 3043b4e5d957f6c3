//! One seed: a policy, a world, and what befalls the process that drives the run: crashes, stops and
//! reopenings, clock jumps, late and duplicate results.

use vec_search::Event;
use vec_types::{Phase, StopReason};

use crate::Invariant::{Accepts, Ends, Fold, Replay};
use crate::chaos::{Chaos, Climate};
use crate::driver::Driver;
use crate::random::Random;
use crate::rules::Rule;
use crate::{controls, fixture, fold, imports, must, policies, replay};

/// Turns of one simulation before it counts as one that does not end.
const TURNS_MAX: u32 = 20_000;

/// Every `IDLE_EVERY`-th seed has every rule of the wrapper off.
pub const IDLE_EVERY: u64 = 8;

/// Every `PERMUTED_EVERY`-th seed with control runs is run a second time with other results of them.
const PERMUTED_EVERY: u64 = 3;

/// Longest jump of the clock in milliseconds.
const JUMP_MS: u64 = 400_000;

/// A simulation of one seed, readable at any time, also after a breach.
#[derive(Debug)]
pub struct Simulation {
    /// The run and its world.
    pub driver: Driver<Chaos>,
    start: Vec<Event>,
    gets_data: bool,
    fate: Random,
    climate: Climate,
    /// The seed, if it is to be run again with other results of control runs.
    again: Option<u64>,
}

impl Simulation {
    /// The simulation of one seed, before its first event.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut fate = Random::new(seed.wrapping_mul(2) + 1);
        let climate = Climate {
            trouble: [0, 5, 15, 40][usize::try_from(seed % 4).unwrap_or_default()],
            longest_ms: [60_000, 20_000, 4_000][fate.index(3)],
            is_idle: seed % IDLE_EVERY == IDLE_EVERY - 2,
        };
        let policy = if climate.is_idle {
            policies::idle(&mut fate)
        } else {
            policies::any(&mut fate)
        };
        Self {
            driver: Driver::idle(Chaos::new(seed, climate), fixture::T0),
            start: vec![fixture::run_start(&policy)]
                .into_iter()
                .chain(imports::facts(&policy, &mut fate))
                .collect(),
            gets_data: !climate.is_idle && fate.hits(30),
            fate,
            climate,
            again: (seed.is_multiple_of(PERMUTED_EVERY) && policy.ablation).then_some(seed),
        }
    }

    /// The same in a world in which control runs say something else.
    #[must_use]
    pub fn permuted(seed: u64) -> Self {
        let mut simulation = Self::new(seed);
        let idle = Chaos::new(seed, simulation.climate);
        simulation.driver = Driver::idle(idle.permuted(), fixture::T0);
        simulation.again = None;
        simulation
    }

    /// Runs to the end and checks what must hold there.
    ///
    /// # Panics
    /// With the first invariant that is broken.
    pub fn run(&mut self) {
        for fact in std::mem::take(&mut self.start) {
            self.driver.turn(Some(fact));
        }
        for _ in 0..TURNS_MAX {
            if self.driver.state.outcome().is_some() || !self.driver.step() {
                self.check_end();
                return self.check_controls();
            }
            self.tally_end();
            self.disturb();
        }
        must(false, Ends, || format!("{TURNS_MAX} turns and no end"));
    }

    /// Every result was offered a second time by the driver.
    fn tally_end(&mut self) {
        self.driver.world.watch.tally.add(Rule::Duplicate);
    }

    fn add(&mut self, rule: Rule) {
        self.driver.world.watch.tally.add(rule);
    }

    fn disturb(&mut self) {
        self.late_results();
        let is_open = self.driver.state.outcome().is_none();
        if is_open && self.fate.hits(self.climate.trouble / 5) {
            self.add(Rule::Crash);
            self.driver.crash();
        }
        self.jump();
        self.mount_data();
        if self.driver.state.outcome().is_none() && self.fate.hits(self.climate.trouble / 20) {
            self.stop();
        }
        self.reopen();
        if self.fate.hits(3) {
            let driver = &self.driver;
            must(fold(&driver.stored) == driver.state, Fold, || {
                format!("of {} batches between two turns", driver.stored.len())
            });
        }
    }

    /// The clock jumps: anywhere, or, in final selection, which is short, behind its deadline.
    fn jump(&mut self) {
        let is_final = self.driver.state.phase() == Phase::Final;
        let rarity = if is_final { 3 } else { 15 };
        if !self.fate.hits(self.climate.trouble / rarity) {
            return;
        }
        self.add(Rule::ClockJump);
        let now = self.driver.now;
        let deadline = self.driver.state.deadlines();
        let deadline = deadline.map(|deadlines| deadlines.guard_deadline.max(now));
        let deadline = deadline.filter(|_| is_final && self.fate.hits(40));
        self.driver.now = match deadline {
            // Behind it the other deadlines are close.
            Some(deadline) => deadline.plus_ms(self.fate.ms(JUMP_MS / 40)),
            None => now.plus_ms(self.fate.ms(JUMP_MS)),
        };
        self.driver.turn(None);
    }

    /// New data comes at any time before final selection (EPO-01, EPO-03).
    fn mount_data(&mut self) {
        let state = &self.driver.state;
        let may = !matches!(state.phase(), Phase::Final | Phase::Stopped);
        if may && self.gets_data && self.fate.hits(1) {
            let epoch = self.driver.state.epoch() + 1;
            let added = vec![format!("data{epoch}")];
            let fact = Event::EpochAdvance { epoch, added };
            self.driver.turn(Some(fact));
        }
    }

    /// Results of effects that were given up are refused, however late they come.
    fn late_results(&mut self) {
        for (effect, end) in std::mem::take(&mut self.driver.dropped) {
            // Given up and asked for again: then it is not late.
            if self.driver.state.is_wanted(&effect) {
                continue;
            }
            self.add(Rule::Late);
            let fact = Event::EffectEnded { effect, end };
            let checked = self.driver.state.check(self.driver.now, &fact);
            must(checked.is_err(), Accepts, || {
                format!("a late result: {fact:?}")
            });
        }
    }

    fn stop(&mut self) {
        let reason = if self.fate.hits(50) {
            StopReason::Operator
        } else {
            StopReason::Infra
        };
        let resumes = self.driver.state.resumes();
        self.driver.turn(Some(Event::StopRequested {
            reason,
            detail: "somebody asks".to_owned(),
        }));
        let state = &self.driver.state;
        if state.resumes() != resumes && self.was_reopened() {
            // It died after its stop; the next process opens the run again.
            return;
        }
        let (phase, wanted) = (state.phase(), state.wanted());
        let has_stopped = phase == Phase::Stopped && wanted.is_empty();
        must(has_stopped, Ends, || {
            format!("after a stop it is {phase:?} and wants {wanted:?}")
        });
    }

    /// Did the newest restart follow a stop? A request that was not carried out yet outlives it.
    fn was_reopened(&self) -> bool {
        let mut last = (None, None);
        for event in self.driver.events() {
            match event {
                Event::Stop { .. } => last.0 = Some(event),
                Event::RunResume { .. } => last = (None, last.0),
                Event::StopRequested { .. } => last = (None, None),
                _ => {}
            }
        }
        last.1.is_some()
    }

    fn reopen(&mut self) {
        let state = &self.driver.state;
        let may = state.outcome().is_some() && state.resumable(self.driver.now).is_ok();
        if may && self.fate.hits(80) {
            self.add(Rule::Reopened);
            self.driver.resume();
        }
    }

    /// ABL-05.
    fn check_controls(&mut self) {
        let Some(seed) = self.again else { return };
        let mut other = Self::permuted(seed);
        other.run();
        self.add(Rule::ControlsPermuted);
        controls::decide_nothing(&self.driver.stored, &other.driver.stored);
    }

    fn check_end(&self) {
        let driver = &self.driver;
        driver.world.watch.ended(&driver.state, driver.now);
        must(fold(&driver.stored) == driver.state, Fold, || {
            "of the whole run".to_owned()
        });
        if let Err(problem) = replay(&driver.stored) {
            must(false, Replay, || problem);
        }
    }
}
