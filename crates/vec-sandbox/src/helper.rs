//! The helper program: reads a plan, builds the sandbox, supervises it, reports.
//!
//! Invariants: one thread from start to end (namespaces of user type, and a child that is a copy
//! of its parent, allow nothing else). It holds no secret: it starts with an empty environment and
//! a few descriptors only: 1 and 2 are the payload's, 3 the plan, 4 control, 5 the socket for
//! what is handed out and the report, from 6 on the control groups to enter (`run N` says how many).

mod advice;
mod confine;
mod devices;
mod fill;
mod init;
mod inside;
mod launch;
mod mounts;
mod owner;
mod proc;
mod self_test;
mod setup;
mod sources;
mod start;
mod supervise;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use nix::errno::Errno;

use crate::plan::{Lift, SandboxPlan};
use crate::report::{SandboxReport, SetupError, SetupStep};
use crate::sys;

/// Longest accepted plan.
const PLAN_BYTES_MAX: u64 = 4 << 20;
/// First control group; after the last comes nobody's business.
const FIRST_GROUP_FD: i32 = 6;
/// Most control groups of one execution: memory, pids, cpu and io of both hierarchies.
const GROUPS_MAX: i32 = 8;
const EXIT_USAGE: u8 = 64;
const EXIT_BROKEN: u8 = 70;

/// A failed step of the set-up, before advice is added.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) step: SetupStep,
    pub(crate) errno: Option<Errno>,
    pub(crate) what: String,
}

impl Refusal {
    pub(crate) fn new(step: SetupStep, errno: Errno, what: impl Into<String>) -> Self {
        Self {
            step,
            errno: Some(errno),
            what: what.into(),
        }
    }

    pub(crate) fn plain(step: SetupStep, what: impl Into<String>) -> Self {
        Self {
            step,
            errno: None,
            what: what.into(),
        }
    }

    /// The line for people, without advice.
    pub(crate) fn bare(self) -> SetupError {
        let message = match self.errno {
            Some(errno) => format!("sandbox: {}: {}", self.what, errno.desc()),
            None => format!("sandbox: {}", self.what),
        };
        SetupError {
            step: self.step,
            errno: self.errno.map(|errno| errno as i32),
            message,
            advice: String::new(),
        }
    }

    /// The line for people, with what this host says about the cause.
    pub(crate) fn explain(self) -> SetupError {
        advice::advised(self.bare())
    }
}

/// Adds step and subject to a bare errno.
pub(crate) trait OrRefuse<T> {
    fn or_refuse(self, step: SetupStep, what: impl FnOnce() -> String) -> Result<T, Refusal>;
}

impl<T> OrRefuse<T> for Result<T, Errno> {
    fn or_refuse(self, step: SetupStep, what: impl FnOnce() -> String) -> Result<T, Refusal> {
        self.map_err(|errno| Refusal::new(step, errno, what()))
    }
}

impl<T> OrRefuse<T> for std::io::Result<T> {
    fn or_refuse(self, step: SetupStep, what: impl FnOnce() -> String) -> Result<T, Refusal> {
        self.map_err(|error| match error.raw_os_error() {
            Some(raw) => Refusal::new(step, Errno::from_raw(raw), what()),
            None => Refusal::plain(step, format!("{}: {error}", what())),
        })
    }
}

/// The helper's `main`.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().filter_map(|a| a.to_str()).collect();
    match arguments.as_slice() {
        ["run"] => run(0),
        ["run", groups] => match groups.parse() {
            Ok(count @ 0..=GROUPS_MAX) => run(count),
            _ => usage(),
        },
        ["--probe"] => self_test::probe(),
        [inside::FLAG, profile] => inside::check(profile),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    write_stderr(
        "usage: vec-sandbox run [GROUPS] (plan on fd 3, control 4, report socket 5, control groups from 6 on) | --probe\n",
    );
    ExitCode::from(EXIT_USAGE)
}

fn run(groups: i32) -> ExitCode {
    let Ok((plan, control, report, groups)) = take_descriptors(groups) else {
        write_stderr("vec-sandbox: descriptors 3 (plan), 4 (control), 5 (report) are needed\n");
        return ExitCode::from(EXIT_USAGE);
    };
    let report_of = match read_plan(File::from(plan)).and_then(|plan| close_foreign(plan, &groups))
    {
        Ok(plan) => supervise::supervise(&plan, Some((control, &report)), &groups),
        Err(refusal) => supervise::refused(refusal),
    };
    match write_report(report, &report_of) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader is gone; the sandbox is too.
        Err(_) => ExitCode::from(EXIT_BROKEN),
    }
}

type Taken = (OwnedFd, OwnedFd, OwnedFd, Vec<OwnedFd>);

fn take_descriptors(groups: i32) -> Result<Taken, Errno> {
    let (plan, control, report) = (sys::take_fd(3)?, sys::take_fd(4)?, sys::take_fd(5)?);
    let groups = (0..groups).map(|n| sys::take_fd(FIRST_GROUP_FD + n));
    Ok((plan, control, report, groups.collect::<Result<_, _>>()?))
}

/// Whatever a careless parent left open must not reach init, let alone the payload.
fn close_foreign(plan: SandboxPlan, groups: &[OwnedFd]) -> Result<SandboxPlan, Refusal> {
    if !plan.lifts(Lift::CloseFds) {
        let first = FIRST_GROUP_FD.unsigned_abs() + groups.len() as u32;
        sys::close_from(first, false)
            .or_refuse(SetupStep::Plan, || "cannot close descriptors".to_owned())?;
    }
    Ok(plan)
}

fn read_plan(file: File) -> Result<SandboxPlan, Refusal> {
    let mut text = Vec::new();
    file.take(PLAN_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .or_refuse(SetupStep::Plan, || "cannot read the plan".to_owned())?;
    if text.len() as u64 > PLAN_BYTES_MAX {
        let what = format!("the plan is longer than {PLAN_BYTES_MAX} bytes");
        return Err(Refusal::plain(SetupStep::Plan, what));
    }
    let plan: SandboxPlan = serde_json::from_slice(&text)
        .map_err(|e| Refusal::plain(SetupStep::Plan, format!("the plan is malformed: {e}")))?;
    plan.check()
        .map_err(|e| Refusal::plain(SetupStep::Plan, e.to_string()))?;
    Ok(plan)
}

fn write_report(fd: OwnedFd, report: &SandboxReport) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(report)?;
    bytes.push(b'\n');
    File::from(fd).write_all(&bytes)
}

fn write_stderr(line: &str) {
    // Nothing can be done when stderr is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
