//! The smaller records of a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vec_types::{Digest, RelPath, RunId, TreeId};

/// BUILD.json, written by `cargo xtask dist` beside the binaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRecord {
    /// Git commit that was built.
    pub commit: String,
    /// The working tree differed from the commit.
    pub dirty: bool,
    /// Git tree id of the sources as built, without `tests/data`.
    pub source_tree: TreeId,
    /// `rustc --version`.
    pub rustc: String,
    /// sha256 per binary below `bin/`.
    pub binaries: BTreeMap<String, Digest>,
    /// The sandbox helper.
    pub sandbox: SandboxBuild,
}

/// The sandbox helper in BUILD.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxBuild {
    /// Path below the prefix: `sandbox/<first 16 hex digits>/vec-sandbox`.
    pub path: RelPath,
    /// Its sha256.
    pub sha256: Digest,
}

/// `code/` of a run (O-LCK-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeSnapshot {
    /// Git tree id of `code/`; `resume` checks it first (LCK-06).
    pub tree: TreeId,
    /// sha256 per binary below `code/bin/`.
    pub binaries: BTreeMap<String, Digest>,
    /// sha256 of `code/source.tar`.
    pub source_sha256: Digest,
    /// Board definition, below `code/`.
    pub board: RelPath,
    /// Seed programs of the board, below `code/`.
    pub seeds: RelPath,
    /// Playbook per endpoint, below `code/`.
    pub playbooks: BTreeMap<String, RelPath>,
}

/// One file of `inputs/` or `views/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedInput {
    /// Below the run directory.
    pub path: RelPath,
    /// Content.
    pub sha256: Digest,
    /// Bytes.
    pub size: u64,
    /// Hard-linked or cloned from its source instead of copied.
    pub linked: bool,
}

/// The sandbox of this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRecord {
    /// The installed helper.
    pub path: PathBuf,
    /// Its sha256.
    pub sha256: Digest,
    /// What preflight saw it isolate on this machine.
    pub isolation: BTreeSet<IsolationLevel>,
}

/// One thing that a sandbox takes away from a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// Own user namespace.
    User,
    /// Own mount namespace with a private read-only root.
    Mount,
    /// Own process namespace.
    Pid,
    /// No network.
    Net,
    /// Own System V IPC and message queues.
    Ipc,
    /// Own host name.
    Uts,
    /// `no_new_privs` and no capabilities.
    NoPrivileges,
    /// System call filter.
    Seccomp,
    /// Resource limits.
    Rlimits,
}

impl IsolationLevel {
    /// Every level that a submittable run has.
    pub const ALL: [Self; 9] = [
        Self::User,
        Self::Mount,
        Self::Pid,
        Self::Net,
        Self::Ipc,
        Self::Uts,
        Self::NoPrivileges,
        Self::Seccomp,
        Self::Rlimits,
    ];

    /// The level of a word, as locks and the sandbox's probe write it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }

    /// The word in locks and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Mount => "mount",
            Self::Pid => "pid",
            Self::Net => "net",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::NoPrivileges => "no_privileges",
            Self::Seccomp => "seccomp",
            Self::Rlimits => "rlimits",
        }
    }
}

/// Who owns process trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Supervisor {
    /// setsid processes with pidfiles; no cgroup limits.
    Plain,
    /// A delegated cgroup subtree.
    Cgroup,
    /// Transient scopes.
    Systemd,
}

/// Who admits memory and GPU slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// A semaphore in the controller.
    Semaphore,
}

/// What keeps truth from other processes of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthIsolation {
    /// Directory modes and the sandbox; uids are shared.
    Convention,
    /// The scorer has its own user.
    User,
}

/// Numbers of the scorer's self-test; scores of prediction sets whose rank is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTest {
    /// The truth itself.
    pub perfect: f64,
    /// The floor prediction.
    pub baseline: f64,
    /// Truth in another order.
    pub shuffled: f64,
    /// One far constant.
    pub constant: f64,
    /// Absolute difference of one prediction scored twice; 0.
    pub pair_difference: f64,
}

/// A reason against submission (LCK-04, `decisions.md`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reason {
    /// Built from a working tree that differs from its commit.
    DirtyTree,
    /// A role or the Engineer is scripted.
    ScriptedPlaybook {
        /// Names of the scripted endpoints.
        endpoints: Vec<String>,
    },
    /// A model is reached on the loopback interface.
    LoopbackModel {
        /// Names of the endpoints.
        endpoints: Vec<String>,
    },
    /// Process trees have no limits.
    PlainSupervisor,
    /// The sandbox lacks something on this machine.
    MissingIsolation {
        /// What it lacks.
        levels: Vec<IsolationLevel>,
    },
    /// An ancestor's evidence is tainted.
    TaintedAncestor {
        /// The ancestors.
        runs: Vec<RunId>,
    },
    /// Faults are injected.
    FaultInjection,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirtyTree => f.write_str("built from a dirty working tree"),
            Self::ScriptedPlaybook { endpoints } => {
                write!(
                    f,
                    "scripted playbook instead of a model: {}",
                    endpoints.join(", ")
                )
            }
            Self::LoopbackModel { endpoints } => {
                write!(f, "model endpoint on loopback: {}", endpoints.join(", "))
            }
            Self::PlainSupervisor => f.write_str("supervisor `plain` sets no limits"),
            Self::MissingIsolation { levels } => {
                let words: Vec<&str> = levels.iter().map(|level| level.as_str()).collect();
                write!(f, "sandbox isolation missing: {}", words.join(", "))
            }
            Self::TaintedAncestor { runs } => {
                let words: Vec<&str> = runs.iter().map(RunId::as_str).collect();
                write!(f, "tainted ancestor: {}", words.join(", "))
            }
            Self::FaultInjection => f.write_str("fault injection is on"),
        }
    }
}
