//! Groups under `cgroup` with real processes and the kernel's own control groups. Needs a subtree
//! that this user may use; says so loudly where there is none.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::io::{BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use vec_scope::{
    Accounting, AccountingSource, Cgroups, Group, GroupLimits, OomVerdict, Supervisor, oom_verdict,
};

const MIB: u64 = 1 << 20;
/// Set in the process that plays an owner which dies: the name of its group.
const OWNED: &str = "VEC_SCOPE_TEST_OWNED";

fn supervisor() -> Option<Supervisor> {
    match Cgroups::detect() {
        Ok(groups) => Some(Supervisor::Cgroup(groups)),
        Err(error) => {
            eprintln!("SKIPPED: no control groups here: {error}");
            None
        }
    }
}

/// Own names, so that tests do not take each other's groups for orphans.
fn name(what: &str) -> String {
    format!("vec-exec-t{}-{what}", std::process::id())
}

/// A shell that waits for a line before it runs `script`.
fn held(script: &str) -> Child {
    Command::new("/bin/sh")
        .args(["-c", &format!("read go; {script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Moves the child into the group and lets it go.
fn enter(group: &Group, child: &mut Child) {
    for entry in group.entries().unwrap() {
        let mut file = std::fs::File::from(entry);
        file.write_all(child.id().to_string().as_bytes()).unwrap();
    }
    group.watch(i32::try_from(child.id()).unwrap());
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

fn line(child: &mut Child) -> String {
    let mut text = String::new();
    let mut reader = BufReader::new(child.stdout.as_mut().unwrap());
    reader.read_line(&mut text).unwrap();
    text.trim().to_owned()
}

/// Directories of control groups with that beginning, anywhere.
fn directories(prefix: &str) -> Vec<std::path::PathBuf> {
    fn walk(dir: &std::path::Path, prefix: &str, found: &mut Vec<std::path::PathBuf>) {
        let Ok(entries) = std::fs::read_dir(dir) else {
            return;
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                found.push(entry.path());
            }
            walk(&entry.path(), prefix, found);
        }
    }
    let mut found = Vec::new();
    walk("/sys/fs/cgroup".as_ref(), prefix, &mut found);
    found
}

async fn finish(group: Group, child: &mut Child) -> (Accounting, Option<i32>) {
    let record = group.finish().await;
    (record, child.wait().unwrap().signal())
}

#[tokio::test]
async fn daemons_that_hide_are_ended_and_their_time_is_counted() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let name = name("daemons");
    let limits = GroupLimits::default();
    let group = supervisor
        .group(&name, limits, records.path())
        .await
        .unwrap();
    assert!(!directories(&name).is_empty());
    // A daemon in a session of its own, whose parent is gone, that burns time; the shell ignores its
    // children, so no wait4 ever sees their time.
    let mut child = held(
        "trap '' CHLD TERM; (setsid sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo burnt; sleep 300' &) ; sleep 300",
    );
    enter(&group, &mut child);
    assert_eq!(line(&mut child), "burnt");
    assert!(records.path().join(&name).exists());
    let (record, signal) = finish(group, &mut child).await;
    assert_eq!((record.left, signal), (0, Some(9)));
    assert_ne!(record.source, AccountingSource::Sampled);
    assert!(record.cpu_ms.unwrap() > 50, "{record:?}");
    assert!(record.memory_peak_bytes.unwrap() > 0, "{record:?}");
    assert!(record.processes_peak.unwrap() >= 3, "{record:?}");
    assert_eq!(record.oom_kills, Some(0));
    assert!(directories(&name).is_empty(), "a group is left");
    assert!(!records.path().join(&name).exists(), "a record is left");
}

#[tokio::test]
async fn the_memory_limit_holds_and_is_the_trees_own_fault() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let limits = GroupLimits {
        memory_bytes: Some(48 * MIB),
        tasks: None,
    };
    let hog = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo held; exit 3";
    let group = supervisor
        .group(&name("oom"), limits, records.path())
        .await
        .unwrap();
    let mut child = held(hog);
    enter(&group, &mut child);
    assert_eq!(line(&mut child), "");
    let (record, _) = finish(group, &mut child).await;
    assert!(
        record.oom_kills.unwrap() > 0 && record.limit_hit,
        "{record:?}"
    );
    assert!(record.memory_peak_bytes.unwrap() <= 48 * MIB, "{record:?}");
    assert_eq!(oom_verdict(&record, true), OomVerdict::Candidate);
    // Control: with room it ends by itself.
    let limits = GroupLimits {
        memory_bytes: Some(512 * MIB),
        tasks: None,
    };
    let group = supervisor
        .group(&name("room"), limits, records.path())
        .await
        .unwrap();
    let mut child = held(hog);
    enter(&group, &mut child);
    assert_eq!(line(&mut child), "held");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let record = group.finish().await;
    assert_eq!((record.oom_kills, record.limit_hit), (Some(0), false));
    assert_eq!(oom_verdict(&record, false), OomVerdict::None);
}

#[tokio::test]
async fn the_limit_of_processes_holds() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 300 >/dev/null & done; echo all; wait";
    for (tasks, expected) in [(4, ""), (64, "all")] {
        let limits = GroupLimits {
            memory_bytes: None,
            tasks: Some(tasks),
        };
        let group = supervisor
            .group(&name(&format!("tasks{tasks}")), limits, records.path())
            .await
            .unwrap();
        let mut child = held(script);
        enter(&group, &mut child);
        assert_eq!(line(&mut child), expected, "{tasks}");
        let record = group.finish().await;
        child.wait().unwrap();
        assert!(record.processes_peak.unwrap() <= tasks, "{record:?}");
        assert_eq!(record.left, 0);
    }
}

/// Not a test by itself: the owner of the next one's orphan.
#[tokio::test]
async fn owner_that_dies() {
    let Some(name) = std::env::var_os(OWNED) else {
        return;
    };
    let supervisor = supervisor().unwrap();
    let limits = GroupLimits::default();
    let nowhere = std::path::Path::new("/nonexistent");
    let group = supervisor.group(name.to_str().unwrap(), limits, nowhere);
    let group = group.await.unwrap();
    let mut child = held("trap '' TERM HUP; sleep 300 & echo up; sleep 300");
    enter(&group, &mut child);
    assert_eq!(line(&mut child), "up");
    // As after SIGKILL: nobody cleans up.
    let _left = (ManuallyDrop::new(group), ManuallyDrop::new(child));
}

#[tokio::test]
async fn orphans_are_reaped_and_groups_with_an_owner_are_not() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let prefix = format!("vec-exec-o{}-", std::process::id());
    let owned = format!("{prefix}owned");
    let limits = GroupLimits::default();
    let owned = supervisor.group(&owned, limits, records.path());
    let owned = owned.await.unwrap();
    let mut living = held("sleep 300");
    enter(&owned, &mut living);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_that_dies"])
        .env(OWNED, format!("{prefix}orphan"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(!directories(&format!("{prefix}orphan")).is_empty());
    let nothing_noted = tempfile::tempdir().unwrap();
    let prefixes = [prefix.clone()];
    let reap = || supervisor.reap(&prefixes, nothing_noted.path());
    let found = reap().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].name.ends_with("orphan"), "{found:?}");
    assert!(found[0].killed >= 2 && found[0].left == 0, "{found:?}");
    assert!(directories(&format!("{prefix}orphan")).is_empty());
    assert_eq!(reap().await.unwrap(), [], "twice");
    assert!(living.try_wait().unwrap().is_none(), "not the other one");
    let (record, _) = finish(owned, &mut living).await;
    assert_eq!(record.left, 0);
    assert!(directories(&prefix).is_empty());
}

#[tokio::test]
async fn a_taken_name_gets_a_number_and_a_dropped_group_is_removed() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let name = name("twice");
    let limits = GroupLimits::default();
    let first = supervisor
        .group(&name, limits, records.path())
        .await
        .unwrap();
    let second = supervisor
        .group(&name, limits, records.path())
        .await
        .unwrap();
    let count = directories(&name).len();
    let numbered = directories(&format!("{name}~2")).len();
    assert_eq!(count, 2 * numbered);
    drop(second);
    assert_eq!(directories(&name).len(), numbered);
    first.finish().await;
    assert!(directories(&name).is_empty());
}

#[tokio::test]
async fn empty_groups_of_dead_owners_are_swept_and_no_others() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let Supervisor::Cgroup(groups) = &supervisor else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let name = name("sweep");
    let limits = GroupLimits::default();
    let owned = supervisor.group(&name, limits, records.path());
    let owned = owned.await.unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_that_dies"])
        .env(OWNED, format!("{name}-dead"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    groups.sweep_empty();
    assert!(
        !directories(&format!("{name}-dead")).is_empty(),
        "not empty"
    );
    for directory in directories(&format!("{name}-dead")) {
        // Absent outside version 2.
        let _ = std::fs::write(directory.join("cgroup.kill"), "1");
    }
    let swept = async {
        while !directories(&format!("{name}-dead")).is_empty() {
            groups.sweep_empty();
            tokio::task::yield_now().await;
        }
    };
    let bound = std::time::Duration::from_secs(10);
    tokio::time::timeout(bound, swept).await.unwrap();
    assert!(!directories(&name).is_empty(), "it has an owner");
    owned.finish().await;
    assert!(directories(&name).is_empty());
}

/// A process that SIGKILL does not end: version 1's freezer holds it, as a hanging disk would.
/// Thawed and removed when dropped.
struct Frozen(std::path::PathBuf);

impl Frozen {
    fn new(pid: u32) -> Option<Self> {
        let directory = format!("/sys/fs/cgroup/freezer/vec-frozen-{pid}");
        let frozen = Self(directory.into());
        let made = std::fs::create_dir(&frozen.0)
            .and_then(|()| std::fs::write(frozen.0.join("cgroup.procs"), pid.to_string()))
            .and_then(|()| std::fs::write(frozen.0.join("freezer.state"), "FROZEN"));
        match made {
            Ok(()) => Some(frozen),
            Err(error) => {
                eprintln!("SKIPPED: no freezer of version 1 here: {error}");
                None
            }
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        for _ in 0..1_000 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            // The killed process leaves as soon as it runs again.
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }
}

#[tokio::test]
async fn what_does_not_die_is_quarantined_and_reaped_later() {
    let Some(supervisor) = supervisor() else {
        return;
    };
    let records = tempfile::tempdir().unwrap();
    let name = name("hangs");
    let limits = GroupLimits::default();
    let group = supervisor.group(&name, limits, records.path());
    let group = group.await.unwrap();
    let mut child = held("echo up; sleep 300");
    enter(&group, &mut child);
    assert_eq!(line(&mut child), "up");
    let Some(frozen) = Frozen::new(child.id()) else {
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    };
    let begun = std::time::Instant::now();
    let record = group.finish().await;
    assert!(record.left >= 1, "{record:?}");
    let bound = std::time::Duration::from_secs(12);
    assert!(begun.elapsed() < bound, "{:?}", begun.elapsed());
    assert!(!directories(&name).is_empty(), "its group stays");
    assert!(records.path().join(&name).exists(), "so does its record");
    // Its name is taken; the next execution of that name goes on beside it.
    let next = supervisor.group(&name, limits, records.path());
    assert_eq!(next.await.unwrap().finish().await.left, 0);
    let prefixes = [name.clone()];
    let found = supervisor.reap(&prefixes, records.path()).await.unwrap();
    assert!(found.iter().any(|orphan| orphan.left >= 1), "{found:?}");
    drop(frozen);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    supervisor.reap(&prefixes, records.path()).await.unwrap();
    assert!(directories(&name).is_empty(), "reaped");
    assert!(!records.path().join(&name).exists());
}
