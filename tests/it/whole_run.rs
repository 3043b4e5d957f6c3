//! The main job: launch to a packaged, verified result.

use std::collections::BTreeSet;

use serde_json::Value;
use vec_search::Event;
use vec_tests::{Stack, repository};

/// The demo's own configuration, seed and node count.
#[test]
fn a_seeded_playbook_replaces_the_baseline() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &[]);
    run.wait_for("engineer_start");
    let status = stack.say(["status", "--json", run.id()]).expect_ok();
    let status: Value = serde_json::from_str(&status.stdout).expect("status is JSON");
    assert_eq!(status["run"], run.id(), "{status}");
    let rss_kib: u64 = ["controller", "scorer", "egress", "playbook"]
        .iter()
        .filter_map(|service| rss_kib(stack.pid(Some(run.id()), service)?))
        .sum::<u64>()
        + stack
            .pid(None, "launcher")
            .and_then(rss_kib)
            .unwrap_or_default();
    assert!(
        (1..=200 << 10).contains(&rss_kib),
        "all daemons together: {rss_kib} KiB"
    );

    // While the run goes on, and below for every node of the closed run.
    let live = stack.say(["explain", run.id(), "0"]).expect_ok();
    assert!(live.stdout.contains("the baseline"), "{live:?}");

    let run = run.closed();
    run.expect_verified();
    run.expect_each_effect_settled_once();
    let events = run.events();
    expect_explained(&stack, &run.id, &events);
    let outcomes: BTreeSet<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::NodeSettled { status, .. } => Some(status.as_str()),
            _ => None,
        })
        .collect();
    assert!(outcomes.len() >= 4, "outcomes: {outcomes:?}");
    let replaced = events.iter().any(|event| {
        matches!(event, Event::GuardResult { replace: true, complete: true, lower_bound: Some(bound), .. } if *bound > 0.0)
    });
    assert!(replaced, "the guard should replace the baseline");
    let manifest = run.json("stop_manifest.json");
    assert_eq!(manifest["stop_reason"], "budget");
    assert_eq!(manifest["winner_is_baseline"], false);
    let meta = run.json("run_meta.json");
    assert!(
        meta["harness_overhead"]["median_ms"]
            .as_f64()
            .is_some_and(|ms| ms > 0.0),
        "{meta}"
    );
    let selection = std::fs::read_to_string(run.dir.join("final/SELECTION.md")).expect("written");
    assert!(
        selection.contains("The candidate replaces the baseline."),
        "{selection}"
    );

    let package = stack.say(["package", &run.id]).expect_ok();
    assert!(
        stack
            .root()
            .join(format!("{}.package/MANIFEST.json", run.id))
            .is_file(),
        "{package:?}"
    );
    let again = stack.say(["package", &run.id]);
    assert!(!again.ok, "a package is never overwritten");
}

fn expect_explained(stack: &Stack, run: &str, events: &[Event]) {
    let mut nodes = 0_u32;
    for event in events {
        let Event::NodeCreated { node, parent, .. } = event else {
            continue;
        };
        nodes += 1;
        let said = stack
            .say(["explain", "--json", run, &node.to_string()])
            .expect_ok();
        let json: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(json["node"], node.0, "{json}");
        let parent = parent.map(|parent| parent.0);
        assert_eq!(json["parent"], serde_json::json!(parent), "{json}");
    }
    let beyond = stack.say(["explain", run, &nodes.to_string()]);
    beyond.expect_refused(&["its nodes are 0 to"]);
}

fn rss_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn an_a_a_playbook_keeps_the_baseline() {
    let stack = Stack::empty();
    stack
        .build(
            "diabetes_aa",
            &repository().join("tests/data/diabetes"),
            &[],
        )
        .expect_ok();
    let run = stack
        .launch("diabetes_aa", &["budget.max_nodes=6"])
        .closed();
    run.expect_verified();
    let kept = run.events().iter().any(|event| {
        matches!(
            event,
            Event::GuardResult {
                replace: false,
                complete: true,
                ..
            }
        )
    });
    assert!(kept, "the guard should have run and kept the baseline");
    let manifest = run.json("stop_manifest.json");
    assert_eq!(manifest["winner_is_baseline"], true);
}

/// Bit-equal reruns are promised for one node at a time.
#[test]
fn one_node_at_a_time_repeats_every_decision() {
    let sets = ["concurrency.nodes=1", "budget.max_nodes=4", "search_seed=5"];
    let decisions = || {
        let stack = Stack::with_diabetes();
        let run = stack.launch("diabetes_demo", &sets).closed();
        let events = run.events();
        events
            .into_iter()
            .filter(|event| !event.is_fact())
            .map(|event| format!("{event:?}"))
            .collect::<Vec<String>>()
    };
    let (first, second) = (decisions(), decisions());
    assert_eq!(first.len(), second.len());
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
}

#[test]
fn stop_ends_a_run_and_resume_goes_on() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=4"]);
    let id = run.id().to_owned();
    run.wait_for("engineer_start");
    stack.say(["stop", &id]).expect_ok();
    let stopped = run.closed();
    assert_eq!(
        stopped.json("stop_manifest.json")["stop_reason"],
        "operator"
    );
    stopped.expect_verified();
    let before = stopped.stored();

    stack.say(["resume", &id]).expect_ok();
    let resumed = vec_tests::WatchedRun::watch(&stack, id.clone()).closed();
    resumed.expect_verified();
    resumed.expect_each_effect_settled_once();
    assert_eq!(resumed.json("stop_manifest.json")["stop_reason"], "budget");
    let after = resumed.stored();
    assert!(after.len() > before.len());
    assert_eq!(
        after.get(..before.len()),
        Some(before.as_slice()),
        "the prefix is unchanged"
    );

    let refused = stack.say(["resume", &id]);
    refused.expect_refused(&["final selection"]);
}
