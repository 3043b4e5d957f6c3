//! Which supervisor this machine can have.
//!
//! Invariants: what is missing is named, never silently weaker.

use crate::Supervisor;

/// A delegated control-group subtree. **No value exists yet**: the cgroup supervisor is not
/// written, and the type keeps anybody from claiming otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupTree {
    pub(crate) never: std::convert::Infallible,
}

/// What [`Supervisor::detect`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// The strongest supervisor that works here.
    pub supervisor: Supervisor,
    /// What it does, for people.
    pub words: String,
    /// What it lacks.
    pub missing: Vec<String>,
}

impl Supervisor {
    /// The strongest supervisor of this machine. Today always `plain`.
    #[must_use]
    pub fn detect() -> Detection {
        let missing = [
            "control groups: not implemented in this build",
            "memory limit of a tree: sampled every 500 ms, not enforced by the kernel",
            "limit on the processes of a tree: only the sandbox's rlimit",
            "exact figures: sampled lower bounds",
            "orphans of a killed controller are not found",
        ];
        Detection {
            supervisor: Self::Plain,
            words: "plain: sampling of /proc".to_owned(),
            missing: missing.map(str::to_owned).to_vec(),
        }
    }
}
