//! Seeding, the pipeline's endings, restarts, stops and deadlines.

use vec_search::{Effect, Event, MethodState, Outcome, PlanResult, Policy};
use vec_types::{
    CandidateFault, ExecName, InfraFault, NodeId, NodeStatus, Phase, ProgramSeed, StopReason,
};

use crate::driver::Driver;
use crate::fixture::{T0, commit, done, fault, policy, scored, session, written};
use crate::world::Script;

/// One improve of the anchor, nothing else.
pub(crate) fn one_node() -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = 1;
    policy
}

fn interrupted(fault: InfraFault) -> Outcome {
    Outcome::Interrupted {
        fault,
        detail: "the scorer died".to_owned(),
    }
}

fn ended(script: Script, policy: &Policy) -> Driver<Script> {
    let mut driver = script.start(policy);
    driver.run_to_end();
    driver
}

#[test]
fn seeds_are_only_imported_executed_and_scored() {
    let driver = ended(Script::default(), &one_node());
    let of_seed: Vec<&String> = driver
        .world
        .ended
        .iter()
        .filter(|id| id.ends_with("-0") || id.contains("-0-"))
        .take(3)
        .collect();
    assert_eq!(
        of_seed,
        ["import_seed-0", "execute-0-seed0", "score-0-seed0"]
    );
    for other in ["plan-0", "analyze-0", "review-0-0"] {
        assert!(!driver.world.ended.contains(&other.to_owned()), "{other}");
    }
    assert_eq!(driver.state.node(NodeId(0)).expect("seed").visits, 2);
}

#[test]
fn a_baseline_that_fails_stops_the_run() {
    let script = Script::default().with("execute-0-seed0", fault(CandidateFault::Crash));
    let driver = ended(script, &policy());
    let outcome = driver.state.outcome().expect("stopped");
    assert_eq!(outcome.reason, StopReason::Infra);
    assert!(outcome.detail.contains("train_mean"), "{}", outcome.detail);
    assert!(
        outcome.detail.contains("exit status 1"),
        "{}",
        outcome.detail
    );
    assert_eq!(driver.state.nodes().count(), 1, "no other seed is started");
}

#[test]
fn an_interrupted_seed_is_tried_again_three_times_at_most() {
    let lost = || interrupted(InfraFault::Interrupted);
    let once = Script::default().with("score-0-seed0", lost());
    let driver = ended(once.score(1, 50.0).score(2, 40.0), &one_node());
    assert_eq!(driver.state.baseline(), Some(NodeId(1)));
    assert_eq!(
        driver.state.outcome().expect("ended").winner,
        Some(NodeId(1))
    );
    let always = Script::default()
        .with("score-0-seed0", lost())
        .with("score-1-seed0", lost())
        .with("score-2-seed0", lost());
    let driver = ended(always, &one_node());
    assert_eq!(driver.state.nodes().count(), 3);
    assert_eq!(
        driver.state.outcome().expect("ended").reason,
        StopReason::Infra
    );
}

const GEN_FAILED: NodeStatus = NodeStatus::GenFailed;

/// The failure table: which effect's outcome gives which status.
fn failures(policy: &Policy) -> Vec<(&'static str, Outcome, NodeStatus)> {
    let invalid = Outcome::Planned {
        result: PlanResult::Invalid {
            error: "no approach".to_owned(),
        },
    };
    let (removed, emptied) = (9, true);
    let emptied = Outcome::Complied { removed, emptied };
    let no_format = Outcome::Scored {
        result: vec_search::ScoreResult::InvalidFormat {
            detail: "NaN".to_owned(),
        },
    };
    let mut partial = policy.clone();
    partial.objective.clear();
    let same = commit("train_mean");
    vec![
        ("plan-1", invalid, NodeStatus::GenFailed),
        ("comply-1", emptied, NodeStatus::GenFailed),
        (
            "engineer-1",
            session(None, MethodState::Missing),
            GEN_FAILED,
        ),
        ("engineer-1", session(None, written("x")), GEN_FAILED),
        (
            "engineer-1",
            session(Some(same), written("x")),
            NodeStatus::GenEmpty,
        ),
        (
            "execute-1-seed0",
            fault(CandidateFault::Oom),
            NodeStatus::Oom,
        ),
        (
            "execute-1-seed0",
            fault(CandidateFault::Timeout),
            NodeStatus::Timeout,
        ),
        ("score-1-seed0", no_format, NodeStatus::InvalidFormat),
        (
            "score-1-seed0",
            scored(&partial, 50.0),
            NodeStatus::ScoreError,
        ),
        (
            "score-1-seed0",
            interrupted(InfraFault::ScoreError),
            NodeStatus::ScoreError,
        ),
        (
            "execute-1-seed0",
            interrupted(InfraFault::InfraOom),
            NodeStatus::InfraOom,
        ),
        (
            "plan-1",
            interrupted(InfraFault::Interrupted),
            NodeStatus::Interrupted,
        ),
        (
            "analyze-1",
            interrupted(InfraFault::Interrupted),
            NodeStatus::Scored,
        ),
    ]
}

#[test]
fn every_failure_ends_with_its_own_status() {
    let policy = one_node();
    for (effect, outcome, status) in failures(&policy) {
        let driver = ended(Script::default().with(effect, outcome), &policy);
        let node = driver.state.node(NodeId(1)).expect("created");
        assert_eq!(node.status, status, "{effect}");
        let is_analysed = status == NodeStatus::Scored || status.is_candidate_fault();
        let analysed = driver.world.ended.contains(&"analyze-1".to_owned());
        assert_eq!(analysed, is_analysed, "{effect} {status:?}");
        let visits = driver.state.node(NodeId(0)).expect("seed").visits;
        assert_eq!(
            visits,
            1 + u64::from(status.is_in_tree()),
            "{effect} {status:?}"
        );
    }
}

#[test]
fn refuted_directions_are_written_under_their_parent() {
    let policy = one_node();
    let same_program = session(Some(commit("train_mean")), written("line"));
    let no_change = session(Some(commit("1")), written("NO_CHANGE: tried all"));
    let same_output = done(&policy, ExecName::Seed(ProgramSeed(0)), "0/seed0", 5);
    for (effect, outcome, text, same_as_parent, no_progress) in [
        ("engineer-1", same_program, "idea: line", true, true),
        (
            "engineer-1",
            no_change,
            "idea: NO_CHANGE: tried all",
            false,
            false,
        ),
        ("execute-1-seed0", same_output, "idea: method", false, true),
    ] {
        let driver = ended(Script::default().with(effect, outcome), &policy);
        assert_eq!(driver.state.refuted_under(NodeId(0)), [text]);
        let node = driver.state.node(NodeId(1)).expect("created");
        assert_eq!(node.same_as_parent, same_as_parent);
        assert_eq!(node.no_progress, no_progress);
        let is_out = driver.state.final_candidates().is_empty();
        assert_eq!(is_out, no_progress, "{text}");
    }
}

pub(crate) fn until(driver: &mut Driver<Script>, effect: &Effect) {
    while !driver.state.is_wanted(effect) {
        assert!(driver.step(), "{effect:?} is never wanted");
    }
}

#[test]
fn a_restart_interrupts_sessions_and_repeats_everything_else() {
    let node = NodeId(1);
    for effect in [Effect::Plan { node }, Effect::Engineer { node }] {
        let mut driver = Script::default().start(&one_node());
        until(&mut driver, &effect);
        driver.crash();
        let view = driver.state.node(node).expect("created");
        assert_eq!(view.status, NodeStatus::Interrupted, "{effect:?}");
        assert!(!view.budget_cut);
        assert!(!driver.state.is_wanted(&effect));
    }
    let exec = ExecName::Seed(ProgramSeed(0));
    for effect in [
        Effect::Comply { node },
        Effect::Execute { node, exec },
        Effect::Score { node, exec },
        Effect::Analyze { node },
    ] {
        let mut driver = Script::default().start(&one_node());
        until(&mut driver, &effect);
        driver.crash();
        assert!(driver.state.is_wanted(&effect), "{effect:?}");
        driver.run_to_end();
        let view = driver.state.node(node).expect("created");
        assert_eq!(view.status, NodeStatus::Scored);
    }
}

#[test]
fn an_operators_stop_ends_at_once_and_can_be_resumed() {
    let node = NodeId(1);
    let mut driver = Script::default().start(&one_node());
    until(&mut driver, &Effect::Plan { node });
    driver.turn(Some(Event::StopRequested {
        reason: StopReason::Operator,
        detail: "vecctl stop".to_owned(),
    }));
    assert_eq!(driver.state.phase(), Phase::Stopped);
    assert_eq!(
        driver.state.outcome().expect("stopped").reason,
        StopReason::Operator
    );
    assert!(driver.state.wanted().is_empty());
    let view = driver.state.node(node).expect("created");
    assert_eq!(view.status, NodeStatus::Interrupted);
    assert!(driver.state.resumable(driver.now).is_ok());
    let stop_at = driver.state.deadlines().expect("started").stop_at;
    assert!(driver.state.resumable(stop_at).is_err());
    driver.resume();
    driver.run_to_end();
    let outcome = driver.state.outcome().expect("ended");
    assert_eq!(outcome.reason, StopReason::Budget);
    assert_eq!(outcome.winner, Some(NodeId(0)));
    assert!(
        driver.state.resumable(driver.now).is_err(),
        "an answer is final"
    );
}

#[test]
fn at_cutoff_work_gets_until_the_settlement_deadline() {
    let mut policy = one_node();
    policy.budget.max_nodes = 9;
    let times = vec_search::Deadlines::new(T0, &policy.budget);
    let long = times.settle_deadline.since_ms(T0);
    for (effect, status) in [
        ("engineer-1", NodeStatus::Interrupted),
        ("execute-1-seed0", NodeStatus::Interrupted),
        ("score-1-seed0", NodeStatus::Interrupted),
        ("analyze-1", NodeStatus::Scored),
    ] {
        let driver = ended(Script::default().lasting(effect, long), &policy);
        let node = driver.state.node(NodeId(1)).expect("created");
        assert_eq!(node.status, status, "{effect}");
        assert_eq!(
            node.budget_cut,
            status == NodeStatus::Interrupted,
            "{effect}"
        );
        assert!(node.settled_at.expect("settled") <= times.settle_deadline);
        assert_eq!(driver.state.nodes().count(), 2, "no node after hand-off");
        assert_eq!(
            driver.state.outcome().expect("ended").reason,
            StopReason::Budget
        );
    }
}

#[test]
fn no_session_starts_after_the_hand_off_point() {
    let node = NodeId(1);
    let mut driver = Script::default().start(&one_node());
    let effect = Effect::Comply { node };
    until(&mut driver, &effect);
    driver.now = driver.state.deadlines().expect("started").handoff;
    let (removed, emptied) = (0, false);
    driver.end(effect, Outcome::Complied { removed, emptied });
    let view = driver.state.node(node).expect("created");
    assert_eq!(
        (view.status, view.budget_cut),
        (NodeStatus::Interrupted, true)
    );
    assert!(!driver.world.ended.contains(&"engineer-1".to_owned()));
    assert!(view.plan.is_some(), "what exists is kept");
}

#[test]
fn a_stop_request_outlives_the_controller_that_took_it() {
    let mut driver = Script::default().start(&one_node());
    until(&mut driver, &Effect::Plan { node: NodeId(1) });
    // Stored, and the process died before it decided anything.
    let asked = Event::StopRequested {
        reason: StopReason::Operator,
        detail: "somebody asks".to_owned(),
    };
    driver.state.apply(driver.now, &asked).expect("a fact");
    driver.resume();
    let stopped = driver.state.outcome().expect("the next one stops");
    assert_eq!(stopped.reason, StopReason::Operator);
    // Carried out, it is done with: the run can be opened again.
    driver.resume();
    assert_eq!(driver.state.outcome(), None);
}
