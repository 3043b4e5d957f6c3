//! The pure description of one sandboxed execution: what the payload sees, may use, and for how
//! long. Owns the JSON that the helper reads; `build.rs` makes plans, `check.rs` refuses bad ones.
//!
//! Invariants: no I/O here. A plan says everything; the helper decides nothing except what the
//! host forces on it (one mapped id, own or [`SANDBOX_UID`]). Only the daemon writes a plan, no
//! field is ever derived from data that a model or a candidate wrote.

mod build;
mod check;
mod lift;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use build::{EngineerInputs, ExecInputs, PythonBinds, ViewBind, WorkerInputs, candidate_env};
pub use check::{LISTENERS_MAX, PlanError};
#[cfg(feature = "lifted")]
pub use lift::Lift;
#[cfg(not(feature = "lifted"))]
pub(crate) use lift::Lift;

/// Version of the plan's JSON.
pub const PLAN_SCHEMA: u32 = 2;
/// Host user id that a payload has when the helper was started by root.
pub const SANDBOX_UID: u32 = 64_100;
/// Host group id that a payload has when the helper was started by root.
pub const SANDBOX_GID: u32 = 64_100;
/// User and group id that the payload sees for itself.
pub const INSIDE_ID: u32 = 1000;
/// User and group id of the sandbox's init inside, where two ids can be mapped; on the host it is
/// the payload's plus one.
pub const INIT_ID: u32 = 999;

/// Which kind of program runs: it decides the layout and, later, the system-call filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A candidate execution: view and solution in, one output directory out.
    Exec,
    /// An Engineer session: a work directory and client sockets; may use a pseudo terminal.
    Engineer,
    /// One of our own programs over untrusted bytes: no interpreter, no sockets.
    Worker,
}

/// One host directory or regular file shown read-only (recursively, nosuid, nodev).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoBind {
    /// Absolute host path without symbolic links.
    pub source: PathBuf,
    /// Absolute path inside.
    pub dest: PathBuf,
}

/// The one writable directory beside `/tmp` and `/dev/shm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkDir {
    /// Absolute path inside.
    pub dest: PathBuf,
    /// What it is made of.
    pub kind: WorkKind,
}

/// What a work directory is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkKind {
    /// A host directory. `limits.file_bytes` bounds each file, nothing bounds their sum.
    Host {
        /// Absolute host path without symbolic links.
        source: PathBuf,
    },
    /// A memory file system of its own, whose pages count against the memory of the execution.
    /// Results are taken by descriptor ([`crate::SandboxRun::work`]).
    Memory {
        /// Its bounds.
        size: TmpfsSize,
        /// A host directory whose directories and regular files are copied in before the start.
        fill: Option<PathBuf>,
    },
}

impl WorkKind {
    /// The host directory behind it, if there is one.
    #[must_use]
    pub fn source(&self) -> Option<&PathBuf> {
        match self {
            Self::Host { source } => Some(source),
            Self::Memory { fill, .. } => fill.as_ref(),
        }
    }

    fn source_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Host { source } => Some(source),
            Self::Memory { fill, .. } => fill.as_mut(),
        }
    }
}

/// Bounds of one memory file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TmpfsSize {
    /// Bytes, 4 KiB to 64 GiB.
    pub bytes: u64,
    /// Files and directories, 16 to 4 million (empty files cost kernel memory too).
    pub inodes: u64,
}

/// A symbolic link made in the private root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SymlinkEntry {
    /// Absolute path of the link inside.
    pub path: PathBuf,
    /// What it holds.
    pub target: PathBuf,
}

/// A small file made in the private root (0644, read-only for the payload).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// Absolute path inside.
    pub path: PathBuf,
    /// Its whole content.
    pub text: String,
}

/// Resource limits of each process of the payload (`processes`: of the whole sandbox).
/// A host hard limit that is lower wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// RLIMIT_AS in bytes; absent = none (CUDA maps far more than it uses).
    pub address_space_bytes: Option<u64>,
    /// RLIMIT_DATA in bytes: private writable memory; absent = none.
    pub data_bytes: Option<u64>,
    /// RLIMIT_NPROC: threads of the whole sandbox including its init, 4 to 32768.
    pub processes: u64,
    /// RLIMIT_NOFILE, 16 to 1,048,576.
    pub open_files: u64,
    /// RLIMIT_FSIZE in bytes: largest file.
    pub file_bytes: u64,
    /// RLIMIT_CPU in seconds per process; absent = none.
    pub cpu_s: Option<u64>,
}

impl Limits {
    /// Limits of one candidate execution or Engineer session.
    ///
    /// `memory_bytes` bounds the private writable memory of each process. The address space gets
    /// twice that and 2 GiB for code and file mappings, so that shared anonymous memory, which
    /// RLIMIT_DATA does not count, is bounded too.
    #[must_use]
    pub fn of_memory(memory_bytes: u64, output_max_bytes: u64, threads: u32) -> Self {
        Self {
            address_space_bytes: Some(memory_bytes.saturating_mul(2).saturating_add(2 << 30)),
            data_bytes: Some(memory_bytes),
            processes: 64 + 8 * u64::from(threads),
            open_files: 1024,
            file_bytes: output_max_bytes,
            cpu_s: None,
        }
    }
}

/// Time bounds, counted by the supervisor from the payload's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeLimits {
    /// TERM is sent to the payload's process group this many milliseconds after the start; 1 to 7
    /// days. Processes that left the group (setsid, setpgid) get none.
    pub deadline_ms: u64,
    /// KILL of everything follows this many milliseconds after TERM, unless the whole group has ended
    /// before; 0 to 5 minutes.
    pub grace_ms: u64,
}

/// What is kept of stdout and stderr, each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputCaps {
    /// Bytes of stdout kept; the rest is counted and dropped.
    pub stdout_bytes: u64,
    /// Bytes of stderr kept; the rest is counted and dropped.
    pub stderr_bytes: u64,
    /// A stream that passes this many bytes ends the sandbox at once.
    pub kill_bytes: u64,
}

impl OutputCaps {
    /// 1 MiB kept of each stream, killed at 64 MiB.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            stdout_bytes: 1 << 20,
            stderr_bytes: 1 << 20,
            kill_bytes: 64 << 20,
        }
    }
}

/// The ids on the host that a payload gets when the helper was started by root. Started by an
/// ordinary user, the kernel allows only that user's own ids, and this field is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OuterIds {
    /// Host user id, 1000 or more.
    pub uid: u32,
    /// Host group id, 1000 or more.
    pub gid: u32,
}

/// Everything about one sandboxed execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPlan {
    /// [`PLAN_SCHEMA`].
    pub schema: u32,
    /// Kind of payload.
    pub profile: Profile,
    /// Host name inside.
    pub hostname: String,
    /// Ids on the host when started by root.
    pub outer: OuterIds,
    /// Read-only host trees and files.
    pub ro_binds: Vec<RoBind>,
    /// The one writable directory.
    pub work: WorkDir,
    /// Loopback TCP ports, at most [`LISTENERS_MAX`], that init opens before the payload starts;
    /// their descriptors are handed out ([`crate::Started`]).
    pub listeners: Vec<u16>,
    /// `/tmp`.
    pub tmp: TmpfsSize,
    /// `/dev/shm`.
    pub shm: TmpfsSize,
    /// Links in the private root.
    pub symlinks: Vec<SymlinkEntry>,
    /// Generated files in the private root.
    pub files: Vec<TextFile>,
    /// Program (absolute path inside) and arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Working directory inside.
    pub cwd: PathBuf,
    /// Resource limits.
    pub limits: Limits,
    /// Deadline and grace.
    pub time: TimeLimits,
    /// Caps of the captured output.
    pub output: OutputCaps,
    /// Protections that are left out, for positive controls of attacks. The product's build has
    /// no such field.
    #[cfg(feature = "lifted")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lift: Vec<Lift>,
}

impl SandboxPlan {
    /// Is this protection left out? Never in the product's build.
    #[cfg(feature = "lifted")]
    pub(crate) fn lifts(&self, lift: Lift) -> bool {
        self.lift.contains(&lift)
    }

    /// Is this protection left out? Never in the product's build.
    #[cfg(not(feature = "lifted"))]
    pub(crate) const fn lifts(&self, _: Lift) -> bool {
        false
    }

    /// Replaces the directory part of every source by its canonical path. The last component
    /// stays as it is, so a source that is itself a symbolic link is still refused by the helper.
    ///
    /// Call it once when the plan is built, before any untrusted process could write to a parent
    /// directory (a home behind a link is legitimate; a link planted in a work directory is not).
    ///
    /// # Errors
    /// [`PlanError::Resolve`] when a parent directory does not exist or cannot be read.
    pub fn resolve_sources(&mut self) -> Result<(), PlanError> {
        let sources = self.ro_binds.iter_mut().map(|bind| &mut bind.source);
        for source in sources.chain(self.work.kind.source_mut()) {
            let (Some(parent), Some(name)) = (source.parent(), source.file_name()) else {
                continue;
            };
            let resolved = parent.canonicalize().map_err(|error| PlanError::Resolve {
                path: source.clone(),
                source: error,
            })?;
            *source = resolved.join(name);
        }
        Ok(())
    }
}
