//! What the launcher is given: directories, clock, supervisor. Constructed once in `main`.
//!
//! Invariants: a supervisor weaker than what was asked for is refused; one weaker than what the host
//! could have is named with what is missing (preflight, lock).

use std::path::PathBuf;
use std::sync::Arc;

use vec_clock::Clock;
use vec_config::Supervisor as LockedSupervisor;
use vec_scope::{Cgroups, NoCgroups, Supervisor};

use crate::data_root::DataRoot;
use crate::runtime_dir::{RuntimeDir, Surroundings};

/// The launcher's surroundings.
#[derive(Debug)]
pub struct Deps {
    /// R.
    pub runtime: RuntimeDir,
    /// D, where a request names none.
    pub data_root: DataRoot,
    /// The installed product: `bin/`, `share/`, `BUILD.json`.
    pub prefix: PathBuf,
    /// Who we are and where home is.
    pub surroundings: Surroundings,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Who owns process trees.
    pub supervision: Supervision,
}

/// Which supervisor is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SupervisorChoice {
    /// `cgroup` where it can be had, else `plain`.
    Auto,
    /// No limits of whole trees; accounting by looking at `/proc`.
    Plain,
    /// A control group for each execution and session, or no start.
    Cgroup,
}

/// The supervisor in force and why it is that one.
#[derive(Debug, Clone)]
pub struct Supervision {
    /// The supervisor.
    pub supervisor: Supervisor,
    /// Where its groups are, or what is missing for `cgroup`.
    pub detail: String,
}

impl Supervision {
    /// Looks what this host has. Blocks for some tens of milliseconds.
    ///
    /// # Errors
    /// [`NoCgroups`], when `cgroup` is asked for and cannot be had.
    pub fn choose(choice: SupervisorChoice) -> Result<Self, NoCgroups> {
        if choice == SupervisorChoice::Plain {
            return Ok(Self::plain("as asked for"));
        }
        match Cgroups::detect() {
            Ok(groups) => {
                groups.sweep_empty();
                Ok(Self {
                    detail: groups.describe(),
                    supervisor: Supervisor::Cgroup(groups),
                })
            }
            Err(error) if choice == SupervisorChoice::Auto => {
                Ok(Self::plain(&vec_daemon::chain(&error).to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// The supervisor `plain`, for `reason`.
    #[must_use]
    pub fn plain(reason: &str) -> Self {
        Self {
            supervisor: Supervisor::Plain,
            detail: reason.to_owned(),
        }
    }

    /// In one line.
    #[must_use]
    pub fn words(&self) -> String {
        let limits = match self.supervisor {
            Supervisor::Plain => "memory limits by looking twice a second",
            Supervisor::Cgroup(_) => "limits by the kernel",
        };
        format!("{}, {limits} ({})", self.supervisor.as_str(), self.detail)
    }

    /// Its name in the lock.
    #[must_use]
    pub const fn locked(&self) -> LockedSupervisor {
        match self.supervisor {
            Supervisor::Plain => LockedSupervisor::Plain,
            Supervisor::Cgroup(_) => LockedSupervisor::Cgroup,
        }
    }
}
