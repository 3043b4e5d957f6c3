//! The sandbox's PID 1: starts the payload, reaps, passes TERM on, ends when the payload ends.
//!
//! Invariants: when it exits, the kernel kills every process of the pid namespace. TERM counts only
//! from outside (sender pid 0): the payload cannot end its siblings by signalling init. End of file
//! on `go` means that the helper is gone: everything is killed.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, chdir, execve, setsid};

use super::setup::{InitMessage, send};
use super::{OrRefuse, Refusal, confine};
use crate::plan::SandboxPlan;
use crate::report::SetupStep;
use crate::sys;

/// Runs the payload to its end.
pub(crate) fn supervise_payload(plan: &SandboxPlan, go: &File, status: &File) {
    if let Err(refusal) = start_and_wait(plan, go, status) {
        send(status, &InitMessage::Failed(refusal.bare()));
    }
}

fn start_and_wait(plan: &SandboxPlan, go: &File, status: &File) -> Result<(), Refusal> {
    let step = SetupStep::Fork;
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGCHLD);
    wanted.add(Signal::SIGTERM);
    wanted
        .thread_block()
        .or_refuse(step, || "cannot block signals".to_owned())?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .or_refuse(step, || "cannot open a signalfd".to_owned())?;
    send(status, &InitMessage::Started);
    let forked = sys::fork_payload().or_refuse(step, || "cannot fork the payload".to_owned())?;
    let Some(main) = forked else {
        let refusal = become_payload(plan);
        send(status, &InitMessage::Failed(refusal.bare()));
        sys::exit_now(127)
    };
    confine::null_stdio(false)?;
    loop {
        wait_for_news(&signals, go)?;
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == Signal::SIGTERM as u32 && signal.ssi_pid == 0 {
                // ESRCH: nobody is left, the reaping below ends us.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
            }
        }
        while let Ok(Some((pid, raw))) = sys::reap_any() {
            if pid == main {
                send(status, &InitMessage::Ended(raw));
                return Ok(());
            }
        }
    }
}

/// Blocks until a signal is pending; leaves at once when the helper is gone.
fn wait_for_news(signals: &SignalFd, go: &File) -> Result<(), Refusal> {
    let mut fds = [
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(go.as_fd(), PollFlags::empty()),
    ];
    match poll(&mut fds, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => {
            return Err(Refusal::new(SetupStep::Init, errno, "init cannot wait"));
        }
    }
    let helper_gone = fds[1].revents().is_some_and(|events| !events.is_empty());
    if helper_gone {
        sys::exit_now(0);
    }
    Ok(())
}

/// In the payload's process: the last confinement, then the program. Returns only on failure.
fn become_payload(plan: &SandboxPlan) -> Refusal {
    match exec(plan) {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    }
}

fn exec(plan: &SandboxPlan) -> Result<std::convert::Infallible, Refusal> {
    let step = SetupStep::Exec;
    let plain = |what: &'static str| move || what.to_owned();
    setsid().or_refuse(step, plain("cannot start the payload's session"))?;
    confine::null_stdio(true)?;
    SigSet::all()
        .thread_unblock()
        .or_refuse(step, plain("cannot unblock signals"))?;
    sys::reset_signals();
    chdir(&plan.cwd).or_refuse(step, || format!("cannot enter {:?}", plan.cwd))?;
    let strings = |list: Vec<String>| -> Result<Vec<CString>, Refusal> {
        list.into_iter()
            .map(|s| CString::new(s).map_err(|_| Refusal::plain(step, "a string holds a NUL")))
            .collect()
    };
    let argv = strings(plan.argv.clone())?;
    let env = strings(plan.env.iter().map(|(k, v)| format!("{k}={v}")).collect())?;
    let program = argv
        .first()
        .ok_or_else(|| Refusal::plain(step, "no program"))?;
    confine::limit(plan)?;
    sys::close_from(3, true).or_refuse(step, plain("cannot close descriptors"))?;
    execve(program, &argv, &env).or_refuse(step, || {
        format!("cannot execute {}", program.to_string_lossy())
    })
}
