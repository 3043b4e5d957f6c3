//! Events that do not fit are refused with their own variant, and change nothing.

use vec_search::{
    CorruptRun, Effect, Event, MethodState, Outcome, Policy, PromotionFailure, RunState,
};
use vec_types::{
    Digest, ExecName, NodeId, NodeStatus, Operator, Phase, ProgramSeed, StopReason, UnixMs,
};

use crate::fixture::{T0, commit, planned, policy, run_start, session, written};
use crate::lifecycle::{one_node, until};
use crate::world::Script;

type Expected = fn(&CorruptRun) -> bool;

fn misfits(node: NodeId) -> Vec<(Event, Expected)> {
    let digest = Digest::ZERO;
    let ended = |effect, end| Event::EffectEnded { effect, end };
    let exec = ExecName::Seed(ProgramSeed(0));
    let settled = Event::NodeSettled {
        node,
        status: NodeStatus::Scored,
        no_progress: false,
        same_as_parent: false,
        epoch: 0,
        budget_cut: false,
        detail: String::new(),
        inputs_digest: digest,
    };
    let created = Event::NodeCreated {
        node: NodeId(2),
        operator: Operator::Draft,
        parent: None,
        family: None,
        seed_program: None,
    };
    vec![
        (run_start(&one_node()), |e| {
            matches!(e, CorruptRun::StartedTwice)
        }),
        (ended(Effect::Comply { node }, planned()), |e| {
            matches!(e, CorruptRun::EffectNotInWork { .. })
        }),
        (
            ended(
                Effect::Plan { node },
                session(Some(commit("1")), written("x")),
            ),
            |e| matches!(e, CorruptRun::OutcomeKind { .. }),
        ),
        (
            Event::EffectStarted {
                effect: Effect::Plan { node },
            },
            |e| matches!(e, CorruptRun::EffectNotDue { .. }),
        ),
        (
            Event::EffectStarted {
                effect: Effect::Execute { node, exec },
            },
            |e| matches!(e, CorruptRun::EffectNotDue { .. }),
        ),
        (settled, |e| matches!(e, CorruptRun::Settlement { .. })),
        (created, |e| matches!(e, CorruptRun::Creation { .. })),
        (
            Event::PhaseChange {
                from: Phase::Seeding,
                to: Phase::Search,
            },
            |e| matches!(e, CorruptRun::WrongPhase { .. }),
        ),
    ]
}

fn more_misfits() -> Vec<(Event, Expected)> {
    vec![
        (
            Event::Stop {
                reason: StopReason::Budget,
                detail: String::new(),
                inputs_digest: Digest::ZERO,
            },
            |e| matches!(e, CorruptRun::StopTooEarly { running: 1 }),
        ),
        (Event::RunResume { start: 0 }, |e| {
            matches!(e, CorruptRun::ResumeNumber { .. })
        }),
        (
            Event::PromotionFailed {
                node: NodeId(0),
                generation: 0,
                epoch: 0,
                cause: PromotionFailure::Lost,
                why: String::new(),
                inputs_digest: Digest::ZERO,
            },
            |e| matches!(e, CorruptRun::Promotion { .. }),
        ),
        (
            Event::WinnerChosen {
                node: NodeId(0),
                is_baseline: true,
            },
            |e| matches!(e, CorruptRun::WrongPhase { .. }),
        ),
        (
            Event::FallbackToImprove {
                node: NodeId(9),
                from: Operator::Draft,
                why: String::new(),
            },
            |e| matches!(e, CorruptRun::NodeOrder { .. }),
        ),
        (
            Event::RefutedDirection {
                node: NodeId(7),
                parent: NodeId(0),
                text: String::new(),
            },
            |e| matches!(e, CorruptRun::UnknownNode { .. }),
        ),
    ]
}

#[test]
fn events_that_do_not_fit_are_refused_and_change_nothing() {
    let mut driver = Script::default().start(&one_node());
    let node = NodeId(1);
    until(&mut driver, &Effect::Plan { node });
    let before = driver.state.clone();
    for (event, expected) in misfits(node).into_iter().chain(more_misfits()) {
        let error = driver.state.apply(driver.now, &event).expect_err("refused");
        assert!(expected(&error), "{event:?}: {error:?}");
        assert!(!error.to_string().is_empty());
        assert_eq!(driver.state, before);
    }
}

#[test]
fn a_session_report_that_contradicts_itself_is_refused() {
    let mut driver = Script::default().start(&one_node());
    let effect = Effect::Engineer { node: NodeId(1) };
    until(&mut driver, &effect);
    for end in [
        session(None, MethodState::Placeholder),
        session(Some(commit("1")), MethodState::Missing),
    ] {
        let end = match end {
            Outcome::Engineered { mut session } => {
                session.has_run_py = true;
                Outcome::Engineered { session }
            }
            other => other,
        };
        let event = Event::EffectEnded {
            effect: effect.clone(),
            end,
        };
        let error = driver.state.check(driver.now, &event);
        assert!(
            matches!(error, Err(CorruptRun::Outcome { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn nothing_happens_before_the_start_and_a_bad_policy_is_refused() {
    let mut state = RunState::new();
    assert!(state.decide(T0).is_empty() && state.wanted().is_empty());
    let event = Event::RunResume { start: 1 };
    let error = state.apply(T0, &event).expect_err("refused");
    assert!(matches!(error, CorruptRun::NotStarted { .. }));
    type Change = fn(&mut Policy);
    let changes: [(Change, &str); 8] = [
        (|p| p.concurrency_nodes = 0, "concurrency.nodes"),
        (|p| p.draft_p = 1.1, "draft.p"),
        (|p| p.debug_p = 0.9, "draft.p + debug.p"),
        (|p| p.tune_p = 0.1, "tune.p"),
        (|p| p.seed_programs.clear(), "anchor"),
        (|p| p.objective.clear(), "objective"),
        (|p| p.guard.fresh_seeds.truncate(1), "guard.fresh_seeds"),
        (|p| p.budget.wall_ms = 1, "budget.wall"),
    ];
    for (change, key) in changes {
        let mut policy = policy();
        policy.draft_p = 0.2;
        change(&mut policy);
        let error = state
            .apply(UnixMs(0), &run_start(&policy))
            .expect_err("refused");
        assert!(error.to_string().contains(key), "{key}: {error}");
    }
}
