//! Groups under `plain` with real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use vec_scope::{AccountingSource, GroupLimits, OomVerdict, Signal, Supervisor, oom_verdict};

const MIB: u64 = 1 << 20;

fn sh(script: &str) -> Child {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command.process_group(0);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

/// Reads until the child has written a line.
fn line(child: &mut Child) -> String {
    let mut text = String::new();
    let mut reader = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    std::io::BufRead::read_line(&mut reader, &mut text).unwrap();
    text.trim().to_owned()
}

#[tokio::test]
async fn finish_ends_the_tree_and_has_figures() {
    let limits = GroupLimits::default();
    let records = tempfile::tempdir().unwrap();
    let group = Supervisor::Plain.group("vec-exec-t-n1-a", limits, records.path());
    let group = group.await.unwrap();
    let mut child = sh("sleep 300 & echo $!; wait");
    let below: i32 = line(&mut child).parse().unwrap();
    let mut foreign = sh("exec sleep 300");
    group.watch(pid(&child));
    let record = group.finish().await;
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!((record.source, record.left), (AccountingSource::Sampled, 0));
    assert_eq!(record.processes_peak, Some(2), "{record:?}");
    assert!(record.memory_peak_bytes.unwrap() > 0 && record.cpu_ms.is_some());
    assert_eq!(record.oom_kills, None, "plain counts none");
    assert!(!record.limit_hit);
    let stat = std::fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z"), "{stat}");
    assert!(foreign.try_wait().unwrap().is_none(), "a foreign process");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[tokio::test]
async fn a_tree_above_its_memory_is_ended_and_it_is_its_own_fault() {
    let memory_bytes = Some(64 * MIB);
    let limits = GroupLimits {
        memory_bytes,
        tasks: None,
    };
    let records = tempfile::tempdir().unwrap();
    let group = Supervisor::Plain.group("vec-exec-t-n1-b", limits, records.path());
    let group = group.await.unwrap();
    // A child of the shell holds 96 MB.
    let mut child =
        sh("(x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo held; sleep 300; :); :");
    assert_eq!(line(&mut child), "held");
    let own = pid(&child);
    group.watch(own);
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap());
    assert_eq!(status.await.unwrap().signal(), Some(9));
    let record = group.finish().await;
    assert!(record.limit_hit, "{record:?}");
    assert!(record.memory_peak_bytes.unwrap() > 64 * MIB);
    assert_eq!(oom_verdict(&record, true), OomVerdict::Candidate);
    // In a sandbox the namespace takes what is below init along.
    let rest = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(own), Signal::SIGKILL);
    assert_eq!(rest, Ok(()), "there was something below");
}

#[tokio::test]
async fn what_is_noted_is_found_after_its_owner_and_a_recycled_pid_is_not_harmed() {
    let records = tempfile::tempdir().unwrap();
    let limits = GroupLimits::default();
    let mut orphan = sh("trap '' TERM; sleep 300 & echo up; wait");
    assert_eq!(line(&mut orphan), "up");
    let other = sh("exec sleep 300");
    let foreign = sh("exec sleep 300");
    for (child, name) in [
        (&orphan, "vec-exec-r1-n1-a"),
        (&other, "vec-exec-r1-n2-a"),
        (&foreign, "vec-exec-r2-n1-a"),
    ] {
        let group = Supervisor::Plain.group(name, limits, records.path());
        let group = group.await.unwrap();
        group.watch(pid(child));
        // Its owner dies without a word.
        let _left = std::mem::ManuallyDrop::new(group);
    }
    let recycled = records.path().join("vec-exec-r1-n2-a");
    let mut record = vec_scope::Pidfile::read(&recycled).unwrap().unwrap();
    record.start_time_ticks -= 1;
    record.write(&recycled).unwrap();
    std::fs::write(records.path().join("vec-exec-r1-n3-a"), "garbage").unwrap();
    let prefixes = ["vec-exec-r1-".to_owned()];
    let found = Supervisor::Plain.reap(&prefixes, records.path());
    let found = found.await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].name.as_str(), found[0].killed, found[0].left),
        ("vec-exec-r1-n1-a", 2, 0)
    );
    assert_eq!(orphan.wait().unwrap().signal(), Some(9));
    let left: Vec<_> = std::fs::read_dir(records.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the other run's record stays");
    for mut child in [other, foreign] {
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let bad = ["exec-r1-".to_owned()];
    assert!(Supervisor::Plain.reap(&bad, records.path()).await.is_err());
}

#[tokio::test]
async fn a_dropped_group_kills_its_tree() {
    let limits = GroupLimits::default();
    let records = tempfile::tempdir().unwrap();
    let group = Supervisor::Plain.group("vec-eng-t-n1", limits, records.path());
    let group = group.await.unwrap();
    let mut child = sh("exec sleep 300");
    group.watch(pid(&child));
    drop(group);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}
