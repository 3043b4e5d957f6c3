//! The failure algebra, cell by cell: every test runs every outcome that a node of this run can come
//! to and compares what happens with the row of `failure::of`. A changed cell breaks its test.

use vec_search::failure::{self, Consequence, Coverage, Rank, SeedRule, Streak};
use vec_search::{
    Draft, Event, MethodState, Mt19937, OutOfPool, Outcome, PlanResult, Policy, ScoreResult,
    SelectReason,
};
use vec_types::{
    CandidateFault, InfraFault, NodeId, NodeStatus, Operator, SearchSeed, SeedState, StopReason,
};

use crate::driver::Driver;
use crate::fixture::{commit, done, fault, planned, policy, seed_program, session, written};
use crate::world::Script;

/// The outcomes that a node of this run can end in; the others come in by import only.
const OWN: [NodeStatus; 11] = [
    NodeStatus::Scored,
    NodeStatus::GenFailed,
    NodeStatus::GenEmpty,
    NodeStatus::Crash,
    NodeStatus::Oom,
    NodeStatus::Timeout,
    NodeStatus::Hung,
    NodeStatus::InvalidFormat,
    NodeStatus::ScoreError,
    NodeStatus::InfraOom,
    NodeStatus::Interrupted,
];

fn interrupted(fault: InfraFault) -> Outcome {
    Outcome::Interrupted {
        fault,
        detail: "a daemon died".to_owned(),
    }
}

/// The effect that ends and how, so that the node ends in `status`. `seed` nodes have no plan.
fn ending(status: NodeStatus, node: u32) -> (String, Outcome) {
    let execute = format!("execute-{node}-seed0");
    match status {
        NodeStatus::GenFailed => {
            let error = "no approach".to_owned();
            let result = PlanResult::Invalid { error };
            (format!("plan-{node}"), Outcome::Planned { result })
        }
        // The program of the anchor, which is the parent where a test needs this outcome.
        NodeStatus::GenEmpty => {
            let same = session(Some(commit("train_mean")), written("NO_CHANGE: nothing"));
            (format!("engineer-{node}"), same)
        }
        NodeStatus::Crash => (execute, fault(CandidateFault::Crash)),
        NodeStatus::Oom => (execute, fault(CandidateFault::Oom)),
        NodeStatus::Timeout => (execute, fault(CandidateFault::Timeout)),
        NodeStatus::Hung => (execute, fault(CandidateFault::Hung)),
        NodeStatus::InvalidFormat => {
            let detail = "NaN".to_owned();
            let result = ScoreResult::InvalidFormat { detail };
            (format!("score-{node}-seed0"), Outcome::Scored { result })
        }
        NodeStatus::ScoreError => {
            let lost = interrupted(InfraFault::ScoreError);
            (format!("score-{node}-seed0"), lost)
        }
        NodeStatus::InfraOom => (execute, interrupted(InfraFault::InfraOom)),
        NodeStatus::Interrupted => (execute, interrupted(InfraFault::Interrupted)),
        // Planned as by default.
        NodeStatus::Scored => (format!("plan-{node}"), planned()),
        other => panic!("a node of this run never ends as {}", other.as_str()),
    }
}

fn with(script: Script, status: NodeStatus, node: u32) -> Script {
    let (effect, outcome) = ending(status, node);
    script.with(&effect, outcome)
}

/// Only improves, only the anchor: every node is a child of a scored node.
fn improves(max_nodes: u32) -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = max_nodes;
    policy
}

/// Runs until the `nodes`-th node of the run is settled and the next one is chosen.
fn until_created(driver: &mut Driver<Script>, node: u32) {
    while driver.state.node(NodeId(node)).is_none() && driver.step() {}
}

fn until_settled(driver: &mut Driver<Script>, node: u32) {
    let is_settled = |driver: &Driver<Script>| {
        let view = driver.state.node(NodeId(node));
        view.is_some_and(|view| view.settled_at.is_some())
    };
    while !is_settled(driver) && driver.step() {}
}

/// Every outcome with its row; the outcome is checked to be the one asked for.
fn each(check: impl Fn(NodeStatus, Consequence)) {
    for status in OWN {
        check(status, failure::of(status));
    }
}

fn ended_as(driver: &Driver<Script>, node: u32, status: NodeStatus) {
    let view = driver.state.node(NodeId(node)).expect("exists");
    assert_eq!(view.status, status, "{}", view.detail);
}

#[test]
fn visits_become_real_or_vanish() {
    each(|status, row| {
        // The anchor is node 0, its child node 1.
        let mut driver = with(Script::default(), status, 1).start(&improves(1));
        until_created(&mut driver, 1);
        let parent = driver.state.node(NodeId(0)).expect("anchor");
        assert_eq!((parent.visits, parent.virtual_visits), (1, 1));
        until_settled(&mut driver, 1);
        ended_as(&driver, 1, status);
        let parent = driver.state.node(NodeId(0)).expect("anchor");
        let real = u64::from(row.visit);
        assert_eq!((parent.visits, parent.virtual_visits), (1 + real, 0));
        assert_eq!(driver.state.node(NodeId(1)).expect("child").visits, real);
    });
}

#[test]
fn ranks_are_by_score_at_the_bottom_or_absent() {
    each(|status, row| {
        let mut driver = with(Script::default(), status, 1).start(&improves(2));
        until_created(&mut driver, 2);
        ended_as(&driver, 1, status);
        let standings = driver.events().filter_map(|event| match event {
            Event::Select { standings, .. } => Some(standings.clone()),
            _ => None,
        });
        let last = standings.last().expect("node 2 was selected for");
        let of = |node| last.iter().find(|standing| standing.node == NodeId(node));
        // Alone in the tree the anchor has rank 0.5, above a failure 1, below a better child 0.
        let expected = match row.rank {
            Rank::Score => (0.0, Some(1.0)),
            Rank::Bottom => (1.0, None),
            Rank::Absent => (0.5, None),
        };
        let child = of(1).map(|standing| standing.rank);
        assert_eq!((of(0).expect("anchor").rank, child), expected, "{status:?}");
    });
}

#[test]
fn streaks_end_go_on_or_stay() {
    for counts_gen in [false, true] {
        each(|status, row| {
            let mut policy = improves(4);
            policy.select.streak_counts_gen = counts_gen;
            // A crash, the outcome, a crash: suspended after the third if the outcome did not reset,
            // after the second if it extended.
            let mut script = with(Script::default(), NodeStatus::Crash, 1);
            script = with(script, status, 2);
            let mut driver = script.start(&policy);
            until_created(&mut driver, 3);
            ended_as(&driver, 2, status);
            let reasons: Vec<SelectReason> =
                selections(&driver).map(|(_, reason)| reason).collect();
            let is_suspended = reasons[2] == SelectReason::ArgmaxUSuspended;
            assert_eq!(is_suspended, row.extends_streak(counts_gen), "{status:?}");
        });
    }
    assert_eq!(failure::of(NodeStatus::Scored).streak, Streak::Resets);
}

fn selections(driver: &Driver<Script>) -> impl Iterator<Item = (NodeId, SelectReason)> {
    driver.events().filter_map(|event| match event {
        Event::Select { parent, reason, .. } => Some((*parent, *reason)),
        _ => None,
    })
}

#[test]
fn a_score_resets_a_streak_and_shelving_does_not() {
    for (middle, suspended) in [(NodeStatus::Scored, false), (NodeStatus::Interrupted, true)] {
        let mut policy = improves(4);
        // The anchor stays the best, so that all children are its own.
        let mut script = Script::default().score(0, 90.0);
        for (node, status) in [(1, NodeStatus::Crash), (2, middle), (3, NodeStatus::Crash)] {
            script = with(script, status, node);
        }
        policy.select.c_puct = 0.01;
        let mut driver = script.start(&policy);
        until_created(&mut driver, 4);
        let parents: Vec<NodeId> = selections(&driver).map(|(parent, _)| parent).collect();
        assert_eq!(parents[..3], [NodeId(0); 3]);
        let is_out = driver
            .state
            .out_of_pool()
            .contains(&(NodeId(0), OutOfPool::Suspended));
        let last = selections(&driver).last().expect("four selections").1;
        let is_suspended = is_out || last == SelectReason::ArgmaxUSuspended;
        assert_eq!(is_suspended, suspended, "{middle:?}");
    }
}

#[test]
fn suspensions_end_with_a_new_node_elsewhere() {
    each(|status, row| {
        // Node 1 is the exploration seed. Two crashes suspend the anchor; the third child is the
        // seed's, and its outcome may let the anchor in again.
        let mut policy = policy();
        policy.draft_p = 0.0;
        policy.debug_p = 0.0;
        policy.promotion_top_k = 0;
        policy.seed_max_children = 9;
        policy.budget.max_nodes = 4;
        policy.select.c_puct = 0.01;
        let mut script = Script::default().score(0, 90.0).score(1, 10.0);
        script = with(script, NodeStatus::Crash, 2);
        script = with(script, NodeStatus::Crash, 3);
        script = with(script, status, 4);
        let mut driver = script.start(&policy);
        until_settled(&mut driver, 4);
        let parent = driver.state.node(NodeId(4)).expect("made").parent;
        assert_eq!(parent, Some(NodeId(1)), "the anchor was suspended");
        if status == NodeStatus::GenEmpty {
            // Its program is the anchor's, not its parent's.
            return;
        }
        ended_as(&driver, 4, status);
        let out = driver.state.out_of_pool();
        let is_suspended = out.contains(&(NodeId(0), OutOfPool::Suspended));
        assert_eq!(is_suspended, !row.lifts_suspensions, "{status:?}");
    });
}

#[test]
fn capped_seeds_count_children() {
    each(|status, row| {
        let mut policy = improves(1);
        policy.seed_programs = vec![
            seed_program("copy_last", SeedState::Anchor),
            seed_program("train_mean", SeedState::Exploration),
        ];
        policy.seed_max_children = 1;
        policy.select.c_puct = 0.01;
        let script = Script::default().score(0, 10.0).score(1, 90.0);
        let mut driver = with(script, status, 2).start(&policy);
        until_settled(&mut driver, 2);
        ended_as(&driver, 2, status);
        let child = driver.state.node(NodeId(2)).expect("made");
        assert_eq!(child.parent, Some(NodeId(1)));
        let out = driver.state.out_of_pool();
        let is_blocked = out.contains(&(NodeId(1), OutOfPool::Blocked));
        assert_eq!(is_blocked, row.child_cap, "{status:?}");
    });
}

/// A search seed whose first draws fall into the given intervals of `[draft, rest)` at 0.5.
fn search_seed(drafts: &[bool]) -> SearchSeed {
    let fits = |seed: &u32| {
        let mut random = Mt19937::new(SearchSeed(*seed));
        drafts.iter().all(|draft| (random.random() < 0.5) == *draft)
    };
    SearchSeed((0..10_000).find(fits).expect("one of 10,000 fits"))
}

#[test]
fn an_owed_improve_is_served_once() {
    each(|status, row| {
        let mut policy = improves(3);
        policy.draft_p = 0.5;
        policy.select.reserve_improve = Some(10.0);
        policy.search_seed = search_seed(&[true, false, false]);
        // The draft is node 1; it is owed an improve although the anchor has the larger U.
        let mut script = Script::default().score(0, 55.0).score(1, 50.0);
        let (effect, outcome) = match status {
            NodeStatus::GenEmpty => {
                let same = session(Some(commit("1")), written("NO_CHANGE: nothing"));
                ("engineer-2".to_owned(), same)
            }
            _ => ending(status, 2),
        };
        script = script.with(&effect, outcome);
        let mut driver = script.start(&policy);
        until_created(&mut driver, 3);
        ended_as(&driver, 2, status);
        let found: Vec<(NodeId, SelectReason)> = selections(&driver).collect();
        assert_eq!(found[0], (NodeId(1), SelectReason::ReserveImprove));
        let again = found[1] == (NodeId(1), SelectReason::ReserveImprove);
        assert_eq!(again, !row.serves_reserve, "{status:?}");
    });
}

#[test]
fn debugs_use_up_attempts_and_find_targets() {
    each(|status, row| {
        let mut policy = improves(4);
        policy.debug_p = 0.5;
        policy.debug_max_attempts = 1;
        policy.draft_p = 0.0;
        // Improve, then debugs: the intervals are [0, 0.5) debug, rest improve.
        policy.search_seed = search_seed(&[false, true, true]);
        let mut script = with(Script::default(), NodeStatus::Crash, 1);
        script = with(script, status, 2);
        let mut driver = script.start(&policy);
        until_created(&mut driver, 3);
        let debug = driver.state.node(NodeId(2)).expect("made");
        assert_eq!(
            (debug.operator, debug.parent),
            (Operator::Debug, Some(NodeId(1)))
        );
        if status == NodeStatus::GenEmpty {
            return;
        }
        ended_as(&driver, 2, status);
        // The only possible targets are node 1, if its attempt was not used, and node 2.
        let target = selections(&driver)
            .skip(2)
            .find(|(_, reason)| *reason == SelectReason::DebugTarget)
            .map(|(target, _)| target);
        let expected = if row.debug_target {
            Some(NodeId(2))
        } else if row.debug_attempt {
            None
        } else {
            Some(NodeId(1))
        };
        assert_eq!(target, expected, "{status:?}");
    });
}

#[test]
fn drafts_cover_fail_or_leave_their_family() {
    for cap in [1, 2] {
        each(|status, row| {
            let mut policy = improves(2);
            policy.draft_p = 1.0;
            policy.draft = Draft::CoverageBandit {
                failed_cap: cap,
                min_explore: 0.25,
            };
            let mut driver = with(Script::default(), status, 1).start(&policy);
            until_created(&mut driver, 2);
            if status == NodeStatus::GenEmpty {
                // A draft has no parent whose program it could repeat.
                ended_as(&driver, 1, NodeStatus::Scored);
                return;
            }
            ended_as(&driver, 1, status);
            let families: Vec<String> = driver
                .events()
                .filter_map(|event| match event {
                    Event::DraftPick { family, .. } => Some(family.to_string()),
                    _ => None,
                })
                .collect();
            let moves_on = families[0] != families[1];
            let expected = match row.coverage {
                Coverage::Covers => true,
                Coverage::Fails => cap == 1,
                Coverage::Ignored => false,
            };
            assert_eq!(moves_on, expected, "{status:?}, cap {cap}");
        });
    }
}

#[test]
fn only_scored_nodes_compete() {
    each(|status, row| {
        let mut policy = improves(1);
        policy.promotion_top_k = 1;
        let mut driver = with(Script::default(), status, 1).start(&policy);
        driver.run_to_end();
        ended_as(&driver, 1, status);
        let is_promoted = driver
            .position(|event| matches!(event, Event::PromotionStart { node, .. } if node.0 == 1));
        let is_parent = driver
            .state
            .out_of_pool()
            .iter()
            .all(|(node, _)| node.0 != 1);
        assert_eq!(
            (is_promoted.is_some(), is_parent),
            (row.competes, row.competes)
        );
    });
}

#[test]
fn the_plateau_window_holds_scored_nodes() {
    each(|status, row| {
        let mut policy = improves(2);
        policy.plateau.enabled = true;
        policy.plateau.window = 1;
        policy.plateau.top_k = 1;
        // Below the anchor: it refreshes nothing.
        let script = Script::default().score(0, 90.0).score(1, 10.0);
        let mut driver = with(script, status, 1).start(&policy);
        until_settled(&mut driver, 1);
        ended_as(&driver, 1, status);
        assert_eq!(driver.state.is_plateau(), row.plateau_window, "{status:?}");
    });
}

#[test]
fn a_baseline_is_done_tried_again_or_fatal() {
    each(|status, row| {
        if matches!(status, NodeStatus::GenFailed | NodeStatus::GenEmpty) {
            return;
        }
        let mut script = Script::default();
        if status != NodeStatus::Scored {
            script = with(script, status, 0);
        }
        let mut driver = script.start(&improves(1));
        driver.run_to_end();
        ended_as(&driver, 0, status);
        let second = driver.state.node(NodeId(1)).map(|node| node.operator);
        let stop = driver.state.outcome().map(|outcome| outcome.reason);
        match row.seed_program {
            SeedRule::Done => assert_eq!(second, Some(Operator::Improve)),
            SeedRule::TriedAgain => assert_eq!(second, Some(Operator::Seed)),
            SeedRule::Fatal => assert_eq!((second, stop), (None, Some(StopReason::Infra))),
        }
    });
}

#[test]
fn the_document_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/failure-algebra.md");
    let document = std::fs::read_to_string(path).expect("docs/failure-algebra.md");
    assert!(
        document.contains(&failure::table()),
        "docs/failure-algebra.md differs from the table in code, which is:\n{}",
        failure::table()
    );
}

#[test]
fn placeholders_and_missing_methods_are_no_outcomes_of_their_own() {
    // METHOD.md missing is gen_failed; a placeholder is executed as usual (MTH-02, MTH-05).
    let missing = session(None, MethodState::Missing);
    let mut driver = Script::default()
        .with("engineer-1", missing)
        .start(&improves(1));
    driver.run_to_end();
    ended_as(&driver, 1, NodeStatus::GenFailed);
    let placeholder = session(Some(commit("p")), MethodState::Placeholder);
    let policy = improves(1);
    let mut driver = Script::default()
        .with("engineer-1", placeholder)
        .with(
            "execute-1-seed0",
            done(
                &policy,
                vec_types::ExecName::Seed(vec_types::ProgramSeed(0)),
                "p",
                10,
            ),
        )
        .start(&policy);
    driver.run_to_end();
    ended_as(&driver, 1, NodeStatus::Scored);
}
