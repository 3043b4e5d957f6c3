//! A few dozen seeds of everything, and that a seed decides everything.

use std::collections::BTreeSet;

use vec_search::{Event, Outcome, ScoreResult};
use vec_sim::batch::{self, Batch, simulate};
use vec_sim::{Simulation, control_results, nudged, replay, report};

#[test]
fn forty_seeds_keep_every_invariant() {
    let (first, seeds, jobs) = (0, 40, batch::cores());
    let outcome = batch::run(Batch { first, seeds, jobs }, &|| {});
    let failure = outcome.failure.map(|f| report::failure(&f, "vec-sim"));
    assert_eq!(failure, None);
    assert_eq!(outcome.seeds, seeds);
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in [3, 6, 7] {
        let stored = |seed| simulate(seed).0.driver.stored;
        assert_eq!(stored(seed), stored(seed));
        assert_ne!(stored(seed), stored(seed + 100));
    }
}

/// A changed score is named by replay, whether or not a decision would change.
#[test]
fn replay_finds_every_changed_score() {
    let stored = simulate(4).0.driver.stored;
    assert_eq!(replay(&stored), Ok(()));
    let mut changed = 0;
    for index in 0..stored.len() {
        let mut forged = stored.clone();
        let Some(Event::EffectEnded {
            end:
                Outcome::Scored {
                    result: ScoreResult::Done { report },
                },
            ..
        }) = forged[index].1.first_mut()
        else {
            continue;
        };
        report.total = nudged(report.total);
        changed += 1;
        let found = replay(&forged);
        assert!(found.is_err(), "score in batch {index}");
    }
    assert!(changed > 10, "{changed}");
}

/// A simulation with control runs compares both worlds itself; here: the results are really others.
#[test]
fn the_other_world_has_other_results_of_control_runs() {
    let mut changes = BTreeSet::new();
    for seed in 0..20 {
        let mut mine = Simulation::new(seed);
        mine.run();
        let mut other = Simulation::permuted(seed);
        other.run();
        let words = |simulation: &Simulation| {
            let results = control_results(&simulation.driver.stored).into_iter();
            let words = results.filter_map(|event| match event {
                Event::AblationResult {
                    node,
                    mechanism_active,
                    ..
                } => Some((node.0, format!("{mechanism_active:?}"))),
                _ => None,
            });
            words.collect::<Vec<_>>()
        };
        for ((node, before), (same, after)) in words(&mine).into_iter().zip(words(&other)) {
            assert_eq!(node, same);
            changes.insert(format!("{before} {after}"));
        }
    }
    for change in ["Yes No", "No Yes", "Yes Unclear", "No Unclear"] {
        assert!(changes.contains(change), "{change}: {changes:?}");
    }
}
