//! The process dies at every write step: what was acknowledged is there, what was not is either
//! whole or kept as an orphan, and the run goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use vec_store::{
    Archive, Batch, Content, NewFile, Recovery, RunLayout, STEPS, Store, StoreError, StoredEvent,
    TreeLimits, check_events,
};

use crate::support::{
    assert_covered, at, copy_tree, file, ledger_of, node_events, rel, run_id, stop_event,
};

/// One commit of a made-up run.
#[derive(Debug, Clone)]
enum Step {
    /// New files of a node.
    Create { files: u8 },
    /// A file with a new version each time.
    Replace,
    /// An effect repeated with other bytes.
    Repeat,
    /// A directory out of the spool.
    Tree,
    /// Weights: an artifact and its index, once.
    Once,
    /// Events only.
    Events,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1_u8..4).prop_map(|files| Step::Create { files }),
        Just(Step::Replace),
        Just(Step::Repeat),
        Just(Step::Tree),
        Just(Step::Once),
        Just(Step::Events),
    ];
    prop::collection::vec(step, 1..5)
}

fn files_for(step: &Step, n: usize, layout: &RunLayout) -> Vec<NewFile> {
    match step {
        Step::Create { files } => (0..*files)
            .map(|k| file(&format!("nodes/{n}/file{k}"), &format!("{n} {k}")))
            .collect(),
        Step::Replace => vec![NewFile::replace(rel("final/SELECTION.md"), format!("v{n}"))],
        Step::Repeat => vec![file("nodes/0/PLAN.json", &format!("attempt {n}"))],
        Step::Tree => {
            let dir = layout.spool().join(format!("exec{n}"));
            fs::create_dir_all(dir.join("main")).expect("mkdir");
            fs::write(dir.join("main/pred.csv"), format!("{n}")).expect("pred");
            fs::write(dir.join("stdout"), "").expect("stdout");
            let limits = TreeLimits {
                files_max: 9,
                bytes_max: 99,
            };
            let dest = rel(&format!("nodes/{n}/seed0"));
            NewFile::tree(&dest, &dir, limits).expect("tree")
        }
        Step::Once => {
            let once = |path: &str, text: String| {
                NewFile::once(rel(path), Content::Bytes(text.into_bytes()))
            };
            vec![
                once(&format!("artifacts/{}", n % 2), format!("{}", n % 2)),
                once("artifacts/per_view/t/k.json", format!("{n}")),
            ]
        }
        Step::Events => Vec::new(),
    }
}

struct Snapshot {
    step: &'static str,
    root: PathBuf,
    acknowledged: u64,
}

/// Plays the steps and a close; copies everything after every write step.
async fn play(steps: &[Step], root: &Path, copies: &Path) -> (Vec<StoredEvent>, Vec<Snapshot>) {
    let mut store = Store::create(root, &run_id(), at(0))
        .await
        .expect("creates");
    let layout = store.layout().clone();
    // As the launcher does, before any event.
    let lock = Batch {
        at: at(0),
        files: vec![file("config.lock.json", "{}")],
        events: Vec::new(),
    };
    store.commit(lock).await.expect("commits the lock");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let taken = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let (acknowledged, taken) = (acknowledged.clone(), taken.clone());
        let (root, copies) = (root.to_owned(), copies.to_owned());
        move |step: &'static str| {
            let mut taken = taken.lock().expect("one at a time");
            let copy = copies.join(format!("{}-{step}", taken.len()));
            copy_tree(&root, &copy);
            taken.push(Snapshot {
                step,
                root: copy,
                acknowledged: acknowledged.load(Ordering::SeqCst),
            });
        }
    };
    store.set_fault_hook(Arc::new(hook));
    for (n, step) in steps.iter().enumerate() {
        let batch = Batch {
            at: at(n as i64),
            files: files_for(step, n, &layout),
            events: node_events(n as u32),
        };
        let stored = store.commit(batch).await.expect("commits");
        acknowledged.fetch_add(stored.len() as u64, Ordering::SeqCst);
        store.mark_archive(at(n as i64)).await.expect("marks");
    }
    let events = store.events().await.expect("events");
    store.close(at(99), &json!({"n": 1})).await.expect("closes");
    assert_covered(&layout);
    drop(layout);
    let snapshots = std::mem::take(&mut *taken.lock().expect("done"));
    (events, snapshots)
}

async fn recover(snapshot: &Snapshot, reference: &[StoredEvent]) {
    let layout = RunLayout::new(&snapshot.root, &run_id());
    let step = snapshot.step;
    let (mut store, recovery) = match Store::open(layout.run_dir(), at(100)).await {
        Ok(opened) => opened,
        Err(StoreError::Closed(_)) if ledger_of(&layout).closed => {
            return assert_covered(&layout);
        }
        Err(error) => panic!("crash after {step}: {error}"),
    };
    assert_eq!(recovery.missing, [], "crash after {step}");
    let events = store.events().await.expect("events");
    check_events(&events).expect("chain holds");
    assert!(
        events.len() as u64 >= snapshot.acknowledged,
        "crash after {step}"
    );
    assert_eq!(events, reference[..events.len()], "crash after {step}");
    assert_covered(&layout);
    store.release().await.expect("releases");
    let (mut store, again) = Store::open(layout.run_dir(), at(101)).await.expect("opens");
    assert_eq!(again, Recovery::default(), "crash after {step}");
    let batch = Batch {
        at: at(102),
        files: vec![
            file("nodes/0/PLAN.json", "after the crash"),
            NewFile::replace(rel("final/SELECTION.md"), "after the crash"),
        ],
        events: vec![stop_event()],
    };
    store.commit(batch).await.expect("the run goes on");
    store.close(at(103), &json!({})).await.expect("closes");
    assert_covered(&layout);
    let (mut copy, _dir) = Archive::open_copy(&layout.archive()).await.expect("copy");
    let tables = copy.dump_projections().await.expect("dump");
    copy.rebuild_projections().await.expect("rebuild");
    assert_eq!(copy.dump_projections().await.expect("dump"), tables);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]
    #[test]
    fn a_crash_after_any_write_step_loses_nothing_acknowledged(steps in steps()) {
        let dir = TempDir::new().expect("tempdir");
        let (root, copies) = (dir.path().join("runs"), dir.path().join("copies"));
        runtime().block_on(async {
            let (events, snapshots) = play(&steps, &root, &copies).await;
            for snapshot in &snapshots {
                recover(snapshot, &events).await;
            }
        });
    }
}

#[test]
fn every_named_step_is_reached() {
    let dir = TempDir::new().expect("tempdir");
    let (root, copies) = (dir.path().join("runs"), dir.path().join("copies"));
    let steps = [Step::Create { files: 1 }];
    let (_, snapshots) = runtime().block_on(play(&steps, &root, &copies));
    let mut reached: Vec<&str> = Vec::new();
    for snapshot in &snapshots {
        if !reached.contains(&snapshot.step) {
            reached.push(snapshot.step);
        }
    }
    assert_eq!(reached, STEPS);
}

#[test]
fn a_ledger_append_torn_at_every_byte_is_recovered_and_kept() {
    let dir = TempDir::new().expect("tempdir");
    let (root, copies) = (dir.path().join("runs"), dir.path().join("copies"));
    let steps = [Step::Create { files: 1 }, Step::Create { files: 3 }];
    runtime().block_on(async {
        let (events, snapshots) = play(&steps, &root, &copies).await;
        let appended: Vec<&Snapshot> = snapshots
            .iter()
            .filter(|s| s.step == "ledger_appended")
            .collect();
        // The second commit's append is the third: a mark lies between.
        let torn = appended[2];
        let before = RunLayout::new(&appended[1].root, &run_id());
        let start = fs::metadata(before.ledger()).expect("ledger").len();
        let whole = RunLayout::new(&torn.root, &run_id());
        let end = fs::metadata(whole.ledger()).expect("ledger").len();
        for cut in (start..end).step_by(7) {
            let root = dir.path().join("torn");
            copy_tree(&torn.root, &root);
            let layout = RunLayout::new(&root, &run_id());
            let ledger = fs::OpenOptions::new().write(true).open(layout.ledger());
            ledger.expect("ledger").set_len(cut).expect("cut");
            let snapshot = Snapshot {
                step: "torn",
                root: root.clone(),
                acknowledged: torn.acknowledged,
            };
            recover(&snapshot, &events).await;
            fs::remove_dir_all(&root).expect("rm");
        }
    });
}

#[test]
fn a_panic_in_a_step_breaks_the_store_until_it_is_opened_again() {
    for broken_at in ["temps_synced", "renamed", "ledger_synced"] {
        let dir = TempDir::new().expect("tempdir");
        runtime().block_on(async {
            let mut store = Store::create(dir.path(), &run_id(), at(0))
                .await
                .expect("creates");
            let layout = store.layout().clone();
            store.set_fault_hook(Arc::new(move |step| assert_ne!(step, broken_at)));
            let batch = |n| Batch {
                at: at(n),
                files: vec![file("nodes/0/PLAN.json", "{}")],
                events: node_events(0),
            };
            let cut = store.commit(batch(1)).await;
            assert!(matches!(cut, Err(StoreError::CutShort(_))), "{cut:?}");
            assert!(store.is_broken());
            let refused = store.commit(batch(2)).await;
            assert!(matches!(refused, Err(StoreError::Broken(_))), "{refused:?}");
            drop(store);
            let (mut store, _) = Store::open(layout.run_dir(), at(3)).await.expect("opens");
            store.commit(batch(4)).await.expect("commits");
            assert_covered(&layout);
            store.release().await.expect("releases");
        });
    }
}
