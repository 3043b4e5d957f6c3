//! One control group: made, limited, entered, read, killed, removed.
//!
//! Invariants: its owner holds a lock (flock(2)) on its first directory for as long as it lives, so
//! a group without a holder is an orphan and one with a holder is never touched. Its name is taken
//! only if no directory of that name is there. A directory that cannot be removed stays under its
//! name and is tried again by the next sweep.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cgroups_rs::fs::MaxValue;
use cgroups_rs::fs::memory::MemController;
use cgroups_rs::fs::pid::PidController;
use nix::fcntl::{Flock, FlockArg};

use super::{Bases, NoCgroups, files};
use crate::{Accounting, AccountingSource, GroupLimits};

/// Names that are tried when one is still taken by a group that could not be removed.
const NAMES_MAX: u32 = 64;

/// Version 1: a group whose peak comes as near as this to its limit has hit it. The kernel charges
/// at most 8 pages at once before it kills.
const FULL_WITHIN_BYTES: u64 = 64 << 10;

/// A group that this process owns.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    /// One (version 2) or memory, pids, version 2.
    directories: Vec<PathBuf>,
    _owner: Flock<File>,
}

impl ControlGroup {
    /// Makes the group `name`, or `name~2` and so on while a name is taken.
    pub(super) fn make(bases: &Bases, name: &str, limits: GroupLimits) -> Result<Self, NoCgroups> {
        let mut number = 1;
        loop {
            let name = match number {
                1 => name.to_owned(),
                number => format!("{name}~{number}"),
            };
            number += 1;
            match Self::make_named(bases.directories(&name)) {
                Ok(Some(group)) => {
                    if let Err(error) = group.limit(limits) {
                        group.remove_now();
                        return Err(error);
                    }
                    return Ok(group);
                }
                Ok(None) if number <= NAMES_MAX => {}
                Ok(None) => {
                    let path = bases.memory().join(name);
                    let source = ErrorKind::AlreadyExists.into();
                    return Err(refused("make the group", &path)(source));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `None`: the name is taken.
    fn make_named(directories: Vec<PathBuf>) -> Result<Option<Self>, NoCgroups> {
        let mut owner = None;
        for (made, path) in directories.iter().enumerate() {
            let undo = || remove(directories.get(..made).unwrap_or_default());
            match std::fs::create_dir(path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    undo();
                    return Ok(None);
                }
                Err(error) => {
                    undo();
                    return Err(refused("make the group", path)(error));
                }
            }
            if owner.is_none() {
                owner = held(path);
                // A sweep was faster and takes it for an orphan.
                if owner.is_none() {
                    return Ok(None);
                }
            }
        }
        Ok(owner.map(|owner| Self {
            directories,
            _owner: owner,
        }))
    }

    /// An existing group, if its owner is dead.
    pub(super) fn take_over(bases: &Bases, name: &str) -> Option<Self> {
        let directories = bases.directories(name);
        let owner = held(directories.first()?)?;
        Some(Self {
            directories,
            _owner: owner,
        })
    }

    fn limit(&self, limits: GroupLimits) -> Result<(), NoCgroups> {
        let is_unified = self.is_unified();
        let failed = |action, path: &Path, error: cgroups_rs::fs::error::Error| {
            refused(action, path)(std::io::Error::other(error))
        };
        if let Some(bytes) = limits.memory_bytes {
            let path = self.memory();
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let memory = MemController::new(path.to_owned(), path.to_owned(), is_unified);
            let limited = memory.set_limit(bytes);
            limited.map_err(|error| failed("limit the memory of", path, error))?;
            // Swap would let a tree grow past its limit, slowly. A kernel without swap accounting
            // has no such file.
            let (file, swap) = if is_unified {
                ("memory.swap.max", 0)
            } else {
                ("memory.memsw.limit_in_bytes", bytes)
            };
            if path.join(file).exists() {
                let limited = memory.set_memswap_limit(swap);
                limited.map_err(|error| failed("limit the swap of", path, error))?;
            }
            if is_unified {
                // The whole tree or nothing: half a program gives half an answer.
                std::fs::write(path.join("memory.oom.group"), "1")
                    .map_err(refused("join for memory", path))?;
            }
        }
        if let Some(tasks) = limits.tasks {
            let path = self.pids();
            let pids = PidController::new(path.to_owned(), path.to_owned(), is_unified);
            let tasks = MaxValue::Value(i64::try_from(tasks).unwrap_or(i64::MAX));
            let limited = pids.set_pid_max(tasks);
            limited.map_err(|error| failed("limit the processes of", path, error))?;
        }
        Ok(())
    }

    /// Is everything there that ending and accounting need?
    pub(super) fn check(&self) -> Result<(), NoCgroups> {
        for file in ["cgroup.kill", "cgroup.events", "cpu.stat"] {
            let path = self.unified().join(file);
            if !path.exists() {
                return Err(refused("find", &path)(ErrorKind::NotFound.into()));
            }
        }
        Ok(())
    }

    /// The files that a process enters the group by.
    pub(crate) fn entries(&self) -> Result<Vec<OwnedFd>, NoCgroups> {
        let open = |directory: &PathBuf| {
            let path = directory.join("cgroup.procs");
            let opened = OpenOptions::new().write(true).open(&path);
            opened.map(OwnedFd::from).map_err(refused("open", &path))
        };
        self.directories.iter().map(open).collect()
    }

    /// KILL to everything in it, at once.
    pub(crate) fn kill(&self) -> std::io::Result<()> {
        std::fs::write(self.unified().join("cgroup.kill"), "1")
    }

    /// Its `cgroup.events`: priority-readable when [`ControlGroup::is_populated`] changes.
    pub(crate) fn events(&self) -> std::io::Result<File> {
        File::open(self.unified().join("cgroup.events"))
    }

    /// Does something live in it?
    pub(crate) fn is_populated(&self) -> bool {
        files::keyed(self.unified(), "cgroup.events", "populated") != Some(0)
    }

    /// Processes in it.
    pub(crate) fn processes(&self) -> usize {
        files::processes(self.unified()).len()
    }

    /// What it used so far.
    pub(crate) fn accounting(&self) -> Accounting {
        let (memory, unified) = (self.memory(), self.unified());
        let cpu_us = files::keyed(unified, "cpu.stat", "usage_usec");
        let is_unified = self.is_unified();
        let (source, peak, kills) = if is_unified {
            (
                AccountingSource::Cgroup,
                files::value(memory, "memory.peak"),
                files::keyed(memory, "memory.events", "oom_kill"),
            )
        } else {
            (
                AccountingSource::CgroupHybrid,
                files::value(memory, "memory.max_usage_in_bytes"),
                files::keyed(memory, "memory.oom_control", "oom_kill"),
            )
        };
        let limit_hit = if is_unified {
            // Counted where the limit was hit, not where the kill fell.
            files::keyed(memory, "memory.events", "oom").is_some_and(|hits| hits > 0)
        } else {
            // Version 1 has no such count, and its `failcnt` stays 0 on newer kernels.
            let limit = files::value(memory, "memory.limit_in_bytes");
            let full = limit.map(|bytes| bytes.saturating_sub(FULL_WITHIN_BYTES));
            peak.zip(full).is_some_and(|(peak, full)| peak >= full)
        };
        Accounting {
            cpu_ms: cpu_us.map(|us| us / 1000),
            memory_peak_bytes: peak,
            read_bytes: files::summed(unified, "io.stat", "rbytes"),
            write_bytes: files::summed(unified, "io.stat", "wbytes"),
            oom_kills: kills,
            limit_hit,
            processes_peak: files::value(self.pids(), "pids.peak"),
            ..Accounting::unmeasured(source)
        }
    }

    /// Removes it; false while something of it is still there.
    pub(crate) fn remove_now(&self) -> bool {
        remove(&self.directories)
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.memory()
    }

    fn is_unified(&self) -> bool {
        self.directories.len() == 1
    }

    fn memory(&self) -> &Path {
        self.at(0)
    }

    fn pids(&self) -> &Path {
        self.at(1)
    }

    fn unified(&self) -> &Path {
        self.at(2)
    }

    fn at(&self, index: usize) -> &Path {
        let last = self.directories.len().saturating_sub(1);
        let found = self.directories.get(index.min(last));
        found.map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Its directory with the owner's lock; none when another one holds it or it is gone.
fn held(path: &Path) -> Option<Flock<File>> {
    let file = File::open(path).ok()?;
    let held = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    // Removed while we waited for nothing: the lock is on a directory without a name.
    path.exists().then_some(held)
}

/// Last one first, so that the owner's directory stays while anything is left. False then.
fn remove(directories: &[PathBuf]) -> bool {
    directories.iter().rev().all(|path| {
        let removed = std::fs::remove_dir(path);
        !matches!(removed, Err(error) if error.kind() != ErrorKind::NotFound)
    })
}

fn refused(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NoCgroups + use<> {
    let path = path.to_owned();
    move |source| NoCgroups::Refused {
        action,
        path,
        source,
    }
}
