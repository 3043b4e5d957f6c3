//! `--probe`: this very program as payload of a complete sandbox of each profile, looking around from
//! inside.
//!
//! Invariants: prints exactly one JSON document; leaves no file behind.

mod plans;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use nix::fcntl::OFlag;
use nix::unistd::{dup, dup2_stderr, dup2_stdout, getgroups, pipe2};

use super::start::Start;
use super::{OrRefuse, Refusal, inside, supervise};
use crate::plan::{OuterIds, SANDBOX_GID, SANDBOX_UID, SandboxPlan};
use crate::probe::{Isolation, PROBE_SCHEMA, ProbeCheck, ProbeReport, StartedBy};
use crate::report::{PayloadExit, SandboxReport, SetupStep};

const CHECKS_BYTES_MAX: u64 = 64 << 10;
/// The option that leaves the host's facts out of `/proc`.
const SUBSET: &str = "subset=pid";

/// Exit code 0 when everything works.
pub(crate) fn probe() -> ExitCode {
    let isolation = isolation();
    let (stdout, report) = match attempt() {
        Ok((stdout, run, checks)) => (Some(stdout), judge(&run, checks, isolation)),
        Err(refusal) => (None, broken(refusal, isolation)),
    };
    let Ok(mut text) = serde_json::to_vec_pretty(&report) else {
        return ExitCode::FAILURE;
    };
    text.push(b'\n');
    let written = match stdout {
        Some(mut stdout) => stdout.write_all(&text),
        None => std::io::stdout().write_all(&text),
    };
    if report.ok && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn judge(run: &SandboxReport, checks: Vec<ProbeCheck>, mut isolation: Isolation) -> ProbeReport {
    let options = checks
        .iter()
        .find(|check| check.name == inside::PROC_OPTIONS);
    if let Some(options) = options {
        isolation.proc_options.clone_from(&options.detail);
        if !options.detail.contains(SUBSET) {
            isolation.missing.push(format!(
                "{SUBSET} of /proc (Linux 5.8 or newer): facts of the host in it are covered one by one instead; a fact that a driver adds later would show"
            ));
        }
    }
    let passed = run.succeeded() && !checks.is_empty() && checks.iter().all(|check| check.ok);
    let error = run.setup_error.clone().or_else(|| {
        let silent = !passed && checks.iter().all(|check| check.ok);
        silent.then(|| {
            let what = format!(
                "the self-test ended with {:?}, {:?}",
                run.exit, run.ended_by
            );
            Refusal::plain(SetupStep::Exec, what).explain()
        })
    });
    ProbeReport {
        schema: PROBE_SCHEMA,
        ok: passed,
        error,
        checks,
        isolation,
    }
}

fn broken(refusal: Refusal, isolation: Isolation) -> ProbeReport {
    ProbeReport {
        schema: PROBE_SCHEMA,
        ok: false,
        error: Some(refusal.explain()),
        checks: Vec::new(),
        isolation,
    }
}

/// Runs the payload under each profile; gives the real stdout, the first report that is no success (or
/// the last), and what the payloads saw.
fn attempt() -> Result<(File, SandboxReport, Vec<ProbeCheck>), Refusal> {
    let step = SetupStep::Plan;
    let stdout = dup(std::io::stdout().as_fd())
        .or_refuse(step, || "cannot keep the self-test's output".to_owned())?;
    let (mut run, mut checks) = attempt_one(&plans::exec()?)?;
    for (name, plan) in [
        ("engineer", plans::engineer()?),
        ("worker", plans::worker()?),
    ] {
        if !run.succeeded() {
            break;
        }
        let (next, seen) = attempt_one(&plan)?;
        run = next;
        if let Some(error) = &mut run.setup_error {
            error.message = format!("profile {name}: {}", error.message);
        }
        if seen.is_empty() {
            run.exit = PayloadExit::Unknown;
        }
        checks.extend(seen.into_iter().map(|check| ProbeCheck {
            name: format!("{name}: {}", check.name),
            ..check
        }));
    }
    Ok((File::from(stdout), run, checks))
}

fn attempt_one(plan: &SandboxPlan) -> Result<(SandboxReport, Vec<ProbeCheck>), Refusal> {
    let step = SetupStep::Plan;
    let pipe_failed = || "cannot make the self-test's pipes".to_owned();
    let (output, payload) = pipe2(OFlag::O_CLOEXEC).or_refuse(step, pipe_failed)?;
    dup2_stdout(payload.as_fd()).or_refuse(step, pipe_failed)?;
    dup2_stderr(payload.as_fd()).or_refuse(step, pipe_failed)?;
    drop(payload);
    let run = supervise::supervise(plan, None, &[]);
    let mut checks = Vec::new();
    // While something of the sandbox hangs, the pipe would not end.
    if run.tree_gone && run.setup_error.is_none() {
        let mut text = Vec::new();
        File::from(output)
            .take(CHECKS_BYTES_MAX)
            .read_to_end(&mut text)
            .or_refuse(step, || "cannot read the self-test's output".to_owned())?;
        checks = serde_json::from_slice(&text).unwrap_or_default();
    }
    Ok((run, checks))
}

fn isolation() -> Isolation {
    let start = Start::detect(OuterIds {
        uid: SANDBOX_UID,
        gid: SANDBOX_GID,
    });
    let ids = start.outer();
    let own_groups = getgroups().unwrap_or_default();
    let kept = own_groups.iter().filter(|g| g.as_raw() != ids.gid).count();
    Isolation {
        level: "namespaces".to_owned(),
        started_by: if start.is_root() {
            StartedBy::Root
        } else {
            StartedBy::User
        },
        outer_uid: ids.uid,
        outer_gid: ids.gid,
        namespaces: ["user", "mount", "pid", "net", "ipc", "uts", "cgroup"]
            .map(str::to_owned)
            .to_vec(),
        ids: if start.is_root() { "two" } else { "one" }.to_owned(),
        seccomp: "exec allow_list, engineer deny_list, worker allow_list".to_owned(),
        proc_options: "unknown".to_owned(),
        memory_bound: "rlimit_per_process".to_owned(),
        work_bound: "memory_file_system".to_owned(),
        missing: missing(start),
        kept_groups: if start.is_root() {
            0
        } else {
            u32::try_from(kept).unwrap_or(u32::MAX)
        },
    }
}

/// What this host cannot do for us, in words for the lock.
fn missing(start: Start) -> Vec<String> {
    let mut missing = Vec::new();
    if !start.is_root() {
        missing.push(
            "a second id: a payload may disturb its own sandbox's init, never another's".to_owned(),
        );
    }
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') {
        missing.push(format!(
            "a core_pattern without a program: the host's is {:?} (it is not called for cores of at most one byte)",
            pattern.trim()
        ));
    }
    missing
}
