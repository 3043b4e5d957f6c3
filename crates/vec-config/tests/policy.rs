//! Every key of the search policy reaches the policy that the search decides by.

use std::path::{Path, PathBuf};

use vec_config::{load_board, load_config, policy_of};
use vec_search::{Continuation, Draft, Plateau, Policy, Reserve, Select};

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn policy(sets: &[&str]) -> Policy {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let config = load_config(&repo("configs/runs/diabetes_demo.yaml"), &sets).expect("demo");
    let board = load_board(&config.board).expect("board");
    policy_of(&config, &board)
}

#[test]
fn the_demo_covers_and_looks_for_plateaus() {
    let policy = policy(&[]);
    assert!(policy.problems().is_empty());
    let coverage = Draft::CoverageBandit {
        failed_cap: 2,
        min_explore: 0.25,
    };
    assert_eq!(policy.draft, coverage);
    let plateau = Plateau {
        enabled: true,
        window: 8,
        top_k: 5,
        draft_p: 0.5,
    };
    assert_eq!(policy.plateau, plateau);
    let families: Vec<(&str, Option<&str>)> = policy
        .families
        .iter()
        .map(|family| (family.id.as_str(), family.category.as_deref()))
        .collect();
    let expected = [
        ("linear", Some("linear_structure")),
        ("interactions", Some("linear_structure")),
        ("neighbours", Some("local_structure")),
        ("boosting", Some("local_structure")),
        ("bagging", Some("linear_structure")),
    ];
    assert_eq!(families, expected);
    assert_eq!(policy.continuation, Continuation::default());
}

#[test]
fn every_key_gets_through() {
    let changed = policy(&[
        "draft={policy: coverage_bandit, failed_cap: 3, min_explore: 0.75}",
        "plateau={enabled: false, window: 4, top_k: 2, draft_p: 0.25}",
        "select={c_puct: 2, streak_counts_gen: true, streak_len: 0, reserve_margin: 3}",
        "final.reserve_margin_s=7",
        "scoring.queue_estimate_s=2",
    ]);
    let coverage = Draft::CoverageBandit {
        failed_cap: 3,
        min_explore: 0.75,
    };
    assert_eq!(changed.draft, coverage);
    let plateau = Plateau {
        enabled: false,
        window: 4,
        top_k: 2,
        draft_p: 0.25,
    };
    assert_eq!(changed.plateau, plateau);
    let select = Select {
        c_puct: 2.0,
        streak_counts_gen: true,
        streak_len: 0,
        reserve_improve: Some(3.0),
    };
    assert_eq!(changed.select, select);
    let reserve = |time_limit_ms| Reserve {
        margin_ms: 7_000,
        queue_ms: 2_000,
        time_limit_ms,
    };
    assert_eq!(changed.reserve, Some(reserve(6_000)));

    let off = policy(&["draft.policy=round_robin", "select.reserve_improve=false"]);
    assert_eq!(off.draft, Draft::RoundRobin);
    assert_eq!(off.select.reserve_improve, None);
}

#[test]
fn the_reserve_counts_with_the_time_limit_in_force() {
    let limit = |sets: &[&str]| policy(sets).reserve.map(|reserve| reserve.time_limit_ms);
    assert_eq!(limit(&[]), Some(6_000));
    assert_eq!(limit(&["execution.time_limit_s=4"]), Some(4_000));
    assert_eq!(limit(&["execution.time_limit_s=60"]), Some(6_000));
}
