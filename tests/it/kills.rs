//! SIGKILL at bad moments. After each: the event prefix is unchanged, no settled effect has a
//! second start, verify and verify --replay pass.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use serde_json::Value;
use vec_tests::{Closed, Stack};

/// Enough restarts for one death per event kind or store step.
const MANY: &str = "restarts.max=80";

fn list(entries: impl IntoIterator<Item = String>) -> String {
    let entries: Vec<String> = entries.into_iter().collect();
    format!("fault.kill_controller=[{}]", entries.join(", "))
}

/// What the controller wrote beside the run before each injected death: the stored event with its
/// hash, or the store's step.
fn deaths(run: &Closed<'_>) -> Vec<Value> {
    let path = run.dir.with_extension("faults.jsonl");
    let log = std::fs::read_to_string(path).expect("a record of deaths");
    log.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

#[test]
fn the_controller_dies_after_the_first_event_of_every_kind() {
    let stack = Stack::with_diabetes();
    let faults = list(std::iter::repeat_n("'event:each'".to_owned(), 80));
    let sets = [faults.as_str(), MANY, "budget.max_nodes=14"];
    let run = stack.launch("diabetes_demo", &sets).closed();
    run.expect_sound();
    let stored = run.stored();
    let deaths = deaths(&run);
    // Kinds that first appear in one transaction share a death.
    let died_in: BTreeSet<u64> = deaths
        .iter()
        .filter_map(|death| {
            let seq = death["seq"].as_u64()?;
            Some(stored.iter().find(|event| event.seq == seq)?.batch)
        })
        .collect();
    let mut kinds = BTreeSet::new();
    for event in &stored {
        if kinds.insert(event.kind.as_str()) {
            assert!(
                died_in.contains(&event.batch),
                "no death at the first {}",
                event.kind
            );
        }
    }
    for kind in [
        "engineer_end",
        "score_end",
        "analyze_end",
        "guard_result",
        "stop",
    ] {
        assert!(kinds.contains(kind), "{kind} never happened: {kinds:?}");
    }
    for death in &deaths {
        let seq = death["seq"].as_u64().expect("a sequence number");
        let index = usize::try_from(seq - 1).expect("fits");
        let hash = stored.get(index).map(|event| event.hash.to_string());
        assert_eq!(
            hash.as_deref(),
            death["hash"].as_str(),
            "event {seq} changed"
        );
    }
}

#[test]
fn the_controller_dies_inside_every_write_step_of_the_store() {
    let stack = Stack::with_diabetes();
    let faults = list(
        vec_store::STEPS
            .iter()
            .map(|step| format!("'store:{step}'")),
    );
    let sets = [faults.as_str(), MANY, "budget.max_nodes=3"];
    let run = stack.launch("diabetes_demo", &sets).closed();
    run.expect_sound();
    let deaths = deaths(&run);
    let died_at: BTreeSet<&str> = deaths
        .iter()
        .filter_map(|death| death["step"].as_str())
        .collect();
    let steps: BTreeSet<&str> = vec_store::STEPS.into_iter().collect();
    assert_eq!(died_at, steps, "one death per step");
}

#[test]
fn the_scorer_and_the_gateway_die_in_mid_call() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=5"]);
    run.wait_for("score_start");
    stack.kill(Some(run.id()), "scorer");
    run.wait_for("plan_start");
    stack.kill(Some(run.id()), "egress");
    run.wait_for("engineer_start");
    stack.kill(Some(run.id()), "scorer");
    run.wait_for("analyze_start");
    stack.kill(Some(run.id()), "playbook");
    let run = run.closed();
    run.expect_sound();
    let scored = run.events().iter().any(|event| {
        matches!(event, vec_search::Event::NodeSettled { status, .. }
            if *status == vec_types::NodeStatus::Scored)
    });
    assert!(scored, "the run should recover and score nodes");
}

#[test]
fn the_launcher_dies_twice() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=4"]);
    run.wait_for("execute_start");
    let controller = stack.pid(Some(run.id()), "controller");
    stack.kill(None, "launcher");
    // Any verb starts another launcher, which adopts what runs.
    stack.say(["status", run.id()]).expect_ok();
    assert_eq!(
        stack.pid(Some(run.id()), "controller"),
        controller,
        "adopted, not restarted"
    );
    stack.kill(None, "launcher");
    let run = run.closed();
    run.expect_sound();
    assert_eq!(
        run.stored()
            .iter()
            .filter(|event| event.kind == "run_resume")
            .count(),
        0
    );
}

#[test]
fn a_second_launcher_gives_way() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=1"]);
    let first = stack.pid(None, "launcher");
    stack.another_launcher().expect_ok();
    assert_eq!(stack.pid(None, "launcher"), first);
    run.closed().expect_sound();
}

/// Where connections are accepted by the kernel and answered by nobody, as with a process that is
/// dying, a verb starts a launcher instead of failing.
#[test]
fn a_launcher_that_only_accepts_is_replaced() {
    let stack = Stack::with_diabetes();
    let launcher = stack.runtime().join("launcher");
    std::fs::create_dir_all(&launcher).expect("a directory");
    for dir in [stack.runtime(), launcher.as_path()] {
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).expect("settable");
    }
    let dying = UnixListener::bind(launcher.join("s")).expect("bind");
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=1"]);
    drop(dying);
    run.closed().expect_sound();
}

#[test]
fn launcher_and_controller_die_together() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=3"]);
    run.wait_for("engineer_start");
    stack.kill(None, "launcher");
    stack.kill(Some(run.id()), "controller");
    let run = run.closed();
    run.expect_sound();
}

/// A controller that always dies uses up its restarts; the run then ends with `infra`.
#[test]
fn restarts_are_bounded() {
    let stack = Stack::with_diabetes();
    let faults = list(std::iter::repeat_n("'event:each'".to_owned(), 10));
    let run = stack
        .launch("diabetes_demo", &[&faults, "restarts.max=2"])
        .closed();
    let manifest = run.json("stop_manifest.json");
    assert_eq!(manifest["stop_reason"], "infra", "{manifest}");
    run.expect_verified();
}
