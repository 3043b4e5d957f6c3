//! The supervisor `cgroup`: where groups can be made here, or what is missing for it.
//!
//! Invariants: groups are made only below this process's own group, in a subtree that was given to
//! us; nothing that exists is limited, and nothing beside the own group is made. A host on which one
//! of memory limit, process limit, kill and CPU time is missing is refused by name, never used in
//! part (sandbox.md B.3).

mod files;
mod layout;
mod made;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::AccessFlags;

use crate::{GroupLimits, sys};
pub(crate) use made::ControlGroup;

/// The group into which this process moves itself and its daemons, since version 2 allows limits
/// only in a group without processes of its own. A unit of systemd names it as `DelegateSubgroup=`.
const LEAF: &str = "vec-daemons";

/// Where systemd says that it manages this host.
const SYSTEMD: &str = "/run/systemd/system";

/// Rounds of moving processes into the leaf, against one that forks meanwhile.
const MOVE_ROUNDS: usize = 16;

/// Why there is no supervisor `cgroup` here.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroups {
    /// Neither version 2 with memory and pids, nor version 1 of both beside version 2.
    #[error(
        "no control groups for memory and pids: {found}; needed are version 2 with both controllers, or version 1 of both beside version 2"
    )]
    NotMounted {
        /// What there is.
        found: String,
    },
    /// systemd owns the group.
    #[error(
        "systemd manages {path:?} and has not handed it over; start vec-launcher in a unit or scope with Delegate=yes"
    )]
    NotDelegated {
        /// The own group.
        path: PathBuf,
    },
    /// The group belongs to another user.
    #[error("no permission to make groups in {path:?}; it must be delegated to this user")]
    NotOurs {
        /// The own group.
        path: PathBuf,
    },
    /// The kernel refused something.
    #[error("cannot {action} {path:?}")]
    Refused {
        /// What.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Directories below which groups are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bases {
    /// Version 2: one directory for everything.
    Unified(PathBuf),
    /// Version 1 for limits, version 2 for kill and CPU time.
    Hybrid {
        memory: PathBuf,
        pids: PathBuf,
        unified: PathBuf,
    },
}

/// A subtree of control groups that is ours. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    bases: Arc<Bases>,
}

impl Cgroups {
    /// Looks where this process may make groups, prepares that subtree and makes, limits and
    /// removes one group as a test. Blocks for some tens of milliseconds.
    ///
    /// # Errors
    /// [`NoCgroups`]: what is missing.
    pub fn detect() -> Result<Self, NoCgroups> {
        let read = |path: &str| {
            std::fs::read_to_string(path).map_err(|source| NoCgroups::Refused {
                action: "read",
                path: path.into(),
                source,
            })
        };
        let own = layout::own(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?);
        let bases = bases(own)?;
        allowed(&bases, Path::new(SYSTEMD).exists())?;
        if let Bases::Unified(base) = &bases {
            open_up(base)?;
        }
        let groups = Self {
            bases: Arc::new(bases),
        };
        groups.try_one()?;
        Ok(groups)
    }

    /// Which kind and where, for preflight.
    #[must_use]
    pub fn describe(&self) -> String {
        match &*self.bases {
            Bases::Unified(base) => format!("version 2 below {}", base.display()),
            Bases::Hybrid { memory, .. } => {
                format!(
                    "version 1 limits with version 2 kill, below {}",
                    memory.display()
                )
            }
        }
    }

    pub(crate) fn make(&self, name: &str, limits: GroupLimits) -> Result<ControlGroup, NoCgroups> {
        ControlGroup::make(&self.bases, name, limits)
    }

    /// Groups of dead owners whose name begins with `prefix`.
    pub(crate) fn orphans(&self, prefix: &str) -> Vec<ControlGroup> {
        let Ok(entries) = std::fs::read_dir(self.bases.memory()) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter(|name| name.starts_with(prefix) && name != LEAF)
            .filter_map(|name| ControlGroup::take_over(&self.bases, &name))
            .collect()
    }

    /// Removes empty groups whose owner is dead: runs that nobody resumed. Signals nothing.
    pub fn sweep_empty(&self) {
        for group in self.orphans("vec-") {
            // One in which something lives cannot be removed.
            group.remove_now();
        }
    }

    fn try_one(&self) -> Result<(), NoCgroups> {
        let limits = GroupLimits {
            memory_bytes: Some(64 << 20),
            tasks: Some(16),
        };
        let name = format!("vec-probe-{}", std::process::id());
        let group = self.make(&name, limits)?;
        let complete = group.check();
        group.remove_now();
        complete
    }
}

impl Bases {
    /// Where a group is made first and removed last: its directory there is held by its owner.
    pub(crate) fn memory(&self) -> &Path {
        match self {
            Self::Unified(base) => base,
            Self::Hybrid { memory, .. } => memory,
        }
    }

    /// Directories of the group `name`: made in this order, removed in the other.
    pub(crate) fn directories(&self, name: &str) -> Vec<PathBuf> {
        match self {
            Self::Unified(base) => vec![base.join(name)],
            Self::Hybrid {
                memory,
                pids,
                unified,
            } => vec![memory.join(name), pids.join(name), unified.join(name)],
        }
    }
}

/// Version 2 if it has the controllers, else both versions side by side.
fn bases(own: layout::Own) -> Result<Bases, NoCgroups> {
    let above_leaf = |path: PathBuf| match path.file_name() {
        Some(name) if name == LEAF => path.parent().map(Path::to_owned).unwrap_or(path),
        _ => path,
    };
    let layout::Own {
        unified,
        memory,
        pids,
    } = own;
    let (unified, memory, pids) = (
        unified.map(above_leaf),
        memory.map(above_leaf),
        pids.map(above_leaf),
    );
    if let Some(base) = &unified {
        let controllers = files::words(base, "cgroup.controllers");
        let has = |name: &str| controllers.iter().any(|one| one == name);
        if has("memory") && has("pids") {
            return Ok(Bases::Unified(base.clone()));
        }
    }
    let word = |name: &str, path: &Option<PathBuf>| {
        let word = if path.is_some() { "there" } else { "missing" };
        format!("{name} {word}")
    };
    let found = [
        word("version 2", &unified),
        word("version 1 memory", &memory),
        word("version 1 pids", &pids),
    ];
    match (unified, memory, pids) {
        (Some(unified), Some(memory), Some(pids)) => Ok(Bases::Hybrid {
            memory,
            pids,
            unified,
        }),
        _ => Err(NoCgroups::NotMounted {
            found: found.join(", "),
        }),
    }
}

/// May we make groups there? Root may everywhere, but what systemd has not handed over is
/// systemd's.
fn allowed(bases: &Bases, has_systemd: bool) -> Result<(), NoCgroups> {
    let all = match bases {
        Bases::Unified(base) => vec![base],
        Bases::Hybrid {
            memory,
            pids,
            unified,
        } => vec![memory, pids, unified],
    };
    for path in all {
        let flags = AccessFlags::W_OK | AccessFlags::X_OK;
        let writable = |path: &Path| nix::unistd::access(path, flags).is_ok();
        if !writable(path) {
            return Err(NoCgroups::NotOurs { path: path.clone() });
        }
        let is_delegated = || {
            let marks = [c"user.delegate", c"trusted.delegate"];
            marks.iter().any(|mark| sys::has_mark(path, mark))
        };
        if has_systemd && !is_delegated() {
            return Err(NoCgroups::NotDelegated { path: path.clone() });
        }
    }
    Ok(())
}

/// Version 2: hands the controllers to groups below `base`, after moving the processes of `base`
/// itself into the leaf (only the root of all groups may have both).
fn open_up(base: &Path) -> Result<(), NoCgroups> {
    let refused = |action, path: &Path| {
        let path = path.to_owned();
        move |source| NoCgroups::Refused {
            action,
            path,
            source,
        }
    };
    let control = base.join("cgroup.subtree_control");
    let open = files::words(base, "cgroup.subtree_control");
    let offered = files::words(base, "cgroup.controllers");
    let wanted: Vec<String> = ["memory", "pids", "io"]
        .into_iter()
        .filter(|name| offered.iter().any(|one| one == name))
        .filter(|name| !open.iter().any(|one| one == name))
        .map(|name| format!("+{name}"))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    // The root of all groups has no type.
    if base.join("cgroup.type").exists() {
        let leaf = base.join(LEAF);
        match std::fs::create_dir(&leaf) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(refused("make the group", &leaf)(error));
            }
            _ => {}
        }
        move_all(base, &leaf).map_err(refused("move the processes of", base))?;
    }
    std::fs::write(&control, wanted.join(" ")).map_err(refused("hand controllers on in", &control))
}

fn move_all(from: &Path, to: &Path) -> std::io::Result<()> {
    for _ in 0..MOVE_ROUNDS {
        let processes = files::processes(from);
        if processes.is_empty() {
            return Ok(());
        }
        for pid in processes {
            match std::fs::write(to.join("cgroup.procs"), pid.to_string()) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
                _ => {}
            }
        }
    }
    Err(std::io::Error::other("new processes come up all the time"))
}

#[cfg(test)]
mod tests;
