//! From a checked plan to a cloned child that may go.
//!
//! Invariants: everything that can be refused without a child is refused before it exists; a child
//! that cannot be set going is killed and reaped here.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{Pid, pipe2};

use super::start::Start;
use super::supervise::REAP_MAX;
use super::{OrRefuse, Refusal, confine, owner, setup, sources};
use crate::plan::{Lift, SandboxPlan};
use crate::report::SetupStep;
use crate::sys::{self, Cloned, Reaped};

const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS) as u64;

/// A cloned child whose id maps are written and which was told to go.
pub(crate) struct Child {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    /// Ids mapped into it.
    pub(crate) ids: u32,
    /// Our end of the socket on which init reports and hands descriptors out.
    pub(crate) status: OwnedFd,
    /// Its end of file tells init that we are gone.
    go: OwnedFd,
}

/// Prepares the sources, clones the child, writes its id maps and tells it to go. `private` belongs to
/// the helper alone: the child closes it. (The owners in its copy of the memory are never dropped: it
/// leaves by `_exit`.)
pub(crate) fn launch(
    plan: &SandboxPlan,
    private: &[RawFd],
    groups: &[OwnedFd],
) -> Result<Child, Refusal> {
    let start = match Start::detect(plan.outer) {
        Start::Root(ids) if plan.lifts(Lift::TwoIds) => Start::One(ids),
        start => start,
    };
    if let (Start::Root(ids) | Start::One(ids), Some(source)) = (start, plan.work.kind.source()) {
        owner::give(source, ids)?;
    }
    start.own_stdio().or_refuse(SetupStep::Ids, || {
        "cannot give the output pipes away".to_owned()
    })?;
    let sources = sources::open_all(plan, start.is_root())?;
    let pipe =
        || pipe2(OFlag::O_CLOEXEC).or_refuse(SetupStep::Init, || "cannot make a pipe".to_owned());
    let (go_read, go_write) = pipe()?;
    let (status_read, status_write) = socketpair(
        AddressFamily::Unix,
        SockType::Stream,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .or_refuse(SetupStep::Init, || "cannot make a socket pair".to_owned())?;
    let cloned = sys::clone_into(namespaces(plan)).or_refuse(SetupStep::Namespaces, || {
        "cannot create namespaces".to_owned()
    })?;
    let (pid, pidfd) = match cloned {
        Cloned::Child => {
            drop((go_write, status_read));
            private.iter().for_each(|&raw| drop(sys::take_fd(raw)));
            setup::child(plan, start, sources, go_read, &status_write)
        }
        Cloned::Parent { pid, pidfd } => (pid, pidfd),
    };
    let child = Child {
        pid,
        pidfd,
        ids: start.ids(),
        status: status_read,
        go: go_write,
    };
    drop((go_read, status_write, sources));
    let told = start
        .write_maps(pid)
        .and_then(|()| enter(groups, pid))
        .and_then(|()| {
            nix::unistd::write(&child.go, b"g")
                .or_refuse(SetupStep::Init, || "the child is gone".to_owned())
        });
    // The helper must not keep the payload's pipes open.
    match told.and_then(|_| confine::null_stdio(false)) {
        Ok(()) => Ok(child),
        Err(refusal) => {
            let _ = sys::pidfd_signal(child.pidfd.as_fd(), Signal::SIGKILL);
            reap(&child, REAP_MAX);
            Err(refusal)
        }
    }
}

fn namespaces(plan: &SandboxPlan) -> u64 {
    let without = |lift, flag: i32| if plan.lifts(lift) { flag as u64 } else { 0 };
    NAMESPACES & !without(Lift::NetNs, libc::CLONE_NEWNET) & !without(Lift::Ipc, libc::CLONE_NEWIPC)
}

/// Moves the child, which has done nothing yet, into the groups that count and bound it. Only then
/// it makes its own namespace of groups, whose root they are.
fn enter(groups: &[OwnedFd], pid: Pid) -> Result<(), Refusal> {
    let text = pid.to_string();
    for group in groups {
        nix::unistd::write(group, text.as_bytes()).or_refuse(SetupStep::Group, || {
            "cannot enter a control group".to_owned()
        })?;
    }
    Ok(())
}

/// Waits, bounded, for a child that was killed.
fn reap(child: &Child, bound: Duration) -> Option<Reaped> {
    let ms = u16::try_from(bound.as_millis()).unwrap_or(u16::MAX);
    let mut fds = [PollFd::new(child.pidfd.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut fds, PollTimeout::from(ms));
    sys::wait4(child.pid).ok().flatten()
}
