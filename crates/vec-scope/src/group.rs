//! One tree of processes that is limited, accounted and ended as a whole.
//!
//! Invariants: only a process that was found below the watched init while its pidfd was held is
//! signalled. The wait for the end is bounded; what survives is counted, never forgotten. A group
//! that is dropped unfinished kills its tree and says so in the log.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;

use crate::sample::Sampler;
use crate::{Accounting, AccountingSource, ScopeError, Supervisor, names, process, sys};

/// How long the kernel may take to end killed processes.
const KILL_MAX: Duration = Duration::from_secs(5);

/// Limits of a whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupLimits {
    /// Memory in bytes. Under `plain` the tree is ended when it is *seen* above.
    pub memory_bytes: Option<u64>,
    /// Processes and threads. Not enforced under `plain`: the sandbox's rlimit is.
    pub tasks: Option<u64>,
}

/// A group. End it with [`Group::finish`].
#[derive(Debug)]
pub struct Group {
    name: String,
    limits: GroupLimits,
    sampler: Mutex<Option<Sampler>>,
    /// Processes that the kernel had killed for memory on this machine when the group was made.
    oom_kills_before: Option<u64>,
}

impl Supervisor {
    /// Makes a group for one tree.
    ///
    /// # Errors
    /// [`ScopeError::Name`].
    pub fn group(self, name: &str, limits: GroupLimits) -> Result<Group, ScopeError> {
        let Self::Plain = self;
        names::check(name)?;
        Ok(Group {
            name: name.to_owned(),
            limits,
            sampler: Mutex::new(None),
            oom_kills_before: process::machine_oom_kills(),
        })
    }
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Watches the tree below `init`, a pid of this pid namespace. Call once, within a tokio
    /// runtime, while `init` is known to be unreaped; one that has ended is not watched.
    pub fn watch(&self, init: i32) {
        let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
        if sampler.is_none() {
            *sampler = Sampler::start(init, self.limits.memory_bytes);
        }
    }

    /// Kills what is left, waits for it (at most 5 s) and reads the figures.
    pub async fn finish(self) -> Accounting {
        let Some(sampler) = self.take() else {
            let mut record = Accounting::unmeasured(AccountingSource::Sampled);
            record.slice_oom_kills = self.oom_kills();
            return record;
        };
        let mut record = sampler.stop(self.limits.memory_bytes);
        record.slice_oom_kills = self.oom_kills();
        let deadline = Instant::now() + KILL_MAX;
        for fd in kill(&sampler) {
            let gone = match sys::readable(fd) {
                Ok(fd) => {
                    let ended = tokio::time::timeout_at(deadline, fd.readable()).await;
                    matches!(ended, Ok(Ok(_)))
                }
                Err(_) => false,
            };
            record.left += u32::from(!gone);
        }
        record
    }

    /// Kills for memory on the whole machine since the group was made: `plain` has no smaller slice.
    fn oom_kills(&self) -> Option<u64> {
        let (before, now) = (self.oom_kills_before?, process::machine_oom_kills()?);
        Some(now.saturating_sub(before))
    }

    fn take(&self) -> Option<Sampler> {
        let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
        sampler.take()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(sampler) = self.take() {
            let killed = kill(&sampler).len();
            tracing::warn!(group = self.name, killed, "a group was dropped unfinished");
        }
    }
}

/// KILL to the tree; the pidfds of what was signalled.
fn kill(sampler: &Sampler) -> Vec<OwnedFd> {
    let init = sampler.init;
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
