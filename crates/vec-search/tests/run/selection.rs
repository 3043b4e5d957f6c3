//! Parent selection and draws, rule by rule.

use proptest::prelude::*;
use vec_search::futs::Tree;
use vec_search::{Event, Mt19937, Policy, SelectReason, Standing};
use vec_types::{CandidateFault, NodeId, NodeStatus, Operator, SeedState};

use crate::driver::Driver;
use crate::fixture::{fault, policy, seed_program};
use crate::world::Script;

/// Only improves, only the anchor as a seed, one node at a time.
fn improve_only(max_nodes: u32) -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = max_nodes;
    policy.promotion_top_k = 0;
    policy
}

fn selections(driver: &Driver<Script>) -> Vec<(NodeId, SelectReason, Vec<Standing>)> {
    driver
        .events()
        .filter_map(|event| match event {
            Event::Select {
                parent,
                reason,
                standings,
                ..
            } => Some((*parent, *reason, standings.clone())),
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With every rule idle and no ties the wrapper is the reference, bit for bit.
    #[test]
    fn the_idle_wrapper_equals_futs(
        scores in proptest::collection::btree_set(1_u32..1_000_000, 2..25),
        order in any::<u64>(),
        c_puct in 0.1_f64..3.0,
    ) {
        let mut scores: Vec<f64> = scores.into_iter().map(|s| f64::from(s) / 1e4).collect();
        let mut random = crate::random::Random::new(order);
        for i in (1..scores.len()).rev() {
            let other = usize::try_from(random.below(i as u64 + 1)).expect("fits");
            scores.swap(i, other);
        }
        let mut policy = improve_only(u32::try_from(scores.len() - 1).expect("fits"));
        policy.select.c_puct = c_puct;
        let mut script = Script::default();
        for (node, score) in scores.iter().enumerate() {
            script = script.score(u32::try_from(node).expect("fits"), *score);
        }
        let mut driver = script.start(&policy);
        driver.run_to_end();
        let mut tree = Tree::new();
        tree.expand(None, scores[0]).expect("root");
        let found = selections(&driver);
        prop_assert_eq!(found.len(), scores.len() - 1);
        for (score, (parent, reason, standings)) in scores[1..].iter().zip(found) {
            let expected = tree.select(c_puct).expect("not empty");
            prop_assert_eq!(reason, SelectReason::ArgmaxU);
            prop_assert_eq!(usize::try_from(parent.0).expect("fits"), expected.selected);
            for (node, standing) in standings.iter().enumerate() {
                prop_assert_eq!(standing.rank.to_bits(), expected.rank_scores[node].to_bits());
                prop_assert_eq!(standing.u.to_bits(), expected.pucts[node].to_bits());
                prop_assert_eq!(standing.visits, tree.visits()[node]);
            }
            tree.expand(Some(expected.selected), *score).expect("child");
        }
    }
}

#[test]
fn draws_are_cpythons_one_per_created_node() {
    let mut driver = Script::default().start(&policy());
    driver.run_to_end();
    let mut generator = Mt19937::new(policy().search_seed);
    let mut drawn = 0;
    for event in driver.events() {
        let Event::Draw {
            index, u, operator, ..
        } = event
        else {
            continue;
        };
        assert_eq!((*index, u.to_bits()), (drawn, generator.random().to_bits()));
        let expected = match *u {
            u if u < 0.15 => Operator::Draft,
            u if u < 0.30 => Operator::Debug,
            _ => Operator::Improve,
        };
        assert_eq!(*operator, expected);
        drawn += 1;
    }
    assert_eq!(drawn, 16);
}

#[test]
fn a_busy_parent_is_avoided_while_another_is_idle() {
    let mut policy = improve_only(3);
    policy.concurrency_nodes = 3;
    policy.seed_programs = vec![
        seed_program("train_mean", SeedState::Anchor),
        seed_program("ols", SeedState::Exploration),
    ];
    let mut driver = Script::default()
        .score(0, 60.0)
        .score(1, 50.0)
        .start(&policy);
    driver.run_to_end();
    let first: Vec<(NodeId, SelectReason)> = selections(&driver)
        .into_iter()
        .map(|(parent, reason, _)| (parent, reason))
        .take(3)
        .collect();
    assert_eq!(first[0], (NodeId(0), SelectReason::ArgmaxU));
    assert_eq!(first[1], (NodeId(1), SelectReason::ArgmaxU));
    assert_eq!(first[2].1, SelectReason::ArgmaxUBusy);
}

#[test]
fn two_failures_in_a_row_suspend_a_parent_until_a_node_appears_elsewhere() {
    let mut policy = improve_only(4);
    policy
        .seed_programs
        .push(seed_program("ols", SeedState::Exploration));
    let crash = || fault(CandidateFault::Crash);
    let script = Script::default()
        .score(0, 90.0)
        .score(1, 10.0)
        .with("execute-2-seed0", crash())
        .with("execute-3-seed0", crash());
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let parents: Vec<NodeId> = selections(&driver).into_iter().map(|s| s.0).collect();
    // Node 0 fails twice and is left out of the third choice; node 4 below node 1 brings it back.
    assert_eq!(parents[..3], [NodeId(0), NodeId(0), NodeId(1)]);
    let standings: Vec<NodeId> = selections(&driver)[3].2.iter().map(|s| s.node).collect();
    assert!(standings.contains(&NodeId(0)), "{standings:?}");
    assert_eq!(driver.state.node(NodeId(2)).expect("exists").visits, 1);
}

#[test]
fn suspensions_are_lifted_when_nothing_else_is_left() {
    let policy = improve_only(3);
    let crash = || fault(CandidateFault::Hung);
    let script = Script::default()
        .with("execute-1-seed0", crash())
        .with("execute-2-seed0", crash());
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let reasons: Vec<SelectReason> = selections(&driver).into_iter().map(|s| s.1).collect();
    assert_eq!(reasons[2], SelectReason::ArgmaxUSuspended);
}

#[test]
fn exploration_seeds_are_capped_and_reference_seeds_never_parents() {
    let mut policy = improve_only(8);
    policy
        .seed_programs
        .push(seed_program("ols", SeedState::Exploration));
    policy
        .seed_programs
        .push(seed_program("ref", SeedState::ReferenceOnly));
    let mut script = Script::default()
        .score(0, 10.0)
        .score(1, 90.0)
        .score(2, 99.0);
    for node in 3..11 {
        script = script.score(node, 1.0);
    }
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let parents: Vec<NodeId> = selections(&driver).into_iter().map(|s| s.0).collect();
    assert!(!parents.contains(&NodeId(2)), "{parents:?}");
    let of_exploration = parents.iter().filter(|p| **p == NodeId(1)).count();
    assert_eq!(of_exploration, 2, "{parents:?}");
}

#[test]
fn debug_repairs_a_failed_node_at_most_twice_and_stops_after_success() {
    let mut policy = improve_only(6);
    policy.debug_p = 1.0;
    let crash = || fault(CandidateFault::Crash);
    let script = Script::default()
        .with("execute-1-seed0", crash())
        .with("execute-2-seed0", crash());
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let made: Vec<(Operator, Option<NodeId>)> = driver
        .state
        .nodes()
        .skip(1)
        .map(|node| (node.operator, node.parent))
        .collect();
    // 1 improves the seed and crashes; 2 repairs 1 and crashes; 3 repairs 2, the newest; then 1
    // has one attempt left, and nothing else is failed.
    assert_eq!(
        made,
        [
            (Operator::Improve, Some(NodeId(0))),
            (Operator::Debug, Some(NodeId(1))),
            (Operator::Debug, Some(NodeId(2))),
            (Operator::Debug, Some(NodeId(1))),
            (Operator::Improve, made[4].1),
            (Operator::Improve, made[5].1),
        ]
    );
    assert!(
        driver
            .position(|e| matches!(e, Event::FallbackToImprove { .. }))
            .is_some()
    );
}

#[test]
fn drafts_go_round_robin_in_library_order_failures_included() {
    let mut policy = improve_only(5);
    policy.draft_p = 1.0;
    let script = Script::default().with("execute-2-seed0", fault(CandidateFault::Oom));
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let families: Vec<String> = driver
        .state
        .nodes()
        .skip(1)
        .map(|node| node.family.expect("drafts have one").to_string())
        .collect();
    assert_eq!(families, ["linear", "trees", "linear", "trees", "linear"]);
    assert!(
        driver
            .state
            .nodes()
            .skip(1)
            .all(|node| node.parent.is_none())
    );
}

#[test]
fn a_draft_without_library_falls_back_to_improve() {
    let mut policy = improve_only(1);
    policy.draft_p = 1.0;
    policy.families.clear();
    let mut driver = Script::default().start(&policy);
    driver.run_to_end();
    let node = driver.state.node(NodeId(1)).expect("created");
    assert_eq!(
        (node.operator, node.parent),
        (Operator::Improve, Some(NodeId(0)))
    );
    assert_eq!(node.status, NodeStatus::Scored);
}

#[test]
fn shelved_children_do_not_count_for_the_cap() {
    let mut policy = improve_only(8);
    policy
        .seed_programs
        .push(seed_program("ols", SeedState::Exploration));
    let lost = || vec_search::Outcome::Interrupted {
        fault: vec_types::InfraFault::Interrupted,
        detail: "a daemon died".to_owned(),
    };
    let mut script = Script::default()
        .score(0, 10.0)
        .score(1, 90.0)
        .with("engineer-2", lost())
        .with("engineer-3", lost());
    for node in 4..10 {
        script = script.score(node, 1.0);
    }
    let mut driver = script.start(&policy);
    driver.run_to_end();
    let parents: Vec<NodeId> = selections(&driver).into_iter().map(|s| s.0).collect();
    let of_exploration = parents.iter().filter(|p| **p == NodeId(1)).count();
    assert_eq!(
        of_exploration, 4,
        "two shelved and two that count: {parents:?}"
    );
}
