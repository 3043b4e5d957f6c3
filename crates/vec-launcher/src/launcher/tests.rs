//! Tests of `launcher`.

use std::path::Path;

use vec_clock::ManualClock;
use vec_types::UnixMs;

use super::*;
use crate::launch::{ConfigSource, LaunchCall};
use crate::record::{RunRecord, RunStage};
use crate::refusal::REFUSED_LAUNCHES;
use crate::runtime_dir::{RuntimeDir, Surroundings};

const RUN: &str = "20261130-101010-diabetes-abcd";

fn launcher(dir: &Path) -> Launcher {
    let surroundings = Surroundings::of_this_process();
    Launcher::new(Deps {
        runtime: RuntimeDir::open(&dir.join("r"), surroundings.uid).expect("runtime"),
        data_root: DataRoot::at(dir.join("data")),
        prefix: dir.join("prefix"),
        surroundings,
        clock: Arc::new(ManualClock::new(UnixMs(7))),
        supervision: crate::deps::Supervision::plain("a test"),
    })
    .expect("launcher")
}

fn call(dir: &Path, config: &str) -> LaunchCall {
    LaunchCall {
        request_id: "one".to_owned(),
        config: ConfigSource {
            path: dir.join(config),
            sets: Vec::new(),
        },
        root: Some(dir.join("runs")),
        data_root: dir.join("data"),
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn an_unknown_run_is_named_with_the_roots_that_were_searched() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    let run: RunId = RUN.parse().expect("id");
    launcher
        .deps
        .data_root
        .remember(&dir.path().join("runs"))
        .expect("root");
    for result in [
        launcher.stop(&run, "why").await.map(|()| String::new()),
        launcher.status(&run).await,
        launcher.resume(&run, None).await.map(|_| String::new()),
    ] {
        let error = result.expect_err("unknown");
        let text = error.to_string();
        assert!(text.contains(RUN) && text.contains("/runs"), "{text}");
        assert_eq!(tonic::Status::from(error).code(), tonic::Code::NotFound);
    }
}

#[tokio::test]
async fn a_refused_launch_leaves_a_record_and_no_run() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    std::fs::create_dir(dir.path().join("runs")).expect("root");
    std::fs::write(dir.path().join("bad.yaml"), "nonsense_key: 1\n").expect("config");
    let error = launcher
        .launch(call(dir.path(), "bad.yaml"))
        .await
        .expect_err("refused");
    let text = vec_daemon::chain(&error).to_string();
    assert!(
        text.contains("nonsense_key") && text.contains("bad.yaml"),
        "{text}"
    );
    assert_eq!(text.matches("nonsense_key").count(), 1, "said once: {text}");
    assert_eq!(
        tonic::Status::from(error).code(),
        tonic::Code::InvalidArgument
    );
    assert_eq!(entries(&dir.path().join("runs")), [REFUSED_LAUNCHES]);
    assert!(entries(&launcher.deps.runtime.runs()).is_empty());
    let record = std::fs::read_to_string(dir.path().join("runs").join(REFUSED_LAUNCHES));
    assert!(
        record
            .expect("record")
            .contains("\"stop_reason\":\"infra\"")
    );
}

#[tokio::test]
async fn a_run_that_was_never_finished_is_removed_at_the_next_start() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    let run: RunId = RUN.parse().expect("id");
    let layout = RunLayout::new(&dir.path().join("runs"), &run);
    std::fs::create_dir_all(layout.code()).expect("half-made run");
    let runtime = launcher.deps.runtime.run(&run);
    std::fs::create_dir_all(runtime.path()).expect("runtime");
    let record = RunRecord::new(
        run.clone(),
        layout.run_dir().to_owned(),
        dir.path().to_owned(),
    );
    assert_eq!(record.stage, RunStage::Creating);
    record.write(&runtime.record()).expect("record");
    launcher.adopt_all().await;
    assert!(!layout.run_dir().exists() && !runtime.path().exists());
    assert!(launcher.running(&run).is_none());
}

#[test]
fn only_run_directories_are_listed_newest_first() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    let root = dir.path().join("runs");
    let older = "20261129-101010-diabetes-abcd";
    for name in [
        RUN,
        older,
        ".spool",
        "20261130-101010-diabetes-abcd.package",
    ] {
        std::fs::create_dir_all(root.join(name)).expect("directory");
    }
    launcher.deps.data_root.remember(&root).expect("root");
    let listed = launcher.list().expect("list");
    let names: Vec<&str> = listed.iter().map(|one| one.run.as_str()).collect();
    assert_eq!(names, [RUN, older]);
    assert!(
        listed
            .iter()
            .all(|one| one.state == "dead" && one.stop_reason.is_none())
    );
}

#[tokio::test]
async fn a_closed_run_cannot_be_stopped() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    let run: RunId = RUN.parse().expect("id");
    let root = dir.path().join("runs");
    let store = vec_store::Store::create(&root, &run, UnixMs(7)).await;
    let store = store.expect("created");
    let layout = store.layout().clone();
    store.release().await.expect("released");
    launcher.deps.data_root.remember(&root).expect("root");
    let error = launcher.stop(&run, "why").await.expect_err("dead");
    assert!(error.to_string().ends_with("it is dead"), "{error}");
    let clock = Arc::clone(&launcher.deps.clock);
    crate::closing::close_as_infra(&layout, clock.as_ref(), "why")
        .await
        .expect("closed");
    let error = launcher.stop(&run, "why").await.expect_err("closed");
    assert_eq!(error.to_string(), format!("run {RUN} is closed already"));
    assert_eq!(
        tonic::Status::from(error).code(),
        tonic::Code::FailedPrecondition
    );
}

#[tokio::test]
async fn what_a_launch_reads_is_read_outside_of_the_lock() {
    let dir = tempfile::tempdir().expect("dir");
    let launcher = launcher(dir.path());
    let _launching = launcher.starting.lock().await;
    let preflight = launcher.preflight(call(dir.path(), "missing.yaml"));
    let bound = std::time::Duration::from_secs(10);
    let refused = tokio::time::timeout(bound, preflight).await;
    let error = refused.expect("does not wait").expect_err("refused");
    let text = vec_daemon::chain(&error).to_string();
    assert!(text.contains("missing.yaml"), "{text}");
}
