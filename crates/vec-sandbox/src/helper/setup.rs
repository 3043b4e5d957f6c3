//! The child's way from a fresh clone to a confined init: the recipe of sandbox.md A.1 in order.
//!
//! Invariants: runs as PID 1 of the new namespaces, never returns. Files are created only after
//! the mapped id is taken (creating them as an unmapped id fails); the death signal is set again
//! after every change of ids, which clears it.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, setgroups, sethostname, setresgid, setresuid, setsid};
use serde::{Deserialize, Serialize};

use super::sources::Source;
use super::start::Start;
use super::{OrRefuse, Refusal, init, mounts};
use crate::plan::{INSIDE_ID, Lift, SandboxPlan, WorkKind};
use crate::report::{SetupError, SetupStep};
use crate::{handover, sys};

/// What init says on its socket, one JSON line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InitMessage {
    /// With descriptors: the memory work directory if there is one, then the listeners in the
    /// plan's order.
    Handed,
    /// The payload's process exists; its clock runs.
    Started,
    /// The set-up was refused.
    Failed(SetupError),
    /// Raw wait status of the payload's main process.
    Ended(i32),
}

/// Sends one message.
pub(crate) fn send(status: &OwnedFd, message: &InitMessage) {
    // A supervisor that cannot be told is gone; the death signal ends us.
    let _ = send_with(status, message, &[]);
}

fn send_with(
    status: &OwnedFd,
    message: &InitMessage,
    fds: &[BorrowedFd<'_>],
) -> Result<(), Refusal> {
    let mut line = serde_json::to_vec(message)
        .map_err(|e| Refusal::plain(SetupStep::Init, format!("cannot write a message: {e}")))?;
    line.push(b'\n');
    handover::send(status.as_fd(), &line, fds)
        .or_refuse(SetupStep::Init, || "cannot report".to_owned())
}

/// The child's whole life.
pub(crate) fn child(
    plan: &SandboxPlan,
    start: Start,
    sources: Vec<Source>,
    go: OwnedFd,
    status: &OwnedFd,
) -> ! {
    let go = File::from(go);
    let code = match prepare(plan, start, sources, &go, status) {
        Ok(()) => init::supervise_payload(plan, start, &go, status),
        Err(refusal) => {
            send(status, &InitMessage::Failed(refusal.bare()));
            init::EXIT_LOST
        }
    };
    sys::exit_now(code)
}

fn prepare(
    plan: &SandboxPlan,
    start: Start,
    mut sources: Vec<Source>,
    mut go: &File,
    status: &OwnedFd,
) -> Result<(), Refusal> {
    tie_to_parent(plan)?;
    let mut byte = [0_u8; 1];
    go.read_exact(&mut byte)
        .or_refuse(SetupStep::Init, || "the supervisor is gone".to_owned())?;
    setsid().or_refuse(SetupStep::Init, || "cannot start a session".to_owned())?;
    sys::reset_signals();
    if !start.is_root() {
        for source in &mut sources {
            source.reopen()?;
        }
    }
    take_init_ids(plan, start)?;
    sethostname(&plan.hostname).or_refuse(SetupStep::Hostname, || {
        "cannot set the host name".to_owned()
    })?;
    // Not earlier: a group entered later would show its name inside, and the name tells which
    // execution this is (VCK-01).
    unshare(CloneFlags::CLONE_NEWCGROUP).or_refuse(SetupStep::Namespaces, || {
        "cannot create a namespace of control groups".to_owned()
    })?;
    if !plan.lifts(Lift::NetNs) {
        loopback()?;
    }
    mounts::build(plan, sources, start.is_root())?;
    hand_out(plan, status)
}

/// Opens what the daemon gets of this sandbox and sends it; nothing of it stays open here.
fn hand_out(plan: &SandboxPlan, status: &OwnedFd) -> Result<(), Refusal> {
    let mut handed: Vec<OwnedFd> = Vec::new();
    if let WorkKind::Memory { .. } = plan.work.kind {
        let dest = &plan.work.dest;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let work = open(dest, flags, Mode::empty())
            .or_refuse(SetupStep::Root, || format!("cannot open {dest:?}"))?;
        handed.push(work);
    }
    for port in &plan.listeners {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port))
            .or_refuse(SetupStep::Listener, || {
                format!("cannot listen on port {port} inside")
            })?;
        handed.push(listener.into());
    }
    if handed.is_empty() {
        return Ok(());
    }
    let fds: Vec<BorrowedFd<'_>> = handed.iter().map(AsFd::as_fd).collect();
    send_with(status, &InitMessage::Handed, &fds)
}

fn take_init_ids(plan: &SandboxPlan, start: Start) -> Result<(), Refusal> {
    if start.is_root() {
        let refused = || "cannot drop the supplementary groups".to_owned();
        setgroups(&[]).or_refuse(SetupStep::Ids, refused)?;
    }
    become_id(start.init_id())?;
    tie_to_parent(plan)
}

/// The payload's process takes its own id, where it is not init's.
pub(crate) fn take_payload_ids(start: Start) -> Result<(), Refusal> {
    if start.init_id() == INSIDE_ID {
        return Ok(());
    }
    become_id(INSIDE_ID)
}

fn become_id(id: u32) -> Result<(), Refusal> {
    let step = SetupStep::Ids;
    let what = || format!("cannot become user {id} inside");
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    setresgid(gid, gid, gid).or_refuse(step, what)?;
    setresuid(uid, uid, uid).or_refuse(step, what)
}

/// Dies with the helper; stays readable to itself while it sets up.
pub(crate) fn tie_to_parent(plan: &SandboxPlan) -> Result<(), Refusal> {
    let step = SetupStep::Init;
    prctl::set_dumpable(true).or_refuse(step, || "cannot become dumpable".to_owned())?;
    if plan.lifts(Lift::DeathSignal) {
        return Ok(());
    }
    prctl::set_pdeathsig(Signal::SIGKILL).or_refuse(step, || "cannot set a death signal".to_owned())
}

fn loopback() -> Result<(), Refusal> {
    let what = || "cannot bring the loopback interface up".to_owned();
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .or_refuse(SetupStep::Loopback, what)?;
    sys::loopback_up(socket.as_fd()).or_refuse(SetupStep::Loopback, what)
}
