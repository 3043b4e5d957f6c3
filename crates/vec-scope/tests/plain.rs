//! The `plain` supervisor with real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vec_scope::{ExitKind, Pidfile, ScopeError, Signal, SpawnRequest, Supervisor, Unit};

/// Set in the process that plays a launcher which dies.
const LAUNCHER_DIR: &str = "VEC_SCOPE_TEST_LAUNCHER_DIR";
const LONG: Duration = Duration::from_secs(10);

fn request(dir: &Path, script: &str) -> SpawnRequest {
    SpawnRequest {
        name: "test".to_owned(),
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        cwd: PathBuf::from("/"),
        fds: Vec::new(),
        stderr: File::create(dir.join("stderr")).unwrap(),
        pidfile: dir.join("pid"),
    }
}

fn spawn(dir: &Path, script: &str) -> Unit {
    Supervisor::Plain.spawn(request(dir, script)).unwrap()
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// A pipe whose write end is held by the whole session: end of file = nobody is left.
fn witness() -> (File, OwnedFd) {
    let (read, write) = std::io::pipe().unwrap();
    (File::from(OwnedFd::from(read)), OwnedFd::from(write))
}

#[tokio::test]
async fn exit_codes_environment_and_descriptors_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let (mut read, write) = witness();
    let mut request = request(
        dir.path(),
        "env >&7; ls /proc/self/fd >&7; echo told >&2; exit 3",
    );
    request.fds.push((write, 7));
    let unit = Supervisor::Plain.spawn(request).unwrap();
    assert_eq!(unit.wait().await, ExitKind::Code(3));
    assert_eq!(unit.wait().await, ExitKind::Code(3), "asked twice");
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    assert!(text.contains("PATH=/usr/bin:/bin"), "{text}");
    assert!(!text.contains("CARGO"), "inherited environment: {text}");
    let descriptors: Vec<&str> = text.lines().filter(|l| l.parse::<u32>().is_ok()).collect();
    // 3 is the directory that ls reads.
    assert_eq!(descriptors, ["0", "1", "2", "3", "7"]);
    let stderr = std::fs::read_to_string(dir.path().join("stderr")).unwrap();
    assert_eq!(stderr, "told\n");
}

#[tokio::test]
async fn a_signal_ends_it_and_the_session_is_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let unit = spawn(dir.path(), "exec sleep 300");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", unit.pid())).unwrap();
    let session = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(3)
        .unwrap();
    assert_eq!(session, unit.pid().to_string());
    assert!(unit.rss_kib().unwrap() > 0);
    unit.signal(Signal::SIGUSR1).unwrap();
    assert_eq!(unit.wait().await, ExitKind::Signal(10));
    assert_eq!(unit.rss_kib(), None);
    unit.signal(Signal::SIGTERM).unwrap();
}

#[tokio::test]
async fn end_is_gentle_first() {
    let dir = tempfile::tempdir().unwrap();
    let (mut read, write) = witness();
    let mut request = request(
        dir.path(),
        "trap 'exit 7' TERM; echo ready >&3; while :; do sleep 0.05; done",
    );
    request.fds.push((write, 3));
    let unit = Supervisor::Plain.spawn(request).unwrap();
    read.read_exact(&mut [0; 6]).unwrap();
    assert_eq!(unit.end(LONG).await.unwrap(), ExitKind::Code(7));
}

#[tokio::test]
async fn end_kills_a_session_that_ignores_term() {
    let dir = tempfile::tempdir().unwrap();
    let (mut read, write) = witness();
    let script =
        "trap '' TERM; sleep 300 & sleep 300 & (sleep 300 & sleep 300) & echo ready >&3; wait";
    let mut request = request(dir.path(), script);
    request.fds.push((write, 3));
    let unit = Supervisor::Plain.spawn(request).unwrap();
    read.read_exact(&mut [0; 6]).unwrap();
    let begun = Instant::now();
    let exit = unit.end(Duration::from_millis(100)).await.unwrap();
    assert_eq!(exit, ExitKind::Signal(9));
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert!(begun.elapsed() < Duration::from_secs(6));
    // Every holder of the other end is dead, or this would block until the test's time-out.
    assert_eq!(read.read(&mut [0; 1]).unwrap(), 0);
}

#[tokio::test]
async fn children_left_behind_by_an_ended_main_process_are_killed_too() {
    let dir = tempfile::tempdir().unwrap();
    let (mut read, write) = witness();
    let mut request = request(
        dir.path(),
        "trap '' TERM; sleep 300 & echo ready >&3; exit 0",
    );
    request.fds.push((write, 3));
    let unit = Supervisor::Plain.spawn(request).unwrap();
    read.read_exact(&mut [0; 6]).unwrap();
    assert_eq!(unit.end(LONG).await.unwrap(), ExitKind::Code(0));
    assert_eq!(read.read(&mut [0; 1]).unwrap(), 0);
}

#[tokio::test]
async fn a_missing_program_and_an_unwritable_pidfile_leave_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let mut missing = request(dir.path(), "");
    missing.program = PathBuf::from("/nonexistent/vec-x");
    let error = Supervisor::Plain.spawn(missing).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/vec-x"), "{error}");
    let (mut read, write) = witness();
    let mut unwritable = request(dir.path(), "exec sleep 300");
    unwritable.fds.push((write, 3));
    unwritable.pidfile = dir.path().join("absent/pid");
    let error = Supervisor::Plain.spawn(unwritable).unwrap_err();
    assert!(
        matches!(
            error,
            ScopeError::Pidfile {
                action: "write",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(read.read(&mut [0; 1]).unwrap(), 0, "the child still runs");
}

/// Not a test by itself: the launcher of the next one.
#[tokio::test]
async fn launcher_that_dies() {
    let Some(dir) = std::env::var_os(LAUNCHER_DIR) else {
        return;
    };
    let unit = spawn(
        Path::new(&dir),
        "trap 'exit 7' TERM; while :; do sleep 0.05; done",
    );
    assert!(alive(unit.pid()));
}

#[tokio::test]
async fn a_unit_survives_its_launcher_and_is_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let service = dir.path().join("scorer");
    std::fs::create_dir(&service).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "launcher_that_dies"])
        .env(LAUNCHER_DIR, &service)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let unit = Supervisor::Plain
        .adopt(&service.join("pid"))
        .unwrap()
        .unwrap();
    assert_eq!(unit.name(), "scorer");
    assert!(alive(unit.pid()));
    assert_eq!(unit.end(LONG).await.unwrap(), ExitKind::Unknown);
    assert!(!alive(unit.pid()));
    assert!(
        Supervisor::Plain
            .adopt(&service.join("pid"))
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_recycled_pid_is_not_adopted_and_not_harmed() {
    let dir = tempfile::tempdir().unwrap();
    let unit = spawn(dir.path(), "exec sleep 300");
    let pidfile = dir.path().join("pid");
    assert!(
        Supervisor::Plain.adopt(&pidfile).unwrap().is_some(),
        "control"
    );
    let mut other = Pidfile::read(&pidfile).unwrap().unwrap();
    other.start_time_ticks -= 1;
    other.write(&pidfile).unwrap();
    assert!(Supervisor::Plain.adopt(&pidfile).unwrap().is_none());
    assert!(alive(unit.pid()));
    unit.end(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn odd_pidfiles() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pid");
    assert!(Supervisor::Plain.adopt(&path).unwrap().is_none(), "absent");
    for text in [
        "",
        "12",
        "{\"pid\":1}",
        "{\"pid\":1,\"start_time_ticks\":1,\"x\":0}",
    ] {
        File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let error = Supervisor::Plain.adopt(&path).unwrap_err();
        assert!(
            matches!(error, ScopeError::BadPidfile { .. }),
            "{text:?}: {error}"
        );
    }
    // Numbers that no process can have.
    for pid in [0, -1, i32::MAX] {
        let pidfile = Pidfile {
            pid,
            start_time_ticks: 1,
        };
        pidfile.write(&path).unwrap();
        assert!(Supervisor::Plain.adopt(&path).unwrap().is_none(), "{pid}");
    }
}
