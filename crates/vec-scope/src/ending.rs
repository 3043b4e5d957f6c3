//! Ending trees and control groups, with bounds.
//!
//! Invariants: a pid is signalled through a pidfd, after it was seen below its init again while the
//! pidfd was held. No wait goes past the caller's deadline.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;

use crate::cgroup::ControlGroup;
use crate::{Pidfile, process, sys};

/// How long the kernel may take to end killed processes and to let go of their group.
pub(crate) const KILL_MAX: Duration = Duration::from_secs(5);

/// Time between two tries to remove a group.
const REMOVE_POLL: Duration = Duration::from_millis(5);

/// How a tree ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    pub(crate) killed: u32,
    pub(crate) left: u32,
}

/// KILL to `init` and everything below it; waits for the end of each.
pub(crate) async fn end_tree(init: Pidfile, deadline: Instant) -> Ended {
    let mut ended = Ended::default();
    for fd in kill_tree(init) {
        ended.killed += 1;
        let gone = match sys::readable(fd) {
            Ok(fd) => {
                let ended = tokio::time::timeout_at(deadline, fd.readable()).await;
                matches!(ended, Ok(Ok(_)))
            }
            Err(_) => false,
        };
        ended.left += u32::from(!gone);
    }
    ended
}

/// KILL to the tree; the pidfds of what was signalled.
pub(crate) fn kill_tree(init: Pidfile) -> Vec<OwnedFd> {
    if !process::is(init) {
        return Vec::new();
    }
    let opened: Vec<(i32, OwnedFd)> = process::tree(init.pid)
        .into_iter()
        .filter_map(|pid| Some((pid, sys::pidfd_open(pid).ok()?)))
        .collect();
    // Again, now that the pidfds pin them: who is still below init is who was opened.
    let still = process::tree(init.pid);
    if !process::is(init) {
        return Vec::new();
    }
    let mut signalled = Vec::new();
    for (pid, fd) in opened {
        if still.contains(&pid) {
            // Refused or gone: the wait tells which.
            let _ = sys::pidfd_signal(fd.as_fd(), Signal::SIGKILL);
            signalled.push(fd);
        }
    }
    signalled
}

/// KILL to everything in the group; how many are left when the bound is over.
pub(crate) async fn end_control(control: &ControlGroup, deadline: Instant) -> u32 {
    if !control.is_populated() {
        return 0;
    }
    if let Err(error) = control.kill() {
        tracing::error!(path = %control.path().display(), %error, "cannot kill a control group");
    }
    // Elapsed or not: the count tells.
    let _ = tokio::time::timeout_at(deadline, empty(control)).await;
    if control.is_populated() {
        u32::try_from(control.processes().max(1)).unwrap_or(u32::MAX)
    } else {
        0
    }
}

/// Resolves when nothing lives in the group; never if it cannot be watched.
async fn empty(control: &ControlGroup) {
    let Ok(events) = control.events().and_then(sys::changing) else {
        return std::future::pending().await;
    };
    while control.is_populated() {
        match events.ready(tokio::io::Interest::PRIORITY).await {
            Ok(mut guard) => guard.clear_ready(),
            Err(_) => return std::future::pending().await,
        }
    }
}

/// Removes the group's directories; version 1 may need some tries. False when it is still there.
pub(crate) async fn remove(control: &Arc<ControlGroup>, deadline: Instant) -> bool {
    loop {
        let own = Arc::clone(control);
        if off_thread(move || own.remove_now()).await {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(REMOVE_POLL).await;
    }
}

/// Runs what blocks for some milliseconds.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down and takes this task along.
            Err(_) => std::future::pending().await,
        },
    }
}
