//! Controls: each invariant of the watch is broken by a history that is changed on purpose, so none
//! of them holds by doing nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vec_search::{Effect, Event, RunState, SelectReason};
use vec_sim::batch::simulate;
use vec_sim::{Driver, IDLE_EVERY, Invariant, Watch, World, breach, fixture, fold};
use vec_types::{NodeId, NodeStatus, Operator, StopReason};

/// A seed in which faults, reviews, promotions and a guard happen.
const BUSY_SEED: u64 = 10;

/// What the watch is shown instead of an event, and what is changed in its book before.
type Doctor = fn(&mut Watch, &Event) -> Vec<Event>;

/// The invariant that is broken when the watch sees the run of `seed` through `doctor`.
fn broken(seed: u64, mut watch: Watch, doctor: Doctor) -> Option<Invariant> {
    let stored = simulate(seed).0.driver.stored;
    let mut state = RunState::new();
    let seen = catch_unwind(AssertUnwindSafe(|| {
        for (at, batch) in &stored {
            for event in batch {
                state.apply(*at, event).expect("stored");
                for shown in doctor(&mut watch, event) {
                    watch.saw(&state, *at, &shown);
                }
            }
        }
    }));
    text(seen.err()?.as_ref())
}

fn text(payload: &(dyn std::any::Any + Send)) -> Option<Invariant> {
    let text = payload.downcast_ref::<String>().expect("text");
    Some(breach(text).unwrap_or_else(|| panic!("{text}")).0)
}

fn same(event: &Event) -> Vec<Event> {
    vec![event.clone()]
}

fn twice(event: &Event) -> Vec<Event> {
    vec![event.clone(), event.clone()]
}

/// The parent's entry before a settlement of the wanted kind.
fn at_settlement(watch: &mut Watch, event: &Event, shelved: bool, change: fn(&mut u64, &mut u64)) {
    let Event::NodeSettled { node, status, .. } = event else {
        return;
    };
    let parent = watch.book.entry(*node).and_then(|entry| entry.parent);
    let entry = parent.and_then(|id| watch.book.nodes.get_mut(id.0 as usize));
    if let Some(entry) = entry.filter(|_| status.is_shelved() == shelved) {
        change(&mut entry.visits, &mut entry.virtual_visits);
    }
}

#[test]
fn the_true_history_breaks_nothing() {
    for seed in 0..8 {
        let watch = match seed % IDLE_EVERY {
            6 => Watch::over_idle(),
            _ => Watch::default(),
        };
        assert_eq!(broken(seed, watch, |_, event| same(event)), None);
    }
}

#[test]
fn visits_virtual_visits_and_shelved_nodes() {
    let cases: [(Invariant, Doctor); 3] = [
        (Invariant::VirtualVisits, |watch, event| {
            at_settlement(watch, event, false, |_, running| *running += 1);
            same(event)
        }),
        (Invariant::Visits, |watch, event| {
            at_settlement(watch, event, false, |visits, _| *visits += 1);
            same(event)
        }),
        (Invariant::Shelved, |watch, event| {
            at_settlement(watch, event, true, |visits, _| *visits += 1);
            same(event)
        }),
    ];
    for (invariant, doctor) in cases {
        assert_eq!(broken(BUSY_SEED, Watch::default(), doctor), Some(invariant));
    }
}

#[test]
fn what_happens_once_happens_once() {
    let cases: [(Invariant, Doctor); 4] = [
        (Invariant::SettledOnce, |_, event| match event {
            Event::NodeSettled { .. } => twice(event),
            _ => same(event),
        }),
        (Invariant::Effects, |_, event| match event {
            Event::EffectEnded { .. } => twice(event),
            _ => same(event),
        }),
        (Invariant::Effects, |_, event| match event {
            Event::EffectStarted { .. } => Vec::new(),
            _ => same(event),
        }),
        (Invariant::Draws, |_, event| match event {
            Event::Draw { .. } => twice(event),
            _ => same(event),
        }),
    ];
    for (invariant, doctor) in cases {
        assert_eq!(broken(BUSY_SEED, Watch::default(), doctor), Some(invariant));
    }
}

#[test]
fn a_seed_program_is_tried_three_times_at_most() {
    let found = broken_somewhere(|_, event| match event {
        Event::NodeCreated {
            operator: Operator::Seed,
            ..
        } => [twice(event), twice(event)].concat(),
        _ => same(event),
    });
    assert_eq!(found, Some(Invariant::Limits));
}

/// Shows every selection of an improve with other ranks or other U.
fn restood(event: &Event, rank: Option<f64>, bits: u64) -> Vec<Event> {
    let mut event = event.clone();
    if let Event::Select {
        parent,
        reason,
        standings,
        ..
    } = &mut event
        && *reason != SelectReason::DebugTarget
    {
        for standing in standings.iter_mut() {
            standing.rank = rank.unwrap_or(standing.rank);
            if standing.node == *parent {
                standing.u = f64::from_bits(standing.u.to_bits() + bits);
            }
        }
    }
    vec![event]
}

#[test]
fn standings_fit_scores_failures_the_rules_and_the_reference() {
    let busy = Watch::default;
    let outranks = broken(BUSY_SEED, busy(), |watch, event| {
        let is_failure = |status: NodeStatus| status.is_in_tree() && status != NodeStatus::Scored;
        let mut entries = watch.book.nodes.iter();
        let fails = entries.any(|entry| is_failure(entry.status));
        restood(event, fails.then_some(0.0), 0)
    });
    assert_eq!(outranks, Some(Invariant::Outranks));
    let standings = broken(BUSY_SEED, busy(), |_, event| restood(event, Some(1.0), 0));
    assert_eq!(standings, Some(Invariant::Standings));
    let idle = broken(IDLE_EVERY - 2, Watch::over_idle(), |_, event| {
        restood(event, None, 1)
    });
    assert_eq!(idle, Some(Invariant::Idle));
    let naive = broken(BUSY_SEED, busy(), |_, event| match event {
        Event::Select { .. } => Vec::new(),
        _ => same(event),
    });
    assert_eq!(naive, Some(Invariant::Naive));
}

/// The invariant that is broken in the first seed in which `doctor` has something to change.
fn broken_somewhere(doctor: Doctor) -> Option<Invariant> {
    let seeds = (0..60).filter(|seed| seed % IDLE_EVERY != IDLE_EVERY - 2);
    seeds
        .filter_map(|seed| broken(seed, Watch::default(), doctor))
        .next()
}

/// The event with a change.
fn changed(event: &Event, change: impl FnOnce(&mut Event)) -> Vec<Event> {
    let mut event = event.clone();
    change(&mut event);
    vec![event]
}

#[test]
fn the_guard_waits_for_the_baseline() {
    let found = broken_somewhere(|_, event| match event {
        Event::EffectEnded {
            effect: Effect::Place { .. },
            ..
        } => Vec::new(),
        _ => same(event),
    });
    assert_eq!(found, Some(Invariant::Final));
}

#[test]
fn plateaus_promotions_and_finalists_are_compared() {
    let plateau = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::Plateau { active, .. } = event {
                *active = !*active;
            }
        })
    });
    assert_eq!(plateau, Some(Invariant::Plateau));
    let mean = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::PromotionDone { mean, .. } = event {
                *mean = vec_sim::nudged(*mean);
            }
        })
    });
    assert_eq!(mean, Some(Invariant::Promotion));
    let seeds = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::PromotionStart { execs, .. } = event {
                execs.clear();
            }
        })
    });
    assert_eq!(seeds, Some(Invariant::Promotion));
    let finalists = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::FinalStart { candidates, .. } = event {
                candidates.push(NodeId(0));
            }
        })
    });
    assert_eq!(finalists, Some(Invariant::Slate));
    let promoted = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::PromotionStart { node, .. } = event {
                *node = NodeId(0);
            }
        })
    });
    assert_eq!(promoted, Some(Invariant::Slate));
}

#[test]
fn carried_over_work_and_draws_are_compared() {
    let found = broken_somewhere(|watch, event| {
        if let Event::ResumePick { .. } = event {
            watch.book.works.clear();
            watch.book.resumed = u32::MAX;
        }
        same(event)
    });
    assert_eq!(found, Some(Invariant::Naive));
    let drawn = broken_somewhere(|_, event| {
        changed(event, |event| {
            if let Event::Draw { u, .. } = event {
                *u = 0.999_999;
            }
        })
    });
    assert_eq!(drawn, Some(Invariant::Naive));
}

#[test]
fn a_run_that_is_not_over_does_not_pass_as_one() {
    let mut driver = simulate(BUSY_SEED).0.driver;
    driver.stored.truncate(40);
    let state = fold(&driver.stored);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        Watch::default().ended(&RunState::new(), driver.now);
    }));
    assert_eq!(
        text(ended.expect_err("not over").as_ref()),
        Some(Invariant::Ends)
    );
    assert!(state.outcome().is_none());
}

/// A world in which nothing comes to an end.
struct Still;

impl World for Still {
    fn run(&mut self, _: &RunState, _: &Effect) -> (i64, vec_search::Outcome) {
        (i64::MAX / 4, vec_sim::cut())
    }
}

#[test]
fn the_driver_notices_lost_events_and_facts_that_do_not_fit() {
    let start = || Driver::new(Still, fixture::run_start(&fixture::policy()), fixture::T0);
    let mut driver = start();
    driver.turn(Some(Event::StopRequested {
        reason: StopReason::Operator,
        detail: String::new(),
    }));
    driver.stored.pop();
    let crashed = catch_unwind(AssertUnwindSafe(|| driver.crash()));
    assert_eq!(
        text(crashed.expect_err("lost").as_ref()),
        Some(Invariant::Fold)
    );
    let mut driver = start();
    let node = NodeId(7);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        driver.end(Effect::Plan { node }, vec_sim::cut());
    }));
    assert_eq!(
        text(ended.expect_err("unknown").as_ref()),
        Some(Invariant::Accepts)
    );
}
