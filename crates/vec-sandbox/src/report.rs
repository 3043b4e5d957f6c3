//! What the helper says about one execution, and what it says when the set-up was refused.
//!
//! Invariants: the verdict "timed out" comes from the supervisor's own clock only, never from a
//! code or signal that the payload can imitate (EXE). Figures of processes that were killed
//! together with the sandbox, or whose parent ignored SIGCHLD, are missing from `user_ms` and
//! `sys_ms`: exact accounting needs a cgroup.

use serde::{Deserialize, Serialize};

/// Version of the report's JSON.
pub const REPORT_SCHEMA: u32 = 2;

/// How the payload's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadExit {
    /// It called exit.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It ended with the whole sandbox, or could not be ended; no status of its own is known.
    Unknown,
    /// It never started: see the report's `setup_error`.
    NotStarted,
}

/// Who ended the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The payload by itself (or the kernel, for example for want of memory).
    Payload,
    /// The supervisor's deadline.
    Deadline,
    /// A terminate command.
    Terminate,
    /// A kill command (output limit).
    Kill,
    /// The control pipe closed: whoever started the helper is gone.
    ControlLost,
    /// The set-up failed.
    Setup,
}

/// Which part of the set-up was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupStep {
    /// Reading or checking the plan.
    Plan,
    /// Opening a source or finding it changed.
    Source,
    /// Giving the work directory to the sandbox's user.
    WorkOwner,
    /// Creating the namespaces.
    Namespaces,
    /// Writing the id maps.
    IdMap,
    /// Entering the control groups.
    Group,
    /// Taking the mapped ids.
    Ids,
    /// Host name.
    Hostname,
    /// The loopback interface.
    Loopback,
    /// The private root.
    Root,
    /// A bind mount.
    Bind,
    /// The private `/dev`.
    Devices,
    /// The private `/proc`.
    Proc,
    /// The ceilings under `/proc/sys/user`.
    Ceilings,
    /// Entering the private root.
    Pivot,
    /// Opening a loopback listener.
    Listener,
    /// Copying into the work directory.
    Fill,
    /// A directory that the payload's user cannot read (or write, for the work directory).
    Access,
    /// Dropping capabilities.
    Capabilities,
    /// The system-call filter.
    Seccomp,
    /// Resource limits.
    Limits,
    /// Starting the payload's process.
    Fork,
    /// Executing the program.
    Exec,
    /// The sandbox's init ended or fell silent without a word.
    Init,
}

/// A refused set-up: never followed by an unsandboxed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupError {
    /// What was refused.
    pub step: SetupStep,
    /// The kernel's error number, where there is one.
    pub errno: Option<i32>,
    /// One line for people: what failed, on which object, why.
    pub message: String,
    /// What to do about it; empty where the message says all.
    pub advice: String,
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if self.advice.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.advice)
    }
}

/// What the helper says when the payload starts, with descriptors: the memory work directory if
/// there is one, then the listeners in the plan's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handed {
    /// Pid of the sandbox's init on the host.
    pub(crate) init: i32,
}

/// The helper's account of one execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// How the main process ended.
    pub exit: PayloadExit,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// The deadline passed on the supervisor's clock while the payload still ran.
    pub timed_out: bool,
    /// The supervisor ended the tree by SIGKILL.
    pub killed_tree: bool,
    /// Every process of the sandbox is gone. False: something hangs in the kernel
    /// (uninterruptible); the work directory must not be reused or collected.
    pub tree_gone: bool,
    /// From the payload's start to its end, milliseconds.
    pub wall_ms: u64,
    /// User CPU time of init and everything reaped, milliseconds.
    pub user_ms: u64,
    /// System CPU time, milliseconds.
    pub sys_ms: u64,
    /// Largest resident set of a single process, KiB.
    pub max_rss_kib: u64,
    /// Ids mapped into the sandbox: 2 where init has its own (started by root), else 1; 0 when it
    /// never came so far.
    pub ids: u32,
    /// Time from reading the plan to the payload's start, milliseconds.
    pub setup_ms: u64,
    /// Present when the payload never started.
    pub setup_error: Option<SetupError>,
}

impl SandboxReport {
    /// True when the payload ended with exit code 0 by itself, in time, and nothing is left.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.exit == PayloadExit::Code(0)
            && self.ended_by == EndedBy::Payload
            && self.tree_gone
            && self.setup_error.is_none()
    }

    /// SIGKILL that was not ours: most likely the kernel ran out of memory.
    #[must_use]
    pub fn killed_by_other(&self) -> bool {
        self.exit == PayloadExit::Signal(9) && !self.killed_tree
    }
}
