//! Promotion, reviews, final selection and the guard.

use vec_search::{Event, MethodState, Outcome, Policy, ReviewVerdict, SkipReason};
use vec_types::{CandidateFault, ExecName, InfraFault, NodeId, ProgramSeed, StopReason};

use crate::driver::{Driver, replay};
use crate::fixture::{T0, commit, done, fault, policy, scored, session};
use crate::world::Script;

/// `nodes` improves of the anchor; node k+1 is the k-th.
fn improves(nodes: u32) -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = nodes;
    policy
}

fn ended(script: Script, policy: &Policy) -> Driver<Script> {
    let mut driver = script.start(policy);
    driver.run_to_end();
    assert_eq!(replay(&driver.stored), Ok(()));
    driver
}

fn reviewed(verdict: ReviewVerdict) -> Outcome {
    Outcome::Reviewed { verdict }
}

fn winner(driver: &Driver<Script>) -> Option<NodeId> {
    driver.state.outcome().expect("ended").winner
}

#[test]
fn a_better_candidate_replaces_the_baseline_in_the_documented_order() {
    let script = Script::default().score(0, 50.0).score(1, 60.0);
    let driver = ended(script, &improves(1));
    assert_eq!(winner(&driver), Some(NodeId(1)));
    let verdict = driver.state.guard_verdict().expect("a verdict");
    assert!(verdict.complete && verdict.replace, "{}", verdict.why);
    assert_eq!(verdict.pairs.len(), 5);
    let order = [
        "place-0-provisional",
        "score-1-fresh7",
        "execute-1-final",
        "place-1",
    ];
    let at: Vec<usize> = order
        .iter()
        .map(|id| {
            driver
                .world
                .ended
                .iter()
                .position(|e| e == id)
                .expect("ended")
        })
        .collect();
    assert!(at.is_sorted(), "{:?}", driver.world.ended);
    let node = driver.state.node(NodeId(1)).expect("exists");
    assert_eq!((node.review, node.promotion), ("pass", "done"));
    let mean = (60.0 + 60.002 + 60.004) / 3.0;
    assert_eq!(node.ranking_score.map(f64::from), Some(mean));
    assert_eq!(
        driver.state.outcome().expect("ended").reason,
        StopReason::Budget
    );
}

#[test]
fn a_worse_candidate_leaves_the_baseline_and_no_other_is_tried() {
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 49.0)
        .score(2, 48.0);
    let driver = ended(script, &improves(2));
    assert_eq!(winner(&driver), Some(NodeId(0)));
    let verdict = driver.state.guard_verdict().expect("a verdict");
    assert_eq!((verdict.candidate, verdict.complete), (NodeId(1), true));
    let guards = driver
        .events()
        .filter(|e| matches!(e, Event::GuardStart { .. }));
    assert_eq!(guards.count(), 1);
    assert!(driver.world.ended.contains(&"place-0".to_owned()));
}

#[test]
fn an_incomplete_guard_keeps_the_baseline() {
    let policy = improves(1);
    let lost = Outcome::Interrupted {
        fault: InfraFault::ScoreError,
        detail: "worker died".to_owned(),
    };
    let long = policy.budget.wall_ms;
    for (effect, outcome) in [
        ("execute-1-fresh4", fault(CandidateFault::Crash)),
        ("score-0-fresh5", lost),
    ] {
        let script = Script::default().score(0, 50.0).score(1, 60.0);
        let driver = ended(script.with(effect, outcome), &policy);
        check_incomplete(&driver, effect);
    }
    let script = Script::default().score(0, 50.0).score(1, 60.0);
    let driver = ended(script.lasting("execute-1-fresh6", long), &policy);
    check_incomplete(&driver, "deadline");
}

fn check_incomplete(driver: &Driver<Script>, why: &str) {
    let verdict = driver.state.guard_verdict().expect("a verdict");
    assert!(!verdict.complete && !verdict.replace, "{why}");
    assert_eq!(verdict.lower_bound, None);
    assert_eq!(winner(driver), Some(NodeId(0)), "{why}");
}

#[test]
fn equal_gains_of_unequal_outputs_are_no_evidence() {
    let policy = improves(1);
    let mut script = Script::default();
    for seed in 3..8 {
        script = script
            .with(&format!("score-0-fresh{seed}"), scored(&policy, 50.0))
            .with(&format!("score-1-fresh{seed}"), scored(&policy, 60.0));
    }
    let driver = ended(script.score(1, 60.0), &policy);
    check_incomplete(&driver, "spread 0");
}

#[test]
fn refused_and_unreviewable_candidates_are_skipped() {
    let error = || reviewed(ReviewVerdict::Error);
    let refused = Script::default().with("review-1-0", reviewed(ReviewVerdict::Fail));
    let unreviewable = Script::default()
        .with("review-1-0", error())
        .with("review-1-1", error());
    for script in [refused, unreviewable] {
        let driver = ended(script.score(0, 50.0).score(1, 40.0), &improves(1));
        let skipped = driver.state.skipped();
        assert_eq!(skipped.get(&NodeId(1)), Some(&SkipReason::Review));
        assert_eq!(winner(&driver), Some(NodeId(0)));
        assert!(!driver.world.ended.contains(&"review-1-2".to_owned()));
    }
    let once = Script::default().with("review-1-0", error());
    let driver = ended(once.score(0, 50.0).score(1, 60.0), &improves(1));
    assert_eq!(winner(&driver), Some(NodeId(1)), "the second call counts");
}

#[test]
fn a_node_that_review_refused_is_no_parent() {
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 90.0)
        .lasting("review-1-0", 1)
        .with("review-1-0", reviewed(ReviewVerdict::Fail));
    let driver = ended(script, &improves(4));
    let parents: Vec<Option<NodeId>> = driver.state.nodes().skip(3).map(|n| n.parent).collect();
    assert!(!parents.contains(&Some(NodeId(1))), "{parents:?}");
}

#[test]
fn without_a_written_baseline_there_is_no_answer() {
    for (effect, outcome) in [
        ("execute-0-final", fault(CandidateFault::Crash)),
        ("place-0-provisional", Outcome::Placed { sha256: None }),
    ] {
        let driver = ended(Script::default().with(effect, outcome), &improves(1));
        assert_eq!(winner(&driver), None);
        assert!(driver.state.refusal().is_some());
        assert!(driver.state.guard_verdict().is_none());
        assert!(driver.state.resumable(driver.now).is_err());
    }
}

#[test]
fn a_winner_that_cannot_be_placed_leaves_the_baseline() {
    let policy = improves(1);
    for (effect, outcome) in [
        ("execute-1-final", fault(CandidateFault::Timeout)),
        ("place-1", Outcome::Placed { sha256: None }),
    ] {
        let script = Script::default().score(0, 50.0).score(1, 60.0);
        let driver = ended(script.with(effect, outcome), &policy);
        assert!(driver.state.guard_verdict().expect("a verdict").replace);
        assert_eq!(winner(&driver), Some(NodeId(0)), "{effect}");
    }
    let script = Script::default().score(0, 50.0).score(1, 60.0);
    let driver = ended(
        script.lasting("execute-1-final", policy.budget.wall_ms),
        &policy,
    );
    assert_eq!(winner(&driver), Some(NodeId(0)), "out of time");
}

#[test]
fn at_the_hard_end_a_written_baseline_is_the_answer() {
    let policy = improves(1);
    let script = Script::default().score(0, 50.0).score(1, 60.0);
    let mut driver = script.start(&policy);
    while !driver
        .world
        .ended
        .contains(&"place-0-provisional".to_owned())
    {
        assert!(driver.step());
    }
    driver.now = T0.plus_ms(policy.budget.wall_ms);
    driver.turn(None);
    assert_eq!(winner(&driver), Some(NodeId(0)));
    assert_eq!(replay(&driver.stored), Ok(()));
}

#[test]
fn a_placeholder_method_blocks_promotion_until_a_review_passes() {
    let auto = || session(Some(commit("1")), MethodState::Placeholder);
    let position = |driver: &Driver<Script>| {
        driver.position(|e| {
            matches!(
                e,
                Event::PromotionStart {
                    node: NodeId(1),
                    ..
                }
            )
        })
    };
    // Below the best seed, so only the placeholder rule asks for a review.
    let script = || {
        Script::default()
            .score(0, 50.0)
            .score(1, 40.0)
            .with("engineer-1", auto())
    };
    let passed = ended(script(), &improves(3));
    let review = passed.position(|event| {
        matches!(event, Event::EffectEnded { effect, .. } if effect.id().as_str() == "review-1-0")
    });
    assert!(review.expect("reviewed") < position(&passed).expect("promoted"));
    let refused = script().with("review-1-0", reviewed(ReviewVerdict::Fail));
    assert_eq!(position(&ended(refused, &improves(3))), None);
}

#[test]
fn equal_candidates_are_promoted_and_chosen_once() {
    let policy = improves(2);
    let twin = || done(&policy, ExecName::Seed(ProgramSeed(0)), "twin", 5);
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .score(2, 55.0)
        .with("execute-1-seed0", twin())
        .with("execute-2-seed0", twin());
    let driver = ended(script, &policy);
    assert_eq!(driver.state.final_candidates(), [NodeId(1)]);
    let node = driver.state.node(NodeId(2)).expect("exists");
    assert_eq!(node.promotion, "none");
}

#[test]
fn a_failing_promotion_seed_takes_the_node_out() {
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .with("execute-1-seed2", fault(CandidateFault::Crash));
    let driver = ended(script, &improves(2));
    let node = driver.state.node(NodeId(1)).expect("exists");
    assert_eq!(node.promotion, "failed");
    assert_eq!(node.ranking_score.map(f64::from), Some(60.0));
    assert!(!driver.state.final_candidates().contains(&NodeId(1)));
}

#[test]
fn an_abandoned_promotion_is_finished_in_final_selection() {
    let policy = improves(9);
    let times = vec_search::Deadlines::new(T0, &policy.budget);
    let until_settling = times.settle_deadline.since_ms(T0);
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .lasting("execute-1-seed1", until_settling)
        .lasting("engineer-2", until_settling);
    let mut driver = script.start(&policy);
    while driver.now < times.settle_deadline {
        assert!(driver.step());
    }
    let abandoned = driver.position(|e| matches!(e, Event::PromotionFailed { .. }));
    assert!(abandoned.is_some());
    driver.world.durations.clear();
    driver.run_to_end();
    assert_eq!(winner(&driver), Some(NodeId(1)));
    let generations: Vec<u32> = driver
        .events()
        .filter_map(|event| match event {
            Event::PromotionStart { generation, .. } => Some(*generation),
            _ => None,
        })
        .collect();
    assert_eq!(generations, [0, 1]);
}

#[test]
fn measured_run_times_move_the_guards_deadline() {
    let policy = improves(1);
    let slow = done(&policy, ExecName::Final, "0/final", 40_000);
    let mut driver = Script::default()
        .with("execute-0-final", slow)
        .start(&policy);
    driver.run_to_end();
    let times = driver.state.deadlines().expect("started");
    assert_eq!(times.place_deadline.since_ms(times.guard_deadline), 60_000);
    assert_eq!(times.stop_at.since_ms(times.place_deadline), 10_000);
}

#[test]
fn a_child_with_its_parents_output_never_takes_the_parents_place() {
    let mut policy = improves(2);
    // A promoted parent would stand for both anyway (PRO-05).
    policy.promotion_top_k = 0;
    let twin = || done(&policy, ExecName::Seed(ProgramSeed(0)), "twin", 5);
    // Node 2 improves node 1, gives the same prediction, and its score is a little higher.
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .score(2, 61.0)
        .with("execute-1-seed0", twin())
        .with("execute-2-seed0", twin());
    let driver = ended(script, &policy);
    let child = driver.state.node(NodeId(2)).expect("exists");
    assert_eq!((child.parent, child.no_progress), (Some(NodeId(1)), true));
    assert_eq!(driver.state.final_candidates(), [NodeId(1)]);
}

#[test]
fn equal_scores_on_three_seeds_make_one_candidate() {
    // Nodes 1 and 4 differ in program and prediction, but agree on every seed.
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .score(2, 40.0)
        .score(3, 41.0)
        .score(4, 60.0);
    let driver = ended(script, &improves(6));
    let node = driver.state.node(NodeId(4)).expect("exists");
    assert_eq!(
        node.promotion, "done",
        "both were promoted before they were known as one"
    );
    let candidates = driver.state.final_candidates();
    assert!(candidates.contains(&NodeId(1)), "{candidates:?}");
    assert!(!candidates.contains(&NodeId(4)), "{candidates:?}");
}

#[test]
fn a_late_answer_does_not_push_out_the_kept_baseline() {
    let policy = improves(1);
    let mut driver = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .start(&policy);
    let (node, exec) = (NodeId(1), ExecName::Final);
    let run = vec_search::Effect::Execute { node, exec };
    while !driver.state.is_wanted(&run) {
        assert!(driver.step());
    }
    // The machine slept: the deadline is noticed before the run's end arrives.
    driver.now = driver.state.deadlines().expect("started").place_deadline;
    driver.turn(None);
    driver.end(run, done(&policy, exec, "1/final", 5));
    driver.run_to_end();
    assert!(!driver.world.ended.contains(&"place-1".to_owned()));
    assert_eq!(winner(&driver), Some(NodeId(0)));
}

#[test]
fn a_final_that_begins_too_late_refuses_instead_of_starting_runs() {
    let policy = improves(9);
    let mut driver = Script::default().start(&policy);
    while driver.state.nodes().count() < 2 {
        assert!(driver.step());
    }
    driver.now = driver.state.deadlines().expect("started").place_deadline;
    driver.turn(None);
    assert_eq!(winner(&driver), None);
    assert!(
        driver
            .state
            .refusal()
            .is_some_and(|why| why.contains("in time"))
    );
    let id = "execute-0-final";
    let starts = driver.position(
        |event| matches!(event, Event::EffectStarted { effect } if effect.id().as_str() == id),
    );
    assert_eq!(starts, None);
}
