//! A run with a store, a program with declared weights, and a training without a sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use vec_exec::{
    Artifacts, ExecError, Found, KeyParts, Registration, Weights, place_registered,
    prepare_training,
};
use vec_sandbox::collect::CollectError;
use vec_store::{Batch, NewFile, RunLayout, Store};
use vec_types::{Digest, ExecName, NodeId, ProgramSeed, RelPath, RunId, UnixMs};
use walkdir::WalkDir;

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn run_id() -> RunId {
    "20260101-000000-toy-abcd".parse().expect("run id")
}

pub(crate) fn at(n: i64) -> UnixMs {
    UnixMs(1_700_000_000_000 + n)
}

pub(crate) fn parts() -> KeyParts {
    KeyParts {
        tree: "a".repeat(64).parse().expect("tree"),
        train_seed: 0,
        view_content: Digest::of(b"view"),
        environment: Digest::of(b"env"),
        extra_args: Vec::new(),
    }
}

/// A program that declares two weights in one sub-directory, which also holds a committed file.
pub(crate) fn solution(dir: &Path) -> PathBuf {
    let solution = dir.join("solution");
    fs::create_dir_all(solution.join("weights")).expect("mkdir");
    fs::write(solution.join("run.py"), "pass\n").expect("write");
    fs::write(solution.join("weights/README"), "kept\n").expect("write");
    let declared = r#"[{"path":"weights/a.bin","sha256":null,"per_view":true},
                       {"path":"weights/deep/b.bin","per_view":true}]"#;
    fs::write(solution.join("ARTIFACTS.json"), declared).expect("write");
    solution
}

pub(crate) fn declared(solution: &Path) -> Vec<RelPath> {
    Artifacts::read(solution).expect("declares").per_view
}

/// As the sandbox's collection does it, over a plain directory.
pub(crate) fn copy(
    work: &Path,
) -> impl Fn(&RelPath, &Path, u64) -> Result<u64, CollectError> + use<> {
    let work = work.to_owned();
    move |path, dest, cap| vec_sandbox::collect::copy_file(&work, path, dest, cap)
}

pub(crate) async fn store(root: &Path) -> Store {
    let mut store = Store::create(root, &run_id(), at(0))
        .await
        .expect("creates");
    let lock = NewFile::create("config.lock.json".parse().expect("path"), "{}");
    commit(&mut store, vec![lock]).await;
    store
}

pub(crate) async fn commit(store: &mut Store, files: Vec<NewFile>) {
    let batch = Batch {
        at: at(1),
        files,
        events: Vec::new(),
    };
    store.commit(batch).await.expect("commits");
}

pub(crate) fn weights(store: &Store) -> Weights {
    let registered = store.registered_below("artifacts");
    Weights::new(store.layout().clone(), registered)
}

/// One execution's part about weights, the way the controller does it: `Ok(None)` = replayed,
/// otherwise the files to register. `train` plays the program.
pub(crate) async fn execute(
    weights: &Weights,
    scratch: &Path,
    train: impl Fn(&Path),
) -> Result<Option<(Vec<NewFile>, vec_exec::TrainingLock)>, ExecError> {
    let solution = solution(scratch);
    let declared = declared(&solution);
    let lock = weights.locks().lock(parts().key()?, LONG).await?;
    if let Found::Registered(index) = weights.find(&parts(), &declared)? {
        place_registered(&solution, &index, weights.layout())?;
        return Ok(None);
    }
    weights.step("locked");
    let work = scratch.join("work");
    fs::create_dir_all(&work).expect("mkdir");
    let training = prepare_training(&solution, &work, &work, &declared)?;
    weights.step("prepared");
    train(&solution);
    weights.step("trained");
    let collected = scratch.join("collected");
    fs::create_dir_all(&collected).expect("mkdir");
    let collected = training.collect(&collected, copy(&work))?;
    weights.step("collected");
    let registration = Registration {
        parts: parts(),
        view: "main".parse().expect("view"),
        node: NodeId(3),
        exec: ExecName::Seed(ProgramSeed(0)),
        at: at(7),
    };
    weights.step("validated");
    let files = weights.files_of(registration, collected)?;
    weights.step("handed_over");
    Ok(Some((files, lock)))
}

/// A program that writes both weights.
pub(crate) fn trains(solution: &Path) {
    assert_eq!(
        fs::read_to_string(solution.join("weights/README")).expect("readable"),
        "kept\n"
    );
    fs::create_dir_all(solution.join("weights/deep")).expect("mkdir");
    fs::write(solution.join("weights/a.bin"), "first").expect("writable");
    fs::write(solution.join("weights/deep/b.bin"), "second").expect("writable");
}

pub(crate) fn scratch(layout: &RunLayout, name: &str) -> PathBuf {
    let dir = layout.spool().join("effects").join(name);
    let _gone = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("mkdir");
    dir
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    for entry in WalkDir::new(from) {
        let entry = entry.expect("walk");
        let target = to.join(entry.path().strip_prefix(from).expect("below"));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).expect("mkdir");
        } else if entry.file_type().is_file() {
            fs::copy(entry.path(), &target).expect("copy");
        }
    }
}

pub(crate) fn tempdir() -> TempDir {
    TempDir::new().expect("tempdir")
}
