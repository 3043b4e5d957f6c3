//! A few dozen seeds of everything, and that a seed decides everything.

use vec_search::{Event, Outcome, ScoreResult};
use vec_sim::batch::{self, Batch, simulate};
use vec_sim::{nudged, replay, report};

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
