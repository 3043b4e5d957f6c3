//! The helper program: reads a plan, builds the sandbox, supervises it, reports.
//!
//! Invariants: one thread from start to end (namespaces of user type, and a child that is a copy
//! of its parent, allow nothing else). It holds no secret: it starts with an empty environment and
//! three descriptors only: 1 and 2 are the payload's, 0 is the socket for what is handed out and the
//! report. On it the first message brings the rest: plan, control pipe, and the control groups to enter
//! (`run N` says how many). So a daemon of many threads and much memory need not fork to start it.

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
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

use crate::plan::{Lift, SandboxPlan};
use crate::report::{SandboxReport, SetupError, SetupStep};
use crate::{handover, sys};

/// Longest accepted plan.
const PLAN_BYTES_MAX: u64 = 4 << 20;
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
            Ok(count @ 0..=handover::GROUPS_MAX) => run(count),
            _ => usage(),
        },
        ["--probe"] => self_test::probe(),
        [inside::FLAG, profile] => inside::check(profile),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    write_stderr(
        "usage: vec-sandbox run [GROUPS] (stdin: a socket that brings plan, control pipe and control groups) | --probe\n",
    );
    ExitCode::from(EXIT_USAGE)
}

fn run(groups: usize) -> ExitCode {
    let Ok(Taken {
        plan,
        control,
        report,
        groups,
    }) = take_descriptors(groups)
    else {
        write_stderr(
            "vec-sandbox: stdin must bring plan, control pipe and as many groups as said\n",
        );
        return ExitCode::from(EXIT_USAGE);
    };
    let held: Vec<_> = groups.iter().chain([&control, &report]).collect();
    let report_of = match read_plan(plan).and_then(|plan| close_foreign(plan, &held)) {
        Ok(plan) => supervise::supervise(&plan, Some((control, &report)), &groups),
        Err(refusal) => supervise::refused(refusal),
    };
    match write_report(report, &report_of) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader is gone; the sandbox is too.
        Err(_) => ExitCode::from(EXIT_BROKEN),
    }
}

/// What the daemon gives.
struct Taken {
    plan: File,
    control: OwnedFd,
    report: OwnedFd,
    groups: Vec<OwnedFd>,
}

/// Takes the socket off stdin, where `/dev/null` comes instead, and what its first message brings.
fn take_descriptors(groups: usize) -> Result<Taken, Errno> {
    let report = sys::take_fd(fcntl(std::io::stdin(), FcntlArg::F_DUPFD_CLOEXEC(3))?)?;
    confine::null_stdio(true).map_err(|_| Errno::ENODEV)?;
    let mut brought = Vec::new();
    handover::receive(report.as_fd(), &mut [0], &mut brought)?;
    // The kernel cuts a message silently: a group that is not entered bounds nothing.
    if brought.len() != 2 + groups {
        return Err(Errno::EBADF);
    }
    let mut brought = brought.into_iter();
    let mut next = || brought.next().ok_or(Errno::EBADF);
    Ok(Taken {
        plan: File::from(next()?),
        control: next()?,
        report,
        groups: brought.collect(),
    })
}

/// Whatever a careless parent left open must not reach init, let alone the payload.
fn close_foreign(plan: SandboxPlan, held: &[&OwnedFd]) -> Result<SandboxPlan, Refusal> {
    if plan.lifts(Lift::CloseFds) {
        return Ok(plan);
    }
    let mut numbers: Vec<u32> = held
        .iter()
        .map(|fd| fd.as_raw_fd().unsigned_abs())
        .collect();
    numbers.sort_unstable();
    let mut first = 3;
    for number in numbers {
        sys::close_range(first, number)
            .or_refuse(SetupStep::Plan, || "cannot close descriptors".to_owned())?;
        first = number + 1;
    }
    sys::close_from(first, false)
        .or_refuse(SetupStep::Plan, || "cannot close descriptors".to_owned())?;
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
