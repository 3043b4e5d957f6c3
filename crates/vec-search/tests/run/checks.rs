//! Control runs and view checks, outcome by outcome (ABL, VCK).

use vec_search::{
    Effect, Event, MechanismActive, Outcome, Policy, Reserve, SkipReason, VIEW_CHECK_ATTEMPTS_MAX,
    ViewTrigger, ViewVerdict,
};
use vec_types::{CandidateFault, ExecName, InfraFault, NodeId, NodeStatus, Phase};

use crate::driver::{Driver, replay};
use crate::fixture::{done, fault, policy};
use crate::world::Script;

const NODE: NodeId = NodeId(1);

/// The baseline and one improve of it, with control runs.
fn one_node() -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = 1;
    policy.ablation = true;
    policy
}

fn output(policy: &Policy, exec: ExecName, text: &str) -> Outcome {
    done(policy, exec, text, 1_000)
}

fn lost() -> Outcome {
    Outcome::Interrupted {
        fault: InfraFault::Interrupted,
        detail: "a daemon died".to_owned(),
    }
}

/// The events of a whole run.
fn events(script: Script, policy: &Policy) -> Vec<Event> {
    let mut driver = script.score(1, 60.0).start(policy);
    while driver.step() {}
    driver.events().cloned().collect()
}

fn mechanism(script: Script) -> (MechanismActive, String) {
    let events = events(script, &one_node());
    let settled = events.iter().any(|event| {
        matches!(
            event,
            Event::NodeSettled {
                node: NODE,
                status: NodeStatus::Scored,
                ..
            }
        )
    });
    assert!(settled, "its control run never changes a node");
    let mut found = events.into_iter().filter_map(|event| match event {
        Event::AblationResult {
            node: NODE,
            mechanism_active,
            why,
            ..
        } => Some((mechanism_active, why)),
        _ => None,
    });
    let first = found.next().expect("a result");
    assert_eq!(found.next(), None, "one result per node");
    first
}

#[test]
fn a_control_run_compares_outputs_and_failures_are_unclear() {
    let policy = one_node();
    let exec = ExecName::Ablate;
    let name = "execute-1-ablate";
    let same = output(&policy, exec, "1/seed0");
    let found = mechanism(Script::default().with(name, same));
    assert_eq!(found.0, MechanismActive::No);
    let other = output(&policy, exec, "other");
    let (active, why) = mechanism(Script::default().with(name, other));
    assert_eq!(active, MechanismActive::Yes);
    assert!(why.contains("main"), "{why}");
    for outcome in [fault(CandidateFault::Crash), lost()] {
        let found = mechanism(Script::default().with(name, outcome));
        assert_eq!(found.0, MechanismActive::Unclear);
    }
}

#[test]
fn seeds_and_runs_without_the_key_get_no_control() {
    let mut policy = one_node();
    let controls = |policy: &Policy| {
        let events = events(Script::default(), policy);
        let nodes = events.iter().filter_map(|event| match event {
            Event::AblationResult { node, .. } => Some(node.0),
            _ => None,
        });
        nodes.collect::<Vec<u32>>()
    };
    assert_eq!(controls(&policy), [1]);
    policy.ablation = false;
    assert!(controls(&policy).is_empty());
}

/// Another output may come from the new data.
#[test]
fn a_control_run_over_other_data_is_unclear() {
    let policy = one_node();
    let mut driver = Script::default().score(1, 60.0).start(&policy);
    let is_scored = |event: &Event| {
        matches!(
            event,
            Event::EffectEnded {
                effect: Effect::Execute { node: NODE, .. },
                ..
            }
        )
    };
    while !driver.events().any(is_scored) && driver.step() {}
    let added = vec!["new".to_owned()];
    driver.turn(Some(Event::EpochAdvance { epoch: 1, added }));
    driver.run_to_end();
    let found = driver.events().find_map(|event| match event {
        Event::AblationResult {
            mechanism_active,
            why,
            ..
        } => Some((*mechanism_active, why.contains("new data"))),
        _ => None,
    });
    assert_eq!(found, Some((MechanismActive::Unclear, true)));
}

#[test]
fn a_control_run_that_comes_too_late_is_unclear() {
    let policy = one_node();
    // Its execution takes the rest of the search.
    let script = Script::default().lasting("execute-1-ablate", policy.budget.wall_ms);
    let (active, why) = mechanism(script);
    assert_eq!(active, MechanismActive::Unclear);
    assert!(
        why.contains("budget_cut") || why.contains("interrupted"),
        "{why}"
    );
}

/// Verdicts of the node's checks with their triggers, and what became of it.
fn checked(script: Script, policy: &Policy) -> (Vec<(ViewVerdict, ViewTrigger)>, bool, bool) {
    let events = events(script, policy);
    let verdicts = events.iter().filter_map(|event| match event {
        Event::ViewCheckResult {
            node: NODE,
            verdict,
            trigger,
            ..
        } => Some((*verdict, *trigger)),
        _ => None,
    });
    let is_promoted = |event: &Event| matches!(event, Event::PromotionDone { node: NODE, .. });
    let is_guarded = |event: &Event| {
        matches!(
            event,
            Event::GuardStart {
                candidate: NODE,
                ..
            }
        )
    };
    (
        verdicts.collect(),
        events.iter().any(is_promoted),
        events.iter().any(is_guarded),
    )
}

#[test]
fn what_a_view_check_finds_decides_about_promotion_and_final() {
    let mut policy = one_node();
    // Time for a promotion while the search goes on.
    policy.budget.max_nodes = 3;
    let check = ExecName::ViewCheck { attempt: 0 };
    let confirm = ExecName::ViewCheckConfirm { attempt: 0 };
    let said = |a: Outcome, b: Outcome| {
        Script::default()
            .with("execute-1-viewcheck", a)
            .with("execute-1-viewcheck_confirm", b)
    };
    let own = |exec| output(&policy, exec, "1/seed0");
    let odd = |exec| output(&policy, exec, "another");
    let crash = || fault(CandidateFault::Crash);
    for (a, b, verdict, goes_on) in [
        (own(check), crash(), ViewVerdict::Same, true),
        (odd(check), own(confirm), ViewVerdict::ViewDependent, false),
        (crash(), own(confirm), ViewVerdict::ViewDependent, false),
        (
            odd(check),
            odd(confirm),
            ViewVerdict::Nondeterministic,
            true,
        ),
        (odd(check), crash(), ViewVerdict::Nondeterministic, true),
    ] {
        let found = checked(said(a, b), &policy);
        let due = (vec![(verdict, ViewTrigger::Promotion)], goes_on, goes_on);
        assert_eq!(found, due);
    }
}

#[test]
fn a_check_without_a_result_is_tried_again_and_then_puts_the_node_out() {
    let policy = one_node();
    let names = [
        "execute-1-viewcheck",
        "execute-1-viewcheckg1",
        "execute-1-viewcheckg2",
    ];
    assert_eq!(names.len(), VIEW_CHECK_ATTEMPTS_MAX as usize);
    let all = names
        .iter()
        .fold(Script::default(), |s, name| s.with(name, lost()));
    let (verdicts, promoted, guarded) = checked(all, &policy);
    assert!(
        verdicts
            .iter()
            .all(|(verdict, _)| *verdict == ViewVerdict::Unknown)
    );
    assert_eq!((verdicts.len(), promoted, guarded), (3, false, false));
    let second = ExecName::ViewCheck { attempt: 1 };
    let once = Script::default()
        .with(names[0], lost())
        .with(names[1], output(&policy, second, "1/seed0"));
    let (verdicts, promoted, _) = checked(once, &policy);
    assert_eq!(
        verdicts.last().map(|(verdict, _)| *verdict),
        Some(ViewVerdict::Same)
    );
    assert!(promoted);
}

#[test]
fn without_promotion_final_selection_asks_itself() {
    let mut policy = one_node();
    policy.promotion_top_k = 0;
    let check = ExecName::ViewCheck { attempt: 0 };
    let fine = Script::default().with("execute-1-viewcheck", output(&policy, check, "1/seed0"));
    let (verdicts, _, guarded) = checked(fine, &policy);
    assert_eq!(verdicts, [(ViewVerdict::Same, ViewTrigger::Final)]);
    assert!(guarded);
    let confirm = ExecName::ViewCheckConfirm { attempt: 0 };
    let found = Script::default()
        .with("execute-1-viewcheck", output(&policy, check, "another"))
        .with(
            "execute-1-viewcheck_confirm",
            output(&policy, confirm, "1/seed0"),
        );
    let skipped = events(found, &policy).into_iter().any(|event| {
        matches!(
            event,
            Event::CandidateSkipped {
                node: NODE,
                why: SkipReason::ViewCheck
            }
        )
    });
    assert!(skipped);
}

#[test]
fn a_sampled_node_is_checked_before_its_analysis() {
    let mut policy = one_node();
    policy.view_check.sample = 1.0;
    let events = events(Script::default(), &policy);
    let place = |wanted: &str| {
        let shown = |event: &Event| match event {
            Event::EffectStarted { effect } => effect.id().to_string(),
            _ => String::new(),
        };
        events.iter().position(|event| shown(event) == wanted)
    };
    let (check, analysis) = (place("execute-1-viewcheck"), place("analyze-1"));
    assert!(
        check.is_some() && check < analysis,
        "{check:?} {analysis:?}"
    );
}

#[test]
fn a_control_run_moves_no_deadline() {
    let times = |ms: i64| {
        let mut policy = one_node();
        policy.reserve = Some(Reserve {
            margin_ms: 10_000,
            queue_ms: 1_000,
            time_limit_ms: 600_000,
        });
        let control = done(&policy, ExecName::Ablate, "other", ms);
        let script = Script::default().with("execute-1-ablate", control);
        let mut driver = script.score(1, 60.0).start(&policy);
        while driver.step() {}
        driver.state.deadlines()
    };
    assert_eq!(times(1_000), times(100_000));
}

#[test]
fn outputs_of_two_data_epochs_give_no_verdict() {
    let mut policy = one_node();
    policy.budget.max_nodes = 3;
    let check = ExecName::ViewCheck { attempt: 0 };
    let confirm = ExecName::ViewCheckConfirm { attempt: 0 };
    let script = Script::default()
        .with("execute-1-viewcheck", output(&policy, check, "another"))
        .with(
            "execute-1-viewcheck_confirm",
            output(&policy, confirm, "new data"),
        )
        .score(1, 60.0);
    let mut driver = script.start(&policy);
    let is_settled = |event: &Event| matches!(event, Event::NodeSettled { node: NODE, .. });
    while !driver.events().any(is_settled) && driver.step() {}
    let added = vec!["new".to_owned()];
    driver.turn(Some(Event::EpochAdvance { epoch: 1, added }));
    while driver.step() {}
    let first = driver.events().find_map(|event| match event {
        Event::ViewCheckResult {
            node: NODE,
            verdict,
            ..
        } => Some(*verdict),
        _ => None,
    });
    assert_eq!(first, Some(ViewVerdict::Unknown));
}

/// What final selection did about view checks, in seconds after it began.
fn finale_checks(driver: &Driver<Script>) -> Vec<(i64, &Event)> {
    let events = || {
        let batches = driver.stored.iter();
        batches.flat_map(|(at, batch)| batch.iter().map(move |event| (*at, event)))
    };
    let began = events().find(|(_, event)| {
        matches!(
            event,
            Event::PhaseChange {
                to: Phase::Final,
                ..
            }
        )
    });
    let began = began.expect("final selection").0;
    let told = events().filter(|(at, event)| {
        let is_told = matches!(
            event,
            Event::ViewCheckResult { .. } | Event::CandidateSkipped { .. }
        );
        *at >= began && is_told
    });
    told.map(|(at, event)| (at.since_ms(began) / 1_000, event))
        .collect()
}

fn ended(script: Script, policy: &Policy) -> Driver<Script> {
    let mut driver = script.score(1, 60.0).start(policy);
    driver.run_to_end();
    assert_eq!(replay(&driver.stored), Ok(()));
    driver
}

/// VCK-06.
#[test]
fn final_selection_waits_for_a_check_only_so_long() {
    let mut policy = one_node();
    policy.concurrency_nodes = 2;
    policy.view_check.lock_wait_ms = 40_000;
    // Promotion began it, and it does not end.
    let script = Script::default().lasting("execute-1-viewcheck", policy.budget.wall_ms);
    let driver = ended(script, &policy);
    let [(first, result), (second, skipped)] = finale_checks(&driver)[..] else {
        panic!("{:?}", finale_checks(&driver));
    };
    // The baseline's answer and the review come first, a fraction of a second.
    assert_eq!((first, second), (40, 40));
    let Event::ViewCheckResult { verdict, why, .. } = result else {
        panic!("{result:?}");
    };
    assert_eq!(*verdict, ViewVerdict::Unknown);
    assert!(why.contains("waited 40 s"), "{why}");
    let passed_over = Event::CandidateSkipped {
        node: NODE,
        why: SkipReason::ViewCheck,
    };
    assert_eq!(*skipped, passed_over);
    let outcome = driver.state.outcome().expect("ended");
    assert!(outcome.winner_is_baseline);
    let dropped = driver.dropped.iter().map(|(effect, _)| effect.id());
    let dropped: Vec<String> = dropped.map(|id| id.to_string()).collect();
    assert_eq!(dropped, ["execute-1-viewcheck"], "its program is stopped");
}

#[test]
fn a_check_of_its_own_gets_its_measured_time_beside_the_wait() {
    let mut policy = one_node();
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = 2;
    policy.view_check.lock_wait_ms = 40_000;
    let slow = |ms| Script::default().lasting("execute-1-viewcheck", ms);
    // Seed 0 takes a second: three more than the wait.
    let driver = ended(slow(42_900), &policy);
    assert!(driver.state.skipped().is_empty());
    let driver = ended(slow(43_100), &policy);
    let skipped = driver.state.skipped();
    assert_eq!(skipped.get(&NODE), Some(&SkipReason::ViewCheck));
    let verdict = driver.state.guard_verdict().expect("a guard");
    assert_eq!(verdict.candidate, NodeId(2), "the next one has its turn");
}

#[test]
fn one_node_at_a_time_final_selection_begins_after_the_wait() {
    let mut policy = one_node();
    // Promotion asks while the search goes on, and nothing runs beside.
    policy.budget.max_nodes = 2;
    policy.view_check.lock_wait_ms = 40_000;
    let script = Script::default().lasting("execute-1-viewcheck", policy.budget.wall_ms);
    let driver = ended(script, &policy);
    let told = finale_checks(&driver);
    let (waited, first) = told.first().expect("a result");
    assert!(matches!(first, Event::ViewCheckResult { .. }), "{first:?}");
    assert_eq!(*waited, 40);
    // Its second check ends, so that it is a candidate after all.
    let verdict = driver.state.guard_verdict().expect("a guard");
    assert_eq!(verdict.candidate, NODE);
}
