//! Tests of `group`.

use vec_scope::{SpawnRequest, Supervisor};

use super::*;

const RUN: &str = "20261130-101010-diabetes-abcd";

#[tokio::test]
async fn a_controller_is_killed_without_a_chance_to_say_something() {
    let dir = tempfile::tempdir().expect("dir");
    let said = dir.path().join("said");
    let ready = dir.path().join("ready");
    let script = format!(
        "trap 'echo > {}' TERM; echo > {ready}; while :; do sleep 1; done",
        said.display(),
        ready = ready.display(),
    );
    let made = std::process::Command::new("mkfifo").arg(&ready).status();
    assert!(made.expect("mkfifo").success());
    let unit = Supervisor::Plain
        .spawn(SpawnRequest {
            name: "controller".to_owned(),
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), script],
            env: std::env::vars().collect(),
            cwd: dir.path().to_owned(),
            fds: Vec::new(),
            stderr: std::fs::File::create(dir.path().join("stderr")).expect("stderr"),
            pidfile: dir.path().join("pid"),
        })
        .expect("started");
    // Written once the trap is set.
    std::fs::read(&ready).expect("ready");
    assert_eq!(kill(&unit).await.expect("killed"), ExitKind::Signal(9));
    assert!(!said.exists());
}

#[test]
fn nothing_is_started_beside_a_writer_that_was_not_taken_over() {
    let dir = tempfile::tempdir().expect("dir");
    let run: RunId = RUN.parse().expect("id");
    let layout = RunLayout::new(dir.path(), &run);
    assert_eq!(writer_besides(false, &layout), Ok(()), "nobody writes");
    let writer = RunLock::acquire(&layout).expect("lock");
    assert_eq!(writer_besides(true, &layout), Ok(()), "taken over");
    let pid = std::process::id();
    let error = writer_besides(false, &layout).expect_err("refused");
    assert_eq!(error, Unadopted { run, pid });
    drop(writer);
    assert_eq!(writer_besides(false, &layout), Ok(()), "gone");
}
