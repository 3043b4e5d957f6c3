//! Seeded simulations: random policies, results, faults, crashes, stops and clock jumps.

use vec_search::{
    Effect, Event, MethodState, Outcome, PlanResult, Policy, ReviewVerdict, RunState, ScoreResult,
};
use vec_types::{
    CandidateFault, Digest, InfraFault, Operator, Phase, SearchSeed, SeedState, StopReason, UnixMs,
};

use crate::driver::{Driver, World, fold, replay};
use crate::fixture::{self, commit, done, fault, planned, scored, seed_program, session, written};
use crate::invariants::Watch;
use crate::random::Random;

const SEEDS: u64 = 240;

struct Chaos {
    random: Random,
    watch: Watch,
    trouble: u64,
}

impl Chaos {
    fn infra(&mut self) -> Outcome {
        let fault = match self.random.below(3) {
            0 => InfraFault::ScoreError,
            1 => InfraFault::InfraOom,
            _ => InfraFault::Interrupted,
        };
        Outcome::Interrupted {
            fault,
            detail: "a daemon died".to_owned(),
        }
    }

    fn engineer(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        let node = state.node(effect.node()).expect("exists");
        let parent = node.parent.and_then(|id| state.node(id));
        let key = parent.and_then(|parent| parent.commit.cloned());
        match self.random.below(12) {
            0 => session(None, MethodState::Missing),
            1 => session(None, written("no program")),
            2 => session(
                key.or_else(|| Some(commit("same"))),
                written("NO_CHANGE: all tried"),
            ),
            3 => session(Some(commit(&node.id.to_string())), MethodState::Placeholder),
            4 => session(Some(commit("twin")), written("a twin")),
            _ => session(Some(commit(&node.id.to_string())), written("method")),
        }
    }

    fn execute(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        let Effect::Execute { node, exec } = effect else {
            return self.infra();
        };
        let policy = state.policy().expect("started");
        let faults = [
            CandidateFault::Crash,
            CandidateFault::Oom,
            CandidateFault::Timeout,
            CandidateFault::Hung,
        ];
        if self.random.hits(self.trouble) {
            return fault(faults[usize::try_from(self.random.below(4)).expect("fits")]);
        }
        // Some outputs are shared, so that identity groups and no-progress nodes exist.
        let output = match self.random.below(10) {
            0 => format!("shared/{exec}"),
            _ => format!("{node}/{exec}"),
        };
        let wall_ms = i64::try_from(self.random.below(20_000)).expect("fits");
        done(policy, *exec, &output, wall_ms)
    }

    fn score(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        if self.random.hits(self.trouble / 2) {
            return Outcome::Scored {
                result: ScoreResult::InvalidFormat {
                    detail: "NaN".to_owned(),
                },
            };
        }
        let policy = state.policy().expect("started");
        let quality = 50.0 + f64::from(effect.node().0) * 0.1 + self.random.normal();
        // Ties are frequent on purpose.
        scored(
            policy,
            if self.random.hits(30) {
                quality.round()
            } else {
                quality
            },
        )
    }

    fn outcome(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        if self.random.hits(self.trouble / 2) {
            return self.infra();
        }
        match effect {
            Effect::ImportSeed { program, .. } => Outcome::Imported {
                commit: commit(program.as_str()),
            },
            Effect::Plan { .. } if self.random.hits(self.trouble) => Outcome::Planned {
                result: PlanResult::Invalid {
                    error: "no approach".to_owned(),
                },
            },
            Effect::Plan { .. } => planned(),
            Effect::Comply { .. } => Outcome::Complied {
                removed: 1,
                emptied: self.random.hits(self.trouble / 2),
            },
            Effect::Engineer { .. } => self.engineer(state, effect),
            Effect::Execute { .. } => self.execute(state, effect),
            Effect::Score { .. } => self.score(state, effect),
            Effect::Analyze { .. } => Outcome::Analyzed {
                written: self.random.hits(80),
                family: None,
            },
            Effect::Review { .. } => Outcome::Reviewed {
                verdict: match self.random.below(6) {
                    0 => ReviewVerdict::Fail,
                    1 => ReviewVerdict::Error,
                    _ => ReviewVerdict::Pass,
                },
            },
            Effect::Place { .. } => Outcome::Placed {
                sha256: (!self.random.hits(self.trouble / 4)).then(|| Digest::of(b"answer")),
            },
        }
    }
}

impl World for Chaos {
    fn run(&mut self, state: &RunState, effect: &Effect) -> (i64, Outcome) {
        let duration = i64::try_from(self.random.below(60_000)).expect("fits");
        (duration, self.outcome(state, effect))
    }

    fn saw(&mut self, state: &RunState, _: UnixMs, event: &Event) {
        self.watch.saw(state, event);
    }
}

fn random_policy(random: &mut Random) -> Policy {
    let mut policy = fixture::policy();
    let small = |random: &mut Random, n| u32::try_from(random.below(n)).expect("fits");
    policy.search_seed = SearchSeed(small(random, 1 << 30));
    policy.concurrency_nodes = 1 + small(random, 4);
    policy.budget.max_nodes = small(random, 40);
    policy.draft_p = f64::from(small(random, 50)) / 100.0;
    policy.debug_p = f64::from(small(random, 50)) / 100.0;
    policy.select.streak_counts_gen = random.hits(30);
    policy
        .families
        .truncate(usize::try_from(random.below(3)).expect("fits"));
    if random.hits(30) {
        policy.budget.wall_ms = 900_000;
    }
    if random.hits(40) {
        policy
            .seed_programs
            .push(seed_program("ref", SeedState::ReferenceOnly));
    }
    if random.hits(30) {
        policy.objective.insert("side".parse().expect("id"), 0.5);
        policy
            .ruler_views
            .insert("side".parse().expect("id"), "side".parse().expect("id"));
    }
    policy
        .guard
        .fresh_seeds
        .truncate(2 + usize::try_from(random.below(4)).expect("fits"));
    policy
        .promotion_seeds
        .truncate(usize::try_from(random.below(3)).expect("fits"));
    policy
}

/// Crashes, stops with and without resume, clock jumps, duplicate results.
fn disturb(driver: &mut Driver<Chaos>, chaos: &mut Random, trouble: u64) {
    if driver.state.outcome().is_none() && chaos.hits(trouble / 5) {
        driver.crash();
    }
    if chaos.hits(trouble / 15) {
        let gap = i64::try_from(chaos.below(400_000)).expect("fits");
        driver.now = driver.now.plus_ms(gap);
        driver.turn(None);
    }
    if driver.state.outcome().is_none() && chaos.hits(trouble / 20) {
        let reason = if chaos.hits(50) {
            StopReason::Operator
        } else {
            StopReason::Infra
        };
        driver.turn(Some(Event::StopRequested {
            reason,
            detail: "a test asks".to_owned(),
        }));
        assert_eq!(driver.state.phase(), Phase::Stopped);
        assert!(driver.state.wanted().is_empty());
    }
    let is_reopenable =
        driver.state.outcome().is_some() && driver.state.resumable(driver.now).is_ok();
    if is_reopenable && chaos.hits(80) {
        driver.resume();
    }
}

fn simulate(seed: u64) -> Driver<Chaos> {
    let mut chaos = Random::new(seed.wrapping_mul(2) + 1);
    let policy = random_policy(&mut chaos);
    let trouble = [0, 5, 15, 40][usize::try_from(seed % 4).expect("fits")];
    let world = Chaos {
        random: Random::new(seed),
        watch: Watch::default(),
        trouble,
    };
    let mut driver = Driver::new(world, fixture::run_start(&policy), fixture::T0);
    for _ in 0..20_000 {
        if driver.state.outcome().is_some() || !driver.step() {
            break;
        }
        disturb(&mut driver, &mut chaos, trouble);
        if chaos.hits(3) {
            assert_eq!(fold(&driver.stored), driver.state, "seed {seed}");
        }
    }
    driver
}

fn check_end(seed: u64, driver: &Driver<Chaos>) {
    let state = &driver.state;
    let outcome = state
        .outcome()
        .unwrap_or_else(|| panic!("seed {seed} does not end"));
    assert!(
        state.nodes().all(|node| node.settled_at.is_some()),
        "seed {seed}"
    );
    assert!(state.wanted().is_empty() && state.next_deadline(driver.now).is_none());
    driver.world.watch.check_final_order();
    assert_eq!(replay(&driver.stored), Ok(()), "seed {seed}");
    if let Some(winner) = outcome.winner.filter(|_| !outcome.winner_is_baseline) {
        let verdict = state.guard_verdict().expect("a verdict");
        assert!(verdict.replace && verdict.complete && verdict.candidate == winner);
        assert!(verdict.lower_bound.is_some_and(|bound| bound > 0.0));
        let node = state.node(winner).expect("exists");
        assert!(node.operator == Operator::Seed || node.review == "pass");
        assert_ne!(node.seed_state, Some(SeedState::ReferenceOnly));
    }
    let status = state.status(driver.now);
    let text = serde_json::to_string(&status).expect("encodes");
    assert_eq!(
        serde_json::from_str::<vec_search::RunStatus>(&text).expect("decodes"),
        status
    );
}

#[test]
fn seeded_runs_keep_every_invariant() {
    let mut ends = std::collections::BTreeMap::<String, u32>::new();
    for seed in 0..SEEDS {
        let driver = simulate(seed);
        check_end(seed, &driver);
        let outcome = driver.state.outcome().expect("ended");
        let answer = match (outcome.winner, outcome.winner_is_baseline) {
            (None, _) => "none",
            (Some(_), true) => "baseline",
            (Some(_), false) => "candidate",
        };
        *ends
            .entry(format!("{}/{answer}", outcome.reason.as_str()))
            .or_insert(0) += 1;
    }
    // The simulation proves itself only if it reaches every kind of end.
    for end in [
        "budget/baseline",
        "budget/candidate",
        "budget/none",
        "infra/none",
        "operator/none",
    ] {
        assert!(ends.contains_key(end), "no run ended as {end}: {ends:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in [3, 6, 7] {
        assert_eq!(simulate(seed).stored, simulate(seed).stored);
    }
}

/// A changed score is named by replay, whether or not a decision would change.
#[test]
fn replay_finds_every_changed_score() {
    let driver = simulate(4);
    let mut changed = 0;
    for index in 0..driver.stored.len() {
        let mut stored = driver.stored.clone();
        let Some(Event::EffectEnded {
            end:
                Outcome::Scored {
                    result: ScoreResult::Done { report },
                },
            ..
        }) = stored[index].1.first_mut()
        else {
            continue;
        };
        let total = vec_types::Score::new(report.total.get() + 1e-9).expect("finite");
        report.total = total;
        changed += 1;
        assert!(replay(&stored).is_err(), "score in batch {index}");
    }
    assert!(changed > 10, "{changed}");
}
