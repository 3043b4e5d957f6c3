//! Runs foreign programs where they cannot get out, outlive their deadline, or see the host.
//!
//! A [`SandboxPlan`] is a pure value; the small single-threaded program `vec-sandbox` applies it with
//! namespaces, a private root, dropped rights and a system-call filter, and answers with a
//! [`SandboxReport`]; [`Runner`] is the daemon's side of that; [`collect`] takes results out of the
//! work directory afterwards. There is no unsandboxed fall-back.

pub mod collect;
mod confine;
mod control;
mod handover;
pub mod helper;
mod host;
mod plan;
mod probe;
mod report;
mod runner;
mod seccomp;
mod sys;

pub use confine::{Caps, ConfineError, confine};
pub use control::RunControl;
pub use host::HostLayout;
#[cfg(feature = "lifted")]
pub use plan::Lift;
pub use plan::{
    EngineerInputs, ExecInputs, INIT_ID, INSIDE_ID, LISTENERS_MAX, Limits, OuterIds, OutputCaps,
    PLAN_SCHEMA, PlanError, Profile, PythonBinds, RoBind, SANDBOX_GID, SANDBOX_UID, SandboxPlan,
    SymlinkEntry, TextFile, TimeLimits, TmpfsSize, ViewBind, WorkDir, WorkKind, WorkerInputs,
    candidate_env,
};
pub use probe::{Isolation, PROBE_SCHEMA, ProbeCheck, ProbeReport, StartedBy, probe};
pub use report::{EndedBy, PayloadExit, REPORT_SCHEMA, SandboxReport, SetupError, SetupStep};
pub use runner::{
    Captured, LINE_BYTES_MAX, Line, RunOptions, Runner, SandboxError, SandboxRun, Started,
};
#[cfg(feature = "lifted")]
pub use seccomp::filter_bytes;
