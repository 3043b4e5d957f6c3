//! Whatever a tree of processes does against its end: after KILL nothing of it is left within one
//! second. The rows of the measured table (research notes B.1) that a payload can bring about.
//!
//! Not among them: a process stopped by a tracer (`ptrace` is refused, which `TRACED` checks) and a
//! frozen control group (nothing of ours freezes).

use std::time::Instant;

use vec_sandbox::{PayloadExit, RunControl};

use crate::live::{last_writer_gone, marker, started};
use crate::support::{Place, both_modes, processes_with};

/// Every process inherits the open FIFO: its reader outside sees the end of the last one. `up`
/// counts the processes that are in place.
const COMMON: &str = r"
import ctypes, os, signal, sys, threading, time
os.mkfifo('/out/alive')
keep = os.open('/out/alive', os.O_RDWR)
up_rx, up_tx = os.pipe()
def deaf():
    for s in range(1, 65):
        if s not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33):
            signal.signal(s, signal.SIG_IGN)
def up():
    os.write(up_tx, b'u')
def rest():
    while True:
        time.sleep(300)
def wait(count):
    for _ in range(count):
        os.read(up_rx, 1)
def state(pid):
    return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0]
def until(pid, wanted):
    while state(pid) not in wanted:
        time.sleep(0.01)
";

/// What every tree ends with.
const READY: &str = "print('ready', flush=True)\nrest()\n";

const DEAF: &str = r"
deaf()
for _ in range(10):
    if os.fork() == 0:
        up(); rest()
wait(10)
";

const DAEMONS: &str = r"
deaf()
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            up(); rest()
        os._exit(0)
wait(20)
";

const GROUPS: &str = r"
for _ in range(10):
    if os.fork() == 0:
        os.setpgid(0, 0); deaf(); up(); rest()
wait(10)
";

const STOPPED: &str = r"
pids = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        os.setsid(); up(); rest()
    pids.append(pid)
wait(10)
for pid in pids:
    os.kill(pid, signal.SIGSTOP)
for pid in pids:
    until(pid, 'T')
";

/// The grandchild stops even its leader; it says `ready` itself when all of them stand still.
const ALL_STOPPED: &str = r"
if os.fork() == 0:
    os.setsid()
    main = 2
    os.kill(main, signal.SIGSTOP)
    until(main, 'T')
    print('ready', flush=True)
    rest()
rest()
";

/// Its parent waits uninterruptibly (state D, though killable) until the child would execute
/// something; it never goes on, so what they share cannot hurt.
const VFORK: &str = r"
libc = ctypes.CDLL(None)
for _ in range(5):
    parent = os.fork()
    if parent == 0:
        deaf()
        if libc.vfork() == 0:
            up()
            libc.pause()
        os._exit(1)
    wait(1)
    until(parent, 'D')
";

const ZOMBIES: &str = r"
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    until(pid, 'Z')
if os.fork() == 0:
    deaf(); up(); rest()
wait(1)
";

const THREADS: &str = r"
deaf()
def busy():
    up()
    while True:
        pass
for _ in range(20):
    threading.Thread(target=busy, daemon=True).start()
wait(20)
";

/// Blocked in the kernel: on a full pipe, a lock, a FIFO without a reader.
const BLOCKED: &str = r"
import fcntl
def full():
    rx, tx = os.pipe()
    up()
    os.write(tx, bytes(1 << 20))
def locked():
    up()
    fcntl.flock(os.open('/tmp/lock', os.O_RDWR), fcntl.LOCK_EX)
def fifo():
    os.mkfifo('/tmp/fifo')
    up()
    os.open('/tmp/fifo', os.O_WRONLY)
held = os.open('/tmp/lock', os.O_RDWR | os.O_CREAT)
fcntl.flock(held, fcntl.LOCK_EX)
for act in (full, locked, fifo):
    if os.fork() == 0:
        os.close(held) if act is locked else None
        act()
        os._exit(1)
wait(3)
";

/// Goes on forking whatever dies, at its limit all the time.
const BOMB: &str = r"
deaf()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def bomb():
    while True:
        try:
            if os.fork() == 0:
                continue
        except OSError:
            break
    up()
if os.fork() == 0:
    bomb()
    while True:
        try:
            if os.fork() == 0:
                os._exit(0)
        except OSError:
            pass
wait(100)
";

const MANY: &str = r"
deaf()
for _ in range(500):
    if os.fork() == 0:
        os.setsid(); up(); rest()
wait(500)
";

const TRACED: &str = r"
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0, 0, 0, 0) == -1 and ctypes.get_errno() == 1, 'tracing is allowed'
";

/// Name, tree, how many processes a look from outside sees at least.
const ROWS: [(&str, &str, usize); 12] = [
    ("deaf", DEAF, 11),
    ("daemons", DAEMONS, 21),
    ("groups", GROUPS, 11),
    ("stopped", STOPPED, 11),
    ("all_stopped", ALL_STOPPED, 2),
    ("vfork", VFORK, 11),
    ("zombies", ZOMBIES, 2),
    ("threads", THREADS, 1),
    ("blocked", BLOCKED, 4),
    ("bomb", BOMB, 100),
    ("many", MANY, 501),
    ("traced", TRACED, 1),
];

async fn kill_row(place: &Place, name: &str, tree: &str, at_least: usize) {
    let place = Place::another(place);
    let marker = marker(name);
    let ready = if name == "all_stopped" { "" } else { READY };
    let mut plan = place.plan(&format!("{COMMON}{tree}{ready}"), &[&marker]);
    plan.limits.processes = if name == "bomb" { 200 } else { 700 };
    let control = RunControl::new();
    let (task, _lines) = started(&place, &plan, &control).await;
    let gone = last_writer_gone(&place).await;
    let seen = processes_with(&marker);
    assert!(seen >= at_least, "control of {name}: {seen} processes live");
    let asked = Instant::now();
    control.kill();
    gone.await;
    let after = asked.elapsed();
    let report = task.await.unwrap().unwrap().report;
    eprintln!(
        "{name}: {seen} processes, gone after {after:?}, reported after {:?}",
        asked.elapsed()
    );
    assert!(report.killed_tree && report.tree_gone, "{name}: {report:?}");
    assert_eq!(report.exit, PayloadExit::Unknown, "{name}");
    assert_eq!(processes_with(&marker), 0, "{name}");
}

both_modes! {
    async fn after_a_kill_nothing_is_left_within_a_second(place) {
        for (name, tree, at_least) in ROWS {
            kill_row(&place, name, tree, at_least).await;
        }
    }
}

both_modes! {
    async fn daemons_end_with_the_payload(place) {
        let marker = marker("left");
        let plan = place.plan(&format!("{COMMON}{DAEMONS}"), &[&marker]);
        let run = place.run(&plan).await;
        assert!(run.report.succeeded() && !run.report.killed_tree, "{:?}", run.report);
        assert_eq!(processes_with(&marker), 0);
    }
}
