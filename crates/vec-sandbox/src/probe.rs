//! The self-test: does the whole sandbox work on this host, as this user, and what does it isolate?
//! Owns the JSON that `vec-sandbox --probe` prints and the call that reads it (preflight, lock).
//!
//! Invariants: `ok` only when a payload went through the complete set-up and every check made
//! from inside it passed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::report::SetupError;
use crate::runner::SandboxError;

/// Version of the probe's JSON.
pub const PROBE_SCHEMA: u32 = 2;
/// The probe's own deadlines end it long before.
const PROBE_MAX: Duration = Duration::from_secs(60);

/// Who started the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartedBy {
    /// Somebody who may map a separate user id.
    Root,
    /// An ordinary user: the payload runs under that user's own id.
    User,
}

/// One fact looked at from inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCheck {
    /// What was tried.
    pub name: String,
    /// It was as it should be.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
}

/// What the sandbox isolates here, for the lock. Things it does not isolate are named too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// One word for people: `namespaces`.
    pub level: String,
    /// Who started the helper.
    pub started_by: StartedBy,
    /// Host user id of payloads.
    pub outer_uid: u32,
    /// Host group id of payloads.
    pub outer_gid: u32,
    /// Own namespaces.
    pub namespaces: Vec<String>,
    /// Ids mapped into a sandbox: `two` (init has its own) or `one` (started by an ordinary user).
    pub ids: String,
    /// Kind of system-call filter per profile.
    pub seccomp: String,
    /// Options of the private `/proc`.
    pub proc_options: String,
    /// Bound on memory: `rlimit_per_process` (no bound on the sum).
    pub memory_bound: String,
    /// Bound on the work directory: `memory_file_system` (bytes and files).
    pub work_bound: String,
    /// What this host lacks, each with what follows from it.
    pub missing: Vec<String>,
    /// Supplementary groups that a payload keeps (an ordinary user cannot drop them).
    pub kept_groups: u32,
}

/// The probe's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// [`PROBE_SCHEMA`].
    pub schema: u32,
    /// Everything works.
    pub ok: bool,
    /// Which step was refused, why, and what to do.
    pub error: Option<SetupError>,
    /// Looked at from inside; empty when nothing ran.
    pub checks: Vec<ProbeCheck>,
    /// What is isolated.
    pub isolation: Isolation,
}

impl ProbeReport {
    /// One line for people: the refusal with its advice, or the failed checks; `None` when fine.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.ok {
            return None;
        }
        if let Some(error) = &self.error {
            return Some(error.to_string());
        }
        let failed = self.checks.iter().filter(|check| !check.ok);
        let named: Vec<String> = failed
            .map(|c| format!("{} ({})", c.name, c.detail))
            .collect();
        Some(format!("sandbox: self-test failed: {}", named.join(", ")))
    }
}

/// Runs `helper --probe`.
///
/// # Errors
/// The helper cannot be started, does not end in a minute, or prints something else. A host that
/// refuses the sandbox is no error: see [`ProbeReport::problem`].
pub async fn probe(helper: &Path) -> Result<ProbeReport, SandboxError> {
    let output = tokio::process::Command::new(helper)
        .arg("--probe")
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let spawn_failed = |source| SandboxError::Spawn {
        helper: helper.to_owned(),
        source,
    };
    let output = tokio::time::timeout(PROBE_MAX, output)
        .await
        .map_err(|_| spawn_failed(std::io::ErrorKind::TimedOut.into()))?
        .map_err(spawn_failed)?;
    serde_json::from_slice(&output.stdout).map_err(|source| SandboxError::BadReport {
        status: output.status.to_string(),
        source,
    })
}
