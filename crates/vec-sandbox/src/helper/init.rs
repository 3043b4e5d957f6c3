//! The sandbox's PID 1: starts the payload, reaps, passes TERM on, ends when the payload ends.
//!
//! Invariants: when it exits, the kernel kills every process of the pid namespace. TERM counts only
//! from outside (sender pid 0): the payload cannot end its siblings by signalling init. TERM goes to
//! the payload's own process group alone, and after it init stays until the whole group is gone, not
//! only its leader (EXE-04), or until the helper's grace ends. Processes that left the group (own
//! session or group) get no TERM: they may go on serving the group's last steps, and end by KILL when
//! init ends. End of file on `go` means that the helper is gone: everything is killed. The payload
//! is let go only when init has given up its own rights, all but the one to signal the payload's id.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, chdir, execve, pipe2, setsid};

use super::setup::{self, InitMessage, send};
use super::start::Start;
use super::{OrRefuse, Refusal, confine};
use crate::plan::{Lift, SandboxPlan};
use crate::report::SetupStep;
use crate::sys;

/// Exit code of an init that could not go on: never taken for a payload's success.
pub(crate) const EXIT_LOST: i32 = 70;
/// How often init looks for the rest of a terminated group.
const GROUP_LOOK_MS: u8 = 50;

/// Runs the payload to its end; gives init's own exit code.
pub(crate) fn supervise_payload(
    plan: &SandboxPlan,
    start: Start,
    go: &File,
    status: &OwnedFd,
) -> i32 {
    match start_and_wait(plan, start, go, status) {
        Ok(()) => 0,
        Err(refusal) => {
            send(status, &InitMessage::Failed(refusal.bare()));
            EXIT_LOST
        }
    }
}

fn start_and_wait(
    plan: &SandboxPlan,
    start: Start,
    go: &File,
    status: &OwnedFd,
) -> Result<(), Refusal> {
    let step = SetupStep::Fork;
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGCHLD);
    wanted.add(Signal::SIGTERM);
    wanted
        .thread_block()
        .or_refuse(step, || "cannot block signals".to_owned())?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .or_refuse(step, || "cannot open a signalfd".to_owned())?;
    let (gate, open_gate) =
        pipe2(OFlag::O_CLOEXEC).or_refuse(step, || "cannot make a pipe".to_owned())?;
    // Once for both processes.
    confine::bound_rights(plan)?;
    let forked = sys::fork_payload().or_refuse(step, || "cannot fork the payload".to_owned())?;
    let Some(main) = forked else {
        drop(open_gate);
        let refusal = become_payload(plan, start, gate);
        send(status, &InitMessage::Failed(refusal.bare()));
        sys::exit_now(127)
    };
    drop(gate);
    confine_init(plan)?;
    send(status, &InitMessage::Started);
    // EPIPE: it has failed and said why; the reaping ends us.
    let _ = nix::unistd::write(&open_gate, b"g");
    drop(open_gate);
    let (mut asked_to_end, mut ended) = (false, false);
    loop {
        wait_for_news(plan, &signals, go, ended)?;
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == Signal::SIGTERM as u32 && signal.ssi_pid == 0 {
                asked_to_end = true;
                terminate_group(main);
            }
        }
        while let Ok(Some((pid, raw))) = sys::reap_any() {
            if pid == main {
                send(status, &InitMessage::Ended(raw));
                ended = true;
            }
        }
        if ended && !(asked_to_end && group_lives(main)) {
            return Ok(());
        }
    }
}

/// Asks the payload's process group to end.
fn terminate_group(main: Pid) {
    // Before it has its own session there is no such group: then its TERM waits for it, blocked.
    if killpg(main, Signal::SIGTERM) == Err(Errno::ESRCH) {
        // ESRCH: it is gone, the reaping ends us.
        let _ = kill(main, Signal::SIGTERM);
    }
}

/// Has the group of the dead `main` still members? While it has, nobody else can get its number. A
/// dead one that its parent outside the group does not reap counts too: the grace bounds that.
fn group_lives(main: Pid) -> bool {
    killpg(main, None) != Err(Errno::ESRCH)
}

/// What init gives up. It runs no foreign code, so it needs no filter; the payload cannot reach it.
fn confine_init(plan: &SandboxPlan) -> Result<(), Refusal> {
    confine::drop_rights(plan, Some(sys::CAP_KILL))?;
    setup::tie_to_parent(plan)?;
    prctl::set_dumpable(plan.lifts(Lift::Dumpable))
        .or_refuse(SetupStep::Init, || "cannot become non-dumpable".to_owned())?;
    confine::null_stdio(false)
}

/// Blocks until a signal is pending, or for a moment when it is the group that is waited for (the end
/// of another's child is no signal to init); leaves at once when the helper is gone.
fn wait_for_news(
    plan: &SandboxPlan,
    signals: &SignalFd,
    go: &File,
    for_group: bool,
) -> Result<(), Refusal> {
    let bound = if for_group {
        PollTimeout::from(GROUP_LOOK_MS)
    } else {
        PollTimeout::NONE
    };
    let mut fds = [
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(go.as_fd(), PollFlags::empty()),
    ];
    match poll(&mut fds, bound) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => {
            return Err(Refusal::new(SetupStep::Init, errno, "init cannot wait"));
        }
    }
    let helper_gone = fds[1].revents().is_some_and(|events| !events.is_empty());
    if helper_gone && !plan.lifts(Lift::DeathSignal) {
        sys::exit_now(0);
    }
    Ok(())
}

/// In the payload's process: the last confinement, then the program. Returns only on failure. It
/// prepares itself while init gives up its rights, and waits for that before the filter.
fn become_payload(plan: &SandboxPlan, start: Start, gate: OwnedFd) -> Refusal {
    match exec(plan, start, File::from(gate)) {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    }
}

fn exec(
    plan: &SandboxPlan,
    start: Start,
    mut gate: File,
) -> Result<std::convert::Infallible, Refusal> {
    let step = SetupStep::Exec;
    let plain = |what: &'static str| move || what.to_owned();
    setup::take_payload_ids(start)?;
    confine::drop_rights(plan, None)?;
    confine::check_access(plan)?;
    setsid().or_refuse(step, plain("cannot start the payload's session"))?;
    confine::null_stdio(true)?;
    SigSet::all()
        .thread_unblock()
        .or_refuse(step, plain("cannot unblock signals"))?;
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
    #[cfg(feature = "lifted")]
    if plan.lifts(Lift::PipesOnly) {
        sys::stderr_to_file(c"/tmp/stderr");
    }
    if !plan.lifts(Lift::CloseFds) {
        sys::close_from(3, true).or_refuse(step, plain("cannot close descriptors"))?;
    }
    confine::limit(plan)?;
    let filters = confine::filters(plan)?;
    gate.read_exact(&mut [0])
        .or_refuse(step, plain("init is gone"))?;
    confine::install(&filters)?;
    execve(program, &argv, &env).or_refuse(step, || {
        format!("cannot execute {}", program.to_string_lossy())
    })
}
