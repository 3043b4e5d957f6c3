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
    let group = Supervisor::Plain.group("vec-exec-t-n1-a", limits).unwrap();
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
    let group = Supervisor::Plain.group("vec-exec-t-n1-b", limits).unwrap();
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
async fn a_dropped_group_kills_its_tree() {
    let limits = GroupLimits::default();
    let group = Supervisor::Plain.group("vec-eng-t-n1", limits).unwrap();
    let mut child = sh("exec sleep 300");
    group.watch(pid(&child));
    drop(group);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}
