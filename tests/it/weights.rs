//! Weights that are trained once per view, in whole runs: train then replay, deaths at every step of
//! a training and its registration, damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;
use vec_search::{Event, Outcome};
use vec_tests::{Closed, Stack};
use vec_types::InfraFault;
use walkdir::WalkDir;

/// Which programs come first must not depend on the machine's load.
const ONE_BY_ONE: &str = "concurrency.nodes=1";

/// Per key of weights, in which mode how many executions used it.
fn modes(run: &Closed<'_>) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut keys: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for entry in WalkDir::new(run.dir.join("nodes"))
        .min_depth(3)
        .max_depth(3)
    {
        let entry = entry.expect("walk");
        if entry.file_name() != "report.json" {
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("readable");
        let report: Value = serde_json::from_slice(&bytes).expect("JSON");
        for record in report["views"]
            .as_object()
            .into_iter()
            .flat_map(|v| v.values())
        {
            let mode = record["weights"].as_str().expect("a mode");
            match record["weights_key"].as_str() {
                Some(key) => {
                    let modes = keys.entry(key.to_owned()).or_default();
                    *modes.entry(mode.to_owned()).or_default() += 1;
                }
                None => assert_eq!(mode, "none", "{}", entry.path().display()),
            }
        }
    }
    keys
}

#[test]
fn weights_are_trained_once_and_replayed() {
    let stack = Stack::with_diabetes();
    let run = stack
        .launch("diabetes_demo", &["budget.max_nodes=8", ONE_BY_ONE])
        .closed();
    run.expect_sound();
    let keys = modes(&run);
    assert!(!keys.is_empty(), "some program of the demo trains");
    for (key, modes) in &keys {
        let registered = modes.get("train").copied().unwrap_or_default();
        // A training whose program then failed is not registered.
        assert!(
            registered <= 1 || !modes.contains_key("replay"),
            "{key}: {modes:?}"
        );
    }
    let replayed = keys.values().filter(|modes| modes.contains_key("replay"));
    let replays: u32 = replayed.map(|modes| modes["replay"]).sum();
    assert!(replays > 0, "promotion replays: {keys:?}");
}

#[test]
fn the_controller_dies_at_every_step_of_a_training_and_its_registration() {
    let stack = Stack::with_diabetes();
    let in_batch = vec_store::STEPS.into_iter().take(5);
    let steps: Vec<&str> = vec_exec::STEPS.into_iter().chain(in_batch).collect();
    dies_at(&stack, &steps);
    // From here on the registration is there, so the next start of the execution replays.
    dies_at(&stack, &["ledger_synced"]);
}

fn dies_at(stack: &Stack, steps: &[&str]) {
    let faults: Vec<String> = steps
        .iter()
        .map(|step| format!("'weights:{step}'"))
        .collect();
    let faults = format!("fault.kill_controller=[{}]", faults.join(", "));
    let sets = [
        faults.as_str(),
        "restarts.max=80",
        "budget.max_nodes=14",
        ONE_BY_ONE,
    ];
    let run = stack.launch("diabetes_demo", &sets).closed();
    run.expect_sound();
    let log = std::fs::read_to_string(run.dir.with_extension("faults.jsonl")).expect("deaths");
    let died_at: Vec<String> = log
        .lines()
        .map(|line| {
            let death: Value = serde_json::from_str(line).expect("JSON");
            death["step"].as_str().expect("a step").to_owned()
        })
        .collect();
    assert_eq!(died_at, steps, "one death per step, in order");
    // What is registered is complete: every index names artifacts that are there.
    let mut indexes = 0;
    for entry in WalkDir::new(run.dir.join("artifacts/per_view")) {
        let entry = entry.expect("walk");
        if !entry.file_type().is_file() {
            continue;
        }
        indexes += 1;
        let bytes = std::fs::read(entry.path()).expect("readable");
        let index: Value = serde_json::from_slice(&bytes).expect("JSON");
        for file in index["files"].as_array().expect("files") {
            let name = file["sha256"].as_str().expect("a digest");
            let artifact = std::fs::read(run.dir.join("artifacts").join(name)).expect("there");
            assert_eq!(
                artifact.len() as u64,
                file["bytes"].as_u64().expect("bytes")
            );
        }
    }
    assert!(indexes > 0, "something was registered");
    assert!(
        modes(&run)
            .values()
            .any(|modes| modes.contains_key("replay")),
        "what was registered before a death is replayed after it"
    );
}

/// A flipped byte in a registered weight: whatever would use it is interrupted, and nothing is
/// trained again in its place (PVW-06).
#[test]
fn a_flipped_byte_interrupts_and_nothing_retrains() {
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=8", ONE_BY_ONE]);
    let (over, is_over) = channel::<()>();
    let artifacts = run.dir().join("artifacts");
    let flipping = std::thread::spawn(move || flip_each(&artifacts, &is_over));
    let run = run.closed();
    drop(over);
    let flipped = flipping.join().expect("no panic");
    assert!(!flipped.is_empty(), "weights were registered");
    let damaged: BTreeSet<String> = run
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::EffectEnded {
                end: Outcome::Interrupted { fault, detail },
                ..
            } if detail.contains("registered weights are damaged") => {
                assert_eq!(*fault, InfraFault::Interrupted);
                Some(detail.clone())
            }
            _ => None,
        })
        .collect();
    assert!(!damaged.is_empty(), "a promotion meets the damage");
    for detail in &damaged {
        assert!(flipped.iter().any(|name| detail.contains(name)), "{detail}");
    }
    for (key, modes) in modes(&run) {
        assert_eq!(modes.get("train"), Some(&1), "{key}: {modes:?}");
        assert!(!modes.contains_key("replay"), "{key}: {modes:?}");
    }
    // The evidence itself says that it was touched.
    let touched = flipped.iter().next().expect("one");
    stack.say(["verify", &run.id]).expect_refused(&[]);
    let said = stack.say(["verify", &run.id]);
    assert!(
        said.stdout.contains(touched) || said.stderr.contains(touched),
        "{said:?}"
    );
}

/// Flips a byte in every artifact as it comes, until told that the run is over.
fn flip_each(artifacts: &Path, is_over: &Receiver<()>) -> BTreeSet<String> {
    let mut flipped = BTreeSet::new();
    loop {
        for entry in std::fs::read_dir(artifacts).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.path().is_file() || flipped.contains(&name) {
                continue;
            }
            let bytes = std::fs::read(entry.path()).expect("readable");
            let last = bytes.len() - 1;
            let file = OpenOptions::new().write(true).open(entry.path());
            // An ordinary user may not write what is read-only: then it is replaced.
            let written = file.and_then(|file| file.write_all_at(&[bytes[last] ^ 1], last as u64));
            if written.is_err() {
                let mut bytes = bytes;
                bytes[last] ^= 1;
                std::fs::remove_file(entry.path()).expect("removable");
                std::fs::write(entry.path(), bytes).expect("writable");
            }
            flipped.insert(name);
        }
        if let Err(RecvTimeoutError::Disconnected) = is_over.recv_timeout(Duration::from_millis(1))
        {
            return flipped;
        }
    }
}
