//! One tree of processes that is limited, accounted and ended as a whole.
//!
//! Invariants: only what is in the group's own control group, or was found below the watched init
//! while its pidfd was held, is signalled. The wait for the end is bounded; what survives is
//! counted, never forgotten: its control group and its record stay for the next sweep
//! ([`Supervisor::reap`]). A group that is dropped unfinished kills its tree and says so in the log.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::cgroup::ControlGroup;
use crate::sample::Sampler;
use crate::{Accounting, AccountingSource, ScopeError, Supervisor, ending, names, process};

/// Limits of a whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupLimits {
    /// Memory in bytes. Under `plain` the tree is ended when it is *seen* above. A control group
    /// counts files in memory too.
    pub memory_bytes: Option<u64>,
    /// Processes and threads. Not enforced under `plain`: the sandbox's rlimit is.
    pub tasks: Option<u64>,
}

/// A group. End it with [`Group::finish`].
#[derive(Debug)]
pub struct Group {
    name: String,
    limits: GroupLimits,
    control: Option<Arc<ControlGroup>>,
    sampler: Mutex<Option<Sampler>>,
    /// Who the tree's init is, for whoever comes after us.
    record: PathBuf,
    /// Processes that the kernel had killed for memory on this machine when the group was made.
    oom_kills_before: Option<u64>,
}

impl Supervisor {
    /// Makes a group for one tree. `records` is a directory of the run's own in which the groups
    /// that live are noted.
    ///
    /// # Errors
    /// [`ScopeError::Name`], [`ScopeError::Cgroup`].
    pub async fn group(
        &self,
        name: &str,
        limits: GroupLimits,
        records: &Path,
    ) -> Result<Group, ScopeError> {
        names::check(name)?;
        let control = match self {
            Self::Plain => None,
            Self::Cgroup(groups) => {
                let (groups, own) = (groups.clone(), name.to_owned());
                // Version 1 takes about 10 ms: not on a worker thread.
                let made = ending::off_thread(move || groups.make(&own, limits)).await;
                Some(Arc::new(made.map_err(|source| ScopeError::Cgroup {
                    name: name.to_owned(),
                    source,
                })?))
            }
        };
        Ok(Group {
            name: name.to_owned(),
            limits,
            control,
            sampler: Mutex::new(None),
            record: records.join(name),
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

    /// Files by which the tree's first process enters the group, by writing its pid; none under
    /// `plain`.
    ///
    /// # Errors
    /// [`ScopeError::Cgroup`].
    pub fn entries(&self) -> Result<Vec<OwnedFd>, ScopeError> {
        let Some(control) = &self.control else {
            return Ok(Vec::new());
        };
        control.entries().map_err(|source| ScopeError::Cgroup {
            name: self.name.clone(),
            source,
        })
    }

    /// Watches the tree below `init`, a pid of this pid namespace, and notes it. Call once, within a
    /// tokio runtime, while `init` is known to be unreaped; one that has ended is not watched.
    pub fn watch(&self, init: i32) {
        let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
        if sampler.is_some() {
            return;
        }
        // A control group holds its limit by itself.
        let limit = self.limits.memory_bytes.filter(|_| self.control.is_none());
        *sampler = Sampler::start(init, limit);
        if let Some(sampler) = &*sampler
            && let Err(error) = sampler.init.write(&self.record)
        {
            tracing::warn!(group = self.name, %error, "if this process dies, nobody will find the group");
        }
    }

    /// Kills what is left, waits for it (at most 5 s), reads the figures and removes the group.
    pub async fn finish(self) -> Accounting {
        let sampler = self.take();
        let sampled = match &sampler {
            Some(sampler) => sampler.stop(self.limits.memory_bytes),
            None => Accounting::unmeasured(AccountingSource::Sampled),
        };
        let deadline = Instant::now() + ending::KILL_MAX;
        let (mut record, left) = match (&self.control, &sampler) {
            (Some(control), _) => {
                let left = ending::end_control(control, deadline).await;
                let record = merged(control.accounting(), &sampled);
                let is_removed = ending::remove(control, deadline).await;
                // Processes that do not die keep their group: it is quarantined.
                (record, left.max(u32::from(!is_removed)))
            }
            (None, Some(sampler)) => {
                let ended = ending::end_tree(sampler.init, deadline).await;
                (sampled, ended.left)
            }
            (None, None) => (sampled, 0),
        };
        record.left = left;
        record.slice_oom_kills = self.oom_kills(&record);
        if left == 0 {
            self.forget();
        } else {
            let place = self
                .control
                .as_ref()
                .map(|control| control.path().to_owned());
            tracing::error!(
                group = self.name,
                left,
                ?place,
                "processes survive SIGKILL: quarantined"
            );
        }
        record
    }

    /// Kills for memory on the whole machine since the group was made, without its own.
    fn oom_kills(&self, record: &Accounting) -> Option<u64> {
        let (before, now) = (self.oom_kills_before?, process::machine_oom_kills()?);
        let own = record.oom_kills.unwrap_or(0);
        Some(now.saturating_sub(before).saturating_sub(own))
    }

    fn forget(&self) {
        match std::fs::remove_file(&self.record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(group = self.name, %error, "remove the record of a group");
            }
            _ => {}
        }
    }

    fn take(&self) -> Option<Sampler> {
        let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
        sampler.take()
    }
}

/// The control group's figures; where it has none, what was sampled.
fn merged(mut control: Accounting, sampled: &Accounting) -> Accounting {
    let fill = |figure: &mut Option<u64>, other: Option<u64>| *figure = figure.or(other);
    fill(&mut control.read_bytes, sampled.read_bytes);
    fill(&mut control.write_bytes, sampled.write_bytes);
    fill(&mut control.processes_peak, sampled.processes_peak);
    fill(&mut control.memory_peak_bytes, sampled.memory_peak_bytes);
    fill(&mut control.cpu_ms, sampled.cpu_ms);
    control
}

impl Drop for Group {
    fn drop(&mut self) {
        let sampler = self.take();
        let killed = sampler.map_or(0, |sampler| ending::kill_tree(sampler.init).len());
        if let Some(control) = &self.control
            && control.path().exists()
        {
            // Empty or not: the next sweep looks again.
            let _ = control.kill();
            control.remove_now();
        } else if killed == 0 {
            return;
        }
        tracing::warn!(group = self.name, killed, "a group was dropped unfinished");
    }
}
