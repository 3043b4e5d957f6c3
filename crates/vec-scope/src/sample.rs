//! The named fall-back of accounting: looking at `/proc` below a sandbox's init.
//!
//! Invariants: every figure is a lower bound (see [`AccountingSource::Sampled`]). A tree above its
//! memory is ended by KILL of its init through a pidfd, and the record says so. The task ends with
//! the init.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::process::{self, Stat};
use crate::{Accounting, AccountingSource, Pidfile, sys};

/// How often the tree is looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Last seen own time of each process ever seen, by pid and start time, in ticks.
    own_ticks: BTreeMap<(i32, u64), u64>,
    /// Highest time of the living with their reaped children, in ticks.
    tree_ticks: u64,
    memory_peak: u64,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
    processes_peak: u64,
    limit_hit: bool,
}

impl Seen {
    /// Looks at the tree below `init` once; returns its memory in bytes.
    fn sample(&mut self, init: i32) -> u64 {
        let members = process::tree(init);
        let (mut ticks, mut memory, mut read, mut written) = (0, 0, None, None);
        for &pid in &members {
            let Some(stat) = Stat::of(pid) else { continue };
            ticks += stat.own_ticks + stat.children_ticks;
            self.own_ticks
                .insert((pid, stat.start_time_ticks), stat.own_ticks);
            memory += process::memory_bytes(pid).unwrap_or(0);
            // The sums hold reaped children already: only the living are added up.
            if let Some((r, w)) = process::io_bytes(pid) {
                *read.get_or_insert(0) += r;
                *written.get_or_insert(0) += w;
            }
        }
        self.tree_ticks = self.tree_ticks.max(ticks);
        self.memory_peak = self.memory_peak.max(memory);
        self.read_bytes = self.read_bytes.max(read);
        self.write_bytes = self.write_bytes.max(written);
        let count = u64::try_from(members.len()).unwrap_or(u64::MAX);
        self.processes_peak = self.processes_peak.max(count);
        memory
    }

    /// The record; without figures if nothing was ever seen.
    pub(crate) fn accounting(&self) -> Accounting {
        let mut record = Accounting::unmeasured(AccountingSource::Sampled);
        record.limit_hit = self.limit_hit;
        if self.processes_peak > 0 {
            // Both are lower bounds: the one misses reaped children that no sample saw, the other
            // what was never reaped by its parent.
            let ticks = self.tree_ticks.max(self.own_ticks.values().sum());
            record.cpu_ms = Some(process::ticks_to_ms(ticks));
            record.memory_peak_bytes = Some(self.memory_peak);
            record.read_bytes = self.read_bytes;
            record.write_bytes = self.write_bytes;
            record.processes_peak = Some(self.processes_peak);
        }
        record
    }
}

/// Samples one tree until it is stopped or its init has ended.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) init: Pidfile,
    pub(crate) pidfd: Arc<OwnedFd>,
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

impl Sampler {
    /// Begins with a first sample at once. `None`: the process is gone. Call within a tokio runtime.
    pub(crate) fn start(init: i32, memory_bytes: Option<u64>) -> Option<Self> {
        let pidfd = Arc::new(sys::pidfd_open(init).ok()?);
        let start_time_ticks = Stat::of(init)?.start_time_ticks;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let identity = Pidfile {
            pid: init,
            start_time_ticks,
        };
        let (fd, shared) = (Arc::clone(&pidfd), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            let mut ticker = tokio::time::interval(PERIOD);
            ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticker.tick().await;
                let (fd, shared) = (Arc::clone(&fd), Arc::clone(&shared));
                // Up to 100 ms with hundreds of processes: not on a worker thread.
                let look = move || look(identity, &fd, &shared, memory_bytes);
                if !tokio::task::spawn_blocking(look).await.unwrap_or(false) {
                    return;
                }
            }
        });
        Some(Self {
            init: identity,
            pidfd,
            seen,
            task,
        })
    }

    /// Looks a last time and stops.
    pub(crate) fn stop(&self, memory_bytes: Option<u64>) -> Accounting {
        self.task.abort();
        look(self.init, &self.pidfd, &self.seen, memory_bytes);
        lock(&self.seen).accounting()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One look; false when there is nothing more to see.
fn look(init: Pidfile, pidfd: &OwnedFd, seen: &Mutex<Seen>, memory_bytes: Option<u64>) -> bool {
    // The pidfd does not keep the number: a recycled one must not be looked at.
    if !process::is(init) {
        return false;
    }
    let mut seen = lock(seen);
    let memory = seen.sample(init.pid);
    if memory_bytes.is_none_or(|limit| memory <= limit) {
        return true;
    }
    seen.limit_hit = true;
    // Refused or gone: the group's end tries again and reports what is left.
    let _ = sys::pidfd_signal(pidfd.as_fd(), Signal::SIGKILL);
    false
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
