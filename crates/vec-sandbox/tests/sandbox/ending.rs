//! How executions end: deadlines, commands, deaths of supervisors.

use std::time::{Duration, Instant};

use vec_sandbox::{EndedBy, PayloadExit, RunControl, SandboxError};

use crate::live::{last_writer_gone, marker, started};
use crate::support::{Place, both_modes, processes_with};

/// Forks a tree that ignores every polite signal, then says `ready` and works on.
const STUBBORN: &str = r#"
import os, signal, sys, time
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(s, signal.SIG_IGN)
up_rx, up_tx = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        os.fork()
        os.write(up_tx, b"u")
        time.sleep(300)
for _ in range(10):
    os.read(up_rx, 1)
print("ready", flush=True)
time.sleep(300)
"#;

both_modes! {
    async fn a_stubborn_tree_is_gone_at_the_deadline(place) {
        let marker = marker("stubborn");
        let mut plan = place.plan(STUBBORN, &[&marker]);
        plan.time.deadline_ms = 1500;
        plan.time.grace_ms = 200;
        let (task, _lines) = started(&place, &plan, &RunControl::new()).await;
        assert!(processes_with(&marker) >= 10, "control: they are seen while they live");
        let run = task.await.unwrap().unwrap();
        assert!(run.report.timed_out && run.report.killed_tree && run.report.tree_gone);
        assert_eq!(run.report.ended_by, EndedBy::Deadline);
        assert!((1700..2700).contains(&run.report.wall_ms), "{:?}", run.report);
        assert_eq!(processes_with(&marker), 0);
    }
}

both_modes! {
    async fn a_polite_payload_may_finish_in_the_grace(place) {
        let script = r#"
import signal, sys, time
def end(*_):
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
time.sleep(300)
"#;
        let mut plan = place.plan(script, &[]);
        plan.time.deadline_ms = 800;
        plan.time.grace_ms = 10_000;
        let run = place.run(&plan).await;
        assert_eq!(run.report.exit, PayloadExit::Code(7));
        assert!(run.report.timed_out && !run.report.killed_tree);
        assert!(run.report.wall_ms < 5_000);
    }
}

both_modes! {
    async fn only_our_clock_says_timed_out(place) {
        for (script, wanted) in [
            ("import sys; sys.exit(124)", PayloadExit::Code(124)),
            ("import sys; sys.exit(143)", PayloadExit::Code(143)),
            ("import os; os.kill(os.getpid(), 15)", PayloadExit::Signal(15)),
            ("import os; os.kill(os.getpid(), 9)", PayloadExit::Signal(9)),
        ] {
            let run = place.run(&place.plan(script, &[])).await;
            assert_eq!(run.report.exit, wanted);
            assert!(!run.report.timed_out && !run.report.succeeded());
            assert_eq!(run.report.ended_by, EndedBy::Payload);
            assert_eq!(run.report.killed_by_other(), wanted == PayloadExit::Signal(9));
        }
    }
}

both_modes! {
    async fn init_cannot_be_ended_from_inside(place) {
        let script = r#"
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_DFL)
for s in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV):
    for _ in range(3):
        try:
            os.kill(1, s)
        except PermissionError:
            pass
print(sum(i * i for i in range(200000)))
"#;
        let run = place.run(&place.plan(script, &[])).await;
        assert!(run.report.succeeded(), "{:?}", run.report);
    }
}

both_modes! {
    async fn commands_move_the_end(place) {
        let plan = place.plan(STUBBORN, &[]);
        let control = RunControl::new();
        let (task, _lines) = started(&place, &plan, &control).await;
        let begun = Instant::now();
        control.terminate();
        let run = task.await.unwrap().unwrap();
        assert_eq!(run.report.ended_by, EndedBy::Terminate);
        assert!(!run.report.timed_out && run.report.killed_tree);
        assert!(begun.elapsed() >= Duration::from_millis(1000), "the grace counts");

        let control = RunControl::new();
        let (task, _lines) = started(&place, &plan, &control).await;
        control.shorten(Duration::from_millis(100));
        let run = task.await.unwrap().unwrap();
        assert!(run.report.timed_out && run.report.wall_ms < 10_000, "{:?}", run.report);

        let control = RunControl::new();
        let (task, _lines) = started(&place, &plan, &control).await;
        let begun = Instant::now();
        control.kill();
        let run = task.await.unwrap().unwrap();
        assert_eq!(run.report.ended_by, EndedBy::Kill);
        assert!(begun.elapsed() < Duration::from_millis(900), "no grace");

        // Given before the start, it counts too.
        let control = RunControl::new();
        control.terminate();
        let run = place.runner.run(&plan, control).await.unwrap();
        assert_eq!(run.report.ended_by, EndedBy::Terminate);
    }
}

/// As STUBBORN, and every process holds the FIFO `/out/alive` open for writing.
fn with_witness() -> String {
    let open = "import os\nos.mkfifo('/out/alive')\nkeep = os.open('/out/alive', os.O_RDWR)\n";
    format!("{open}{STUBBORN}")
}

both_modes! {
    async fn dropping_the_future_kills_the_tree(place) {
        let marker = marker("dropped");
        let plan = place.plan(&with_witness(), &[&marker]);
        let (task, _lines) = started(&place, &plan, &RunControl::new()).await;
        let gone = last_writer_gone(&place).await;
        assert!(processes_with(&marker) >= 10, "control");
        task.abort();
        gone.await;
        assert_eq!(processes_with(&marker), 0);
    }
}

both_modes! {
    async fn killing_the_helper_kills_the_tree(place) {
        let marker = marker("orphaned");
        let plan = place.plan(&with_witness(), &[&marker]);
        let (task, _lines) = started(&place, &plan, &RunControl::new()).await;
        let gone = last_writer_gone(&place).await;
        let helper = helper_pid(&place);
        nix::sys::signal::kill(helper, nix::sys::signal::Signal::SIGKILL).unwrap();
        gone.await;
        assert_eq!(processes_with(&marker), 0);
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, SandboxError::HelperDied { .. }), "{error}");
    }
}

/// The helper that this process started (its own copy, init, has another parent).
fn helper_pid(place: &Place) -> nix::unistd::Pid {
    let own = std::process::id().to_string();
    let helper = place.helper.to_str().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
        let line = std::fs::read_to_string(path.join("cmdline")).ok()?;
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let parent = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .to_owned();
        (line.starts_with(helper) && parent == own).then_some(pid)
    });
    let found: Vec<i32> = pids.collect();
    assert_eq!(found.len(), 1, "{found:?}");
    nix::unistd::Pid::from_raw(found[0])
}

both_modes! {
    async fn a_fork_bomb_is_held_and_others_can_still_fork(place) {
        let bomb = r#"
import os, time
count = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(300)
    except OSError:
        break
    count += 1
print("ready", flush=True)
print(count, flush=True)
time.sleep(300)
"#;
        let marker = marker("bomb");
        let mut plan = place.plan(bomb, &[&marker]);
        plan.limits.processes = 60;
        let control = RunControl::new();
        let (task, mut lines) = started(&place, &plan, &control).await;
        let count: u64 = String::from_utf8(lines.recv().await.unwrap().bytes).unwrap().parse().unwrap();
        assert!((40..=60).contains(&count), "{count}");
        // A second sandbox with the same ids: the limit is per sandbox.
        let other = Place::another(&place);
        let seen = other.inside("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0); print(1)", &[]).await;
        assert_eq!(seen, 1);
        control.kill();
        assert!(task.await.unwrap().unwrap().report.tree_gone);
        assert_eq!(processes_with(&marker), 0);
    }
}

both_modes! {
    async fn many_runs_leave_no_descriptor_and_no_child(place) {
        let plan = place.plan("pass", &[]);
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        place.run(&plan).await;
        let before = descriptors();
        for _ in 0..30 {
            assert!(place.run(&plan).await.report.succeeded());
        }
        assert_eq!(descriptors(), before);
        let none = nix::sys::wait::waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
        assert_eq!(none, Err(nix::errno::Errno::ECHILD), "a zombie or a live child");
    }
}
