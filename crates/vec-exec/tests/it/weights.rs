//! PVW: train once, replay verified, never retrain in silence, and leave nothing half done.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use vec_exec::{
    ExecError, FixedArtifact, Found, Index, STEPS, Weights, place_copies, place_fixed,
    place_registered,
};
use vec_store::{Content, NewFile, RunLayout, Store, rel};
use vec_types::Digest;

use crate::support::{
    at, commit, copy_tree, declared, execute, parts, run_id, scratch, solution, store, tempdir,
    trains, weights,
};

async fn trained(root: &Path) -> (Store, Weights) {
    let mut store = store(root).await;
    let weights = weights(&store);
    let first = scratch(store.layout(), "first");
    let (files, lock) = execute(&weights, &first, trains)
        .await
        .expect("trains")
        .expect("first");
    commit(&mut store, files).await;
    weights.note_registered(&store.registered_below("artifacts"));
    drop(lock);
    (store, weights)
}

fn index(weights: &Weights) -> Index {
    let dir = tempdir();
    let declared = declared(&solution(dir.path()));
    match weights.find(&parts(), &declared).expect("sound") {
        Found::Registered(index) => *index,
        Found::Unknown => panic!("registered"),
    }
}

#[tokio::test]
async fn the_first_execution_trains_and_the_next_replays_read_only() {
    let root = tempdir();
    let (mut store, weights) = trained(root.path()).await;
    let layout = store.layout().clone();
    let index = index(&weights);
    let shown: Vec<&str> = index.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(shown, ["weights/a.bin", "weights/deep/b.bin"]);
    for file in &index.files {
        let mode = fs::metadata(layout.at(&rel::artifact(file.sha256)))
            .expect("artifact")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o444);
    }
    let again = scratch(&layout, "again");
    let replayed = execute(&weights, &again, |_| panic!("must not train")).await;
    assert!(replayed.expect("replays").is_none());
    let place = again.join("solution/weights");
    assert_eq!(fs::read_to_string(place.join("a.bin")).expect("a"), "first");
    assert_eq!(
        fs::read_to_string(place.join("deep/b.bin")).expect("b"),
        "second"
    );
    assert_eq!(
        fs::read_to_string(place.join("README")).expect("kept"),
        "kept\n"
    );
    let mode = fs::metadata(place.join("a.bin")).expect("a").permissions();
    assert_eq!(mode.mode() & 0o222, 0, "read-only");
    fs::remove_dir_all(&again).expect("rm");
    // A later start knows it from the ledger.
    store.mark_archive(at(2)).await.expect("marks");
    store.release().await.expect("releases");
    let (store, recovery) = Store::open(layout.run_dir(), at(3)).await.expect("opens");
    assert_eq!(recovery, vec_store::Recovery::default());
    let weights = crate::support::weights(&store);
    let later = scratch(&layout, "later");
    let replayed = execute(&weights, &later, |_| panic!("must not train")).await;
    assert!(replayed.expect("replays").is_none());
}

#[tokio::test]
async fn two_executions_of_a_key_at_once_train_once() {
    let root = tempdir();
    let store = Arc::new(tokio::sync::Mutex::new(store(root.path()).await));
    let weights = weights(&*store.lock().await);
    let trainings = Arc::new(AtomicU32::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let (store, weights, trainings) = (store.clone(), weights.clone(), trainings.clone());
        tasks.spawn(async move {
            let dir = scratch(weights.layout(), &format!("exec-{n}"));
            let counting = |solution: &Path| {
                trainings.fetch_add(1, Ordering::SeqCst);
                trains(solution);
            };
            let done = execute(&weights, &dir, counting).await.expect("sound");
            if let Some((files, lock)) = done {
                // The others come to the lock while this one still registers.
                tokio::task::yield_now().await;
                let mut store = store.lock().await;
                commit(&mut store, files).await;
                weights.note_registered(&store.registered_below("artifacts"));
                drop(lock);
            }
            let place = dir.join("solution/weights/a.bin");
            fs::read_to_string(place).expect("there")
        });
    }
    while let Some(text) = tasks.join_next().await {
        assert_eq!(text.expect("no panic"), "first");
    }
    assert_eq!(trainings.load(Ordering::SeqCst), 1);
    assert_eq!(weights.locks().in_use(), 0);
}

type Damage = fn(&RunLayout, &Index);

fn artifact(layout: &RunLayout, index: &Index) -> PathBuf {
    layout.at(&rel::artifact(index.files[0].sha256))
}

fn index_path(layout: &RunLayout, index: &Index) -> PathBuf {
    layout.at(&rel::weights_index(&index.tree, index.key))
}

fn rewrite(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("read");
    change(&mut bytes);
    fs::remove_file(path).expect("rm");
    fs::write(path, bytes).expect("write");
}

fn replace_index(layout: &RunLayout, index: &Index, change: impl Fn(&mut Index)) {
    let mut other = index.clone();
    change(&mut other);
    let bytes = other.to_bytes().expect("bytes");
    rewrite(&index_path(layout, index), |old| *old = bytes.clone());
}

fn link(path: &Path) {
    let target = path.with_extension("x");
    fs::rename(path, &target).expect("mv");
    std::os::unix::fs::symlink(&target, path).expect("link");
}

const DAMAGES: [(&str, Damage, &str); 8] = [
    (
        "flipped byte",
        |l, i| rewrite(&artifact(l, i), |b| b[0] ^= 1),
        "has sha256",
    ),
    (
        "longer",
        |l, i| rewrite(&artifact(l, i), |b| b.push(0)),
        "bytes, not 5",
    ),
    (
        "no artifact",
        |l, i| fs::remove_file(artifact(l, i)).expect("rm"),
        "is missing",
    ),
    ("a link", |l, i| link(&artifact(l, i)), "is not a regular"),
    (
        "no index",
        |l, i| fs::remove_file(index_path(l, i)).expect("rm"),
        "is missing",
    ),
    (
        "cut index",
        |l, i| rewrite(&index_path(l, i), |b| b.truncate(40)),
        "not a complete",
    ),
    (
        "index of fewer files",
        |l, i| replace_index(l, i, |index| drop(index.files.pop())),
        "exactly the declared",
    ),
    (
        "index of another key",
        |l, i| replace_index(l, i, |index| index.train_seed = 1),
        "something else",
    ),
];

/// Whatever is wrong with registered weights, the next execution is interrupted and nothing is
/// trained (PVW-06).
#[tokio::test]
async fn damage_interrupts_and_never_retrains() {
    for (name, damage, said) in DAMAGES {
        let root = tempdir();
        let (store, weights) = trained(root.path()).await;
        damage(store.layout(), &index(&weights));
        let dir = scratch(store.layout(), "again");
        let error = execute(&weights, &dir, |_| panic!("{name}: must not train"))
            .await
            .expect_err(name);
        assert!(
            matches!(error, ExecError::Damaged { .. }),
            "{name}: {error}"
        );
        assert!(!error.is_candidates() && !error.is_budget_cut(), "{name}");
        assert!(error.to_string().contains(said), "{name}: {error}");
    }
}

/// What a first run leaves as its weights is the program's business (PVW-05, PVW-06).
#[tokio::test]
async fn a_first_run_without_its_weights_is_the_programs_fault() {
    type Train = fn(&Path);
    let rows: [(&str, Train, &str); 4] = [
        ("nothing", |_| {}, "was not written"),
        (
            "a directory",
            |s| {
                trains(s);
                fs::remove_file(s.join("weights/a.bin")).expect("rm");
                fs::create_dir(s.join("weights/a.bin")).expect("mkdir");
            },
            "is not a regular file",
        ),
        (
            "a link",
            |s| {
                trains(s);
                fs::remove_file(s.join("weights/a.bin")).expect("rm");
                std::os::unix::fs::symlink("/etc/hostname", s.join("weights/a.bin")).expect("link");
            },
            "leads through a link",
        ),
        (
            "too large",
            |s| {
                trains(s);
                let file = fs::File::create(s.join("weights/a.bin")).expect("create");
                file.set_len(8_000_000_001).expect("sparse");
            },
            "larger than 8 GB",
        ),
    ];
    for (name, train, said) in rows {
        let root = tempdir();
        let store = store(root.path()).await;
        let weights = weights(&store);
        let dir = scratch(store.layout(), "first");
        let error = execute(&weights, &dir, train).await.expect_err(name);
        assert!(error.is_candidates(), "{name}: {error}");
        assert!(error.to_string().contains(said), "{name}: {error}");
        let declared = declared(&solution(&scratch(store.layout(), "again")));
        assert_eq!(
            weights.find(&parts(), &declared).expect("sound"),
            Found::Unknown
        );
    }
}

/// ENG-10: content that is in the store is put in place verified; what nobody stored is the
/// program's fault, what was damaged is not.
#[tokio::test]
async fn fixed_artifacts_are_placed_by_content() {
    let root = tempdir();
    let mut store = store(root.path()).await;
    let sha256 = Digest::of(b"big");
    let spooled = store.layout().spool().join("big");
    fs::write(&spooled, "big").expect("spool");
    let file = NewFile::once(rel::artifact(sha256), Content::Spool(spooled));
    commit(&mut store, vec![file]).await;
    let weights = weights(&store);
    let fixed = |path: &str, sha256| FixedArtifact {
        path: path.parse().expect("path"),
        sha256,
    };
    let known = [fixed("data/big.npz", sha256)];
    let solution = scratch(store.layout(), "one");
    place_fixed(&solution, &known, &weights).expect("places");
    let at = solution.join("data/big.npz");
    assert_eq!(fs::read_to_string(&at).expect("there"), "big");
    assert_eq!(
        fs::metadata(&at).expect("there").permissions().mode() & 0o222,
        0
    );
    // A program that brings the file itself needs no store.
    let own = [fixed("data/own.npz", Digest::of(b"own"))];
    fs::write(solution.join("data/own.npz"), "own").expect("write");
    place_fixed(&solution, &own, &weights).expect("its own");
    let strange = [fixed("data/x.npz", Digest::of(b"nobody's"))];
    let error = place_fixed(&solution, &strange, &weights).expect_err("unknown");
    assert!(error.is_candidates(), "{error}");
    // A session gets copies that it may change without touching the store.
    let session = scratch(store.layout(), "two");
    place_copies(&session, &known, &weights).expect("copies");
    fs::write(session.join("data/big.npz"), "changed").expect("writable");
    let artifact = store.layout().at(&rel::artifact(sha256));
    assert_eq!(fs::read_to_string(&artifact).expect("there"), "big");
    rewrite(&artifact, |bytes| bytes[0] ^= 1);
    let third = scratch(store.layout(), "three");
    let error = place_fixed(&third, &known, &weights).expect_err("damaged");
    assert!(matches!(error, ExecError::Damaged { .. }), "{error}");
}

struct Snapshot {
    step: &'static str,
    root: PathBuf,
}

/// The process dies after every step of a training and of the batch that registers it: the next
/// start finds a complete registration or none, and nothing of it lies about.
#[tokio::test]
async fn a_crash_at_any_step_leaves_nothing_or_a_complete_registration() {
    let dir = tempdir();
    let (root, copies) = (dir.path().join("runs"), dir.path().join("copies"));
    let mut store = store(&root).await;
    let taken = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let (taken, root) = (taken.clone(), root.clone());
        Arc::new(move |step: &'static str| {
            let mut taken = taken.lock().expect("one at a time");
            let copy = copies.join(taken.len().to_string());
            copy_tree(&root, &copy);
            taken.push(Snapshot { step, root: copy });
        })
    };
    let weights = weights(&store).with_hook(hook.clone());
    store.set_fault_hook(hook);
    let first = scratch(store.layout(), "first");
    let (files, _lock) = execute(&weights, &first, trains)
        .await
        .expect("trains")
        .expect("first");
    commit(&mut store, files).await;
    store.release().await.expect("releases");
    let snapshots = std::mem::take(&mut *taken.lock().expect("done"));
    let mut steps: Vec<&str> = snapshots.iter().map(|snapshot| snapshot.step).collect();
    steps.dedup();
    let batch = ["temps_written", "temps_synced", "renamed", "dirs_synced"];
    let wanted: Vec<&str> = STEPS.iter().chain(&batch).copied().collect();
    assert_eq!(steps[..wanted.len()], wanted, "every step is reached");
    let mut complete = 0;
    for snapshot in &snapshots {
        complete += u32::from(recovers(snapshot).await);
    }
    let nothing = u32::try_from(snapshots.len()).expect("few") - complete;
    assert!(
        complete > 0 && nothing >= 10,
        "{complete} of {}",
        snapshots.len()
    );
}

/// Opens the run again; was the registration complete?
async fn recovers(snapshot: &Snapshot) -> bool {
    let Snapshot { step, root } = snapshot;
    let layout = RunLayout::new(root, &run_id());
    let (mut store, recovery) = Store::open(layout.run_dir(), at(9)).await.expect(step);
    assert_eq!(recovery.missing, [], "after {step}");
    let weights = weights(&store);
    let dir = scratch(&layout, "next");
    let trained = Arc::new(AtomicU32::new(0));
    let counted = trained.clone();
    let done = execute(&weights, &dir, move |solution| {
        counted.fetch_add(1, Ordering::SeqCst);
        trains(solution);
    })
    .await
    .unwrap_or_else(|error| panic!("after {step}: {error}"));
    let complete = done.is_none();
    if let Some((files, _lock)) = done {
        // Nothing of the cut registration is in its place.
        let left: Vec<_> = store.registered_below("artifacts");
        assert_eq!(left, [], "after {step}");
        assert_eq!(
            fs::read_dir(layout.artifacts())
                .expect("artifacts")
                .flatten()
                .filter(|entry| entry.path().is_file())
                .count(),
            0,
            "after {step}"
        );
        commit(&mut store, files).await;
        weights.note_registered(&store.registered_below("artifacts"));
    }
    assert_eq!(trained.load(Ordering::SeqCst), u32::from(!complete));
    let dir = scratch(&layout, "last");
    let solution = solution(&dir);
    match weights.find(&parts(), &declared(&solution)).expect(step) {
        Found::Registered(index) => {
            place_registered(&solution, &index, &layout).expect(step);
        }
        Found::Unknown => panic!("after {step}: registered by now"),
    }
    store.release().await.expect("releases");
    complete
}
