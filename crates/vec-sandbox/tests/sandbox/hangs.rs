//! A process that hangs in the kernel: writing to a frozen file system it waits uninterruptibly, and
//! KILL waits with it. The helper must say so in bounded time and let go.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vec_sandbox::{PayloadExit, RunControl, WorkKind};

use crate::live::{marker, started};
use crate::support::{LONG, Place, processes_with, started_by_root};

/// The helper's own bound (5 s) and some room.
const BOUND: Duration = Duration::from_secs(8);

/// Thaws, unmounts (which detaches the loop device too) and ends when its stdin does: by `Drop`, or
/// by the death of this process, however it dies.
const UNDO: &str = r#"read -r _; fsfreeze --unfreeze "$0"; umount "$0" || umount --lazy "$0""#;

/// A small ext4 on a loop device.
struct Disk {
    dir: PathBuf,
    undo: Child,
}

impl Disk {
    /// `None`, said aloud, where this machine cannot make one.
    fn mount(place: &Place) -> Option<Self> {
        let (image, dir) = (place.path("disk.img"), place.path("disk"));
        std::fs::File::create(&image)
            .unwrap()
            .set_len(16 << 20)
            .unwrap();
        std::fs::create_dir(&dir).unwrap();
        let tools = succeeds(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))
            && succeeds(Command::new("fsfreeze").arg("--version"))
            && succeeds(
                Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(&image)
                    .arg(&dir),
            );
        if !tools {
            eprintln!(
                "SKIPPED: a hanging process: mkfs.ext4, fsfreeze or a loop mount does not work here"
            );
            return None;
        }
        let undo = Command::new("sh")
            .process_group(0)
            .args(["-c", UNDO])
            .arg(&dir)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { dir, undo })
    }

    fn freeze(&self, how: &str) {
        assert!(succeeds(Command::new("fsfreeze").arg(how).arg(&self.dir)));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.undo.stdin.take());
        let _ = self.undo.wait();
        let left = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let dir = self.dir.to_string_lossy();
        // A second panic would hide the first.
        assert!(
            std::thread::panicking() || !left.contains(dir.as_ref()),
            "{dir} is still mounted"
        );
    }
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

const WRITER: &str = r"
import os
fd = os.open('/out/file', os.O_RDWR | os.O_CREAT)
print('ready', flush=True)
while True:
    os.pwrite(fd, bytes(4096), 0)
    os.fsync(fd)
";

/// Does a process with `marker` wait uninterruptibly, twice in a row?
fn hangs(marker: &str) -> bool {
    let state = |dir: &Path| -> Option<bool> {
        let line = std::fs::read(dir.join("cmdline")).ok()?;
        let stat = std::fs::read_to_string(dir.join("stat")).ok()?;
        let ours = String::from_utf8_lossy(&line).contains(marker);
        Some(ours && stat.rsplit_once(')')?.1.trim_start().starts_with('D'))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| state(&entry.ok()?.path()))
        .any(|stuck| stuck)
}

/// Looks until `fact` holds.
async fn until(what: &str, fact: impl Fn() -> bool) {
    let begun = Instant::now();
    while !fact() {
        assert!(begun.elapsed() < LONG, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn a_writer_hangs(place: Place) {
    let Some(disk) = Disk::mount(&place) else {
        return;
    };
    let marker = marker("hangs");
    let mut plan = place.plan(WRITER, &[&marker]);
    plan.work.kind = WorkKind::Host {
        source: disk.dir.clone(),
    };
    let control = RunControl::new();
    let (task, _lines) = started(&place, &plan, &control).await;
    disk.freeze("--freeze");
    until("the writer never hung", || hangs(&marker)).await;
    let asked = Instant::now();
    control.kill();
    let ended = tokio::time::timeout(BOUND, task).await;
    let run = ended
        .expect("the run hangs with its payload")
        .unwrap()
        .unwrap();
    eprintln!("let go after {:?}", asked.elapsed());
    assert!(
        run.report.killed_tree && !run.report.tree_gone,
        "{:?}",
        run.report
    );
    assert!(!run.report.succeeded());
    assert_eq!(run.report.exit, PayloadExit::Unknown);
    assert!(processes_with(&marker) >= 1, "control: it hangs still");
    // Another sandbox is not held up.
    assert_eq!(Place::another(&place).inside("print(1)", &[]).await, 1);
    disk.freeze("--unfreeze");
    until("processes are left after the thaw", || {
        processes_with(&marker) == 0
    })
    .await;
    let left = || std::fs::read_to_string("/proc/self/mounts").unwrap();
    let dir = disk.dir.to_string_lossy().into_owned();
    assert!(left().contains(&dir), "control");
    drop(disk);
    assert!(!left().contains(&dir));
}

/// Started by root only: an ordinary user can freeze nothing.
#[test]
fn what_hangs_in_the_kernel_is_reported_in_bounded_time() {
    if !started_by_root() {
        eprintln!("SKIPPED: a hanging process: only root can freeze a file system");
        return;
    }
    crate::support::as_started(a_writer_hangs);
}
