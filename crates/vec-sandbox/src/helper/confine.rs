//! What the payload gives up before it starts: capabilities, new privileges, resources, descriptors.
//!
//! Invariants: order matters. Limits and descriptors last, in the payload's own process; the
//! filter before the fork, so that init is under it too.

use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, access, dup2_stderr, dup2_stdin, dup2_stdout};

use seccompiler::BpfProgram;

use super::{OrRefuse, Refusal};
use crate::plan::{Lift, SandboxPlan};
use crate::report::SetupStep;
use crate::{seccomp, sys};

/// No capability can come back through an exec, for this process and all that it will fork.
pub(crate) fn bound_rights(plan: &SandboxPlan) -> Result<(), Refusal> {
    if plan.lifts(Lift::Capabilities) {
        return Ok(());
    }
    sys::drop_bounding_set().or_refuse(SetupStep::Capabilities, || {
        "cannot drop the bounding set of capabilities".to_owned()
    })
}

/// All rights that could be used or regained; the bounding set is gone already. Init keeps the one to signal the payload's id.
pub(crate) fn drop_rights(plan: &SandboxPlan, keep: Option<u32>) -> Result<(), Refusal> {
    let step = SetupStep::Capabilities;
    let refused = || "cannot drop capabilities".to_owned();
    #[cfg(feature = "lifted")]
    if plan.lifts(Lift::Capabilities) {
        sys::keep_capabilities().or_refuse(step, refused)?;
    }
    if !plan.lifts(Lift::Capabilities) {
        sys::drop_capabilities(keep).or_refuse(step, refused)?;
    }
    if plan.lifts(Lift::NoNewPrivs) {
        return Ok(());
    }
    prctl::set_no_new_privs().or_refuse(step, || "cannot set no_new_privs".to_owned())
}

/// The payload's user must be able to use what the plan shows; said here, where the directory can
/// be named, instead of by an obscure failure of the program.
pub(crate) fn check_access(plan: &SandboxPlan) -> Result<(), Refusal> {
    let readable = AccessFlags::R_OK;
    let enterable = AccessFlags::R_OK | AccessFlags::X_OK;
    for bind in &plan.ro_binds {
        let mode = if bind.dest.is_dir() {
            enterable
        } else {
            readable
        };
        access(&bind.dest, mode).or_refuse(SetupStep::Access, || {
            format!("the sandbox's user cannot read {:?}", bind.source)
        })?;
    }
    let writable = enterable | AccessFlags::W_OK;
    access(&plan.work.dest, writable).or_refuse(SetupStep::Access, || {
        let shown = plan.work.kind.source().unwrap_or(&plan.work.dest);
        format!("the sandbox's user cannot write to {shown:?}")
    })?;
    let program = plan.argv.first().map(Path::new).unwrap_or(Path::new("/"));
    access(program, AccessFlags::X_OK).or_refuse(SetupStep::Exec, || {
        format!("the program {program:?} cannot be executed inside")
    })
}

/// The filters of the plan's profile, in the order in which they are to be installed.
pub(crate) fn filters(plan: &SandboxPlan) -> Result<Vec<BpfProgram>, Refusal> {
    if plan.lifts(Lift::Seccomp) {
        return Ok(Vec::new());
    }
    seccomp::filters(plan).map_err(|error| unfiltered(&error.to_string()))
}

/// Installs them.
pub(crate) fn install(filters: &[BpfProgram]) -> Result<(), Refusal> {
    for program in filters {
        seccompiler::apply_filter(program).map_err(|error| unfiltered(&error.to_string()))?;
    }
    Ok(())
}

fn unfiltered(why: &str) -> Refusal {
    Refusal::plain(SetupStep::Seccomp, format!("system-call filter: {why}"))
}

/// Resource limits of the calling process and what it will start.
pub(crate) fn limit(plan: &SandboxPlan) -> Result<(), Refusal> {
    let limits = &plan.limits;
    let all = [
        (
            "address_space_bytes",
            libc::RLIMIT_AS,
            limits.address_space_bytes,
        ),
        ("data_bytes", libc::RLIMIT_DATA, limits.data_bytes),
        ("processes", libc::RLIMIT_NPROC, Some(limits.processes)),
        ("open_files", libc::RLIMIT_NOFILE, Some(limits.open_files)),
        ("file_bytes", libc::RLIMIT_FSIZE, Some(limits.file_bytes)),
        ("cpu_s", libc::RLIMIT_CPU, limits.cpu_s),
        // 1, not 0: a piped core handler of the host ignores 0 but is not called at 1, and no
        // core file is that small.
        ("core", libc::RLIMIT_CORE, Some(1)),
        ("memlock", libc::RLIMIT_MEMLOCK, Some(64 << 10)),
        ("msgqueue", libc::RLIMIT_MSGQUEUE, Some(800 << 10)),
    ];
    for (name, resource, value) in all {
        let lift = match resource {
            libc::RLIMIT_NPROC => plan.lifts(Lift::Nproc),
            libc::RLIMIT_FSIZE => plan.lifts(Lift::FileSize),
            libc::RLIMIT_CORE => plan.lifts(Lift::Core),
            _ => false,
        };
        let Some(value) = value else { continue };
        let value = if lift { u64::MAX } else { value };
        sys::lower_limit(resource, value)
            .or_refuse(SetupStep::Limits, || format!("cannot set the limit {name}"))?;
    }
    Ok(())
}

/// `/dev/null` on stdin (and on stdout and stderr of a process that must not hold the pipes).
pub(crate) fn null_stdio(only_stdin: bool) -> Result<(), Refusal> {
    let step = SetupStep::Fork;
    let what = || "cannot open /dev/null".to_owned();
    let null =
        open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).or_refuse(step, what)?;
    dup2_stdin(null.as_fd()).or_refuse(step, what)?;
    if !only_stdin {
        dup2_stdout(null.as_fd()).or_refuse(step, what)?;
        dup2_stderr(null.as_fd()).or_refuse(step, what)?;
    }
    Ok(())
}
