//! The child's way from a fresh clone to a confined init: the recipe of sandbox.md A.1 in order.
//!
//! Invariants: runs as PID 1 of the new namespaces, never returns. Files are created only after
//! the mapped id is taken (creating them as an unmapped id fails); the death signal is set again
//! after every change of ids, which clears it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{Gid, Uid, setgroups, sethostname, setresgid, setresuid, setsid};
use serde::{Deserialize, Serialize};

use super::sources::Source;
use super::start::Start;
use super::{OrRefuse, Refusal, confine, init, mounts};
use crate::plan::{INSIDE_ID, SandboxPlan};
use crate::report::{SetupError, SetupStep};
use crate::sys;

/// What init says on the status pipe, one JSON line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InitMessage {
    /// The payload's process exists; its clock runs.
    Started,
    /// The set-up was refused.
    Failed(SetupError),
    /// Raw wait status of the payload's main process.
    Ended(i32),
}

/// Sends one message; short enough to be atomic on a pipe.
pub(crate) fn send(mut status: &File, message: &InitMessage) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        // A supervisor that cannot be told is gone; the death signal ends us.
        let _ = status.write_all(&line);
    }
}

/// The child's whole life.
pub(crate) fn child(
    plan: &SandboxPlan,
    start: Start,
    sources: Vec<Source>,
    go: OwnedFd,
    status: OwnedFd,
) -> ! {
    let go = File::from(go);
    let status = File::from(status);
    match prepare(plan, start, sources, &go) {
        Ok(()) => init::supervise_payload(plan, &go, &status),
        Err(refusal) => send(&status, &InitMessage::Failed(refusal.bare())),
    }
    sys::exit_now(0)
}

fn prepare(
    plan: &SandboxPlan,
    start: Start,
    mut sources: Vec<Source>,
    mut go: &File,
) -> Result<(), Refusal> {
    tie_to_parent()?;
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
    take_ids(start)?;
    sethostname(&plan.hostname).or_refuse(SetupStep::Hostname, || {
        "cannot set the host name".to_owned()
    })?;
    loopback()?;
    mounts::build(plan, sources, start.is_root())?;
    confine::drop_rights()?;
    confine::check_access(plan)?;
    tie_to_parent()?;
    prctl::set_dumpable(false)
        .or_refuse(SetupStep::Init, || "cannot become non-dumpable".to_owned())?;
    confine::filter()
}

fn take_ids(start: Start) -> Result<(), Refusal> {
    let step = SetupStep::Ids;
    let what = || format!("cannot become user {INSIDE_ID} inside");
    let (uid, gid) = (Uid::from_raw(INSIDE_ID), Gid::from_raw(INSIDE_ID));
    if start.is_root() {
        setgroups(&[]).or_refuse(step, || "cannot drop the supplementary groups".to_owned())?;
    }
    setresgid(gid, gid, gid).or_refuse(step, what)?;
    setresuid(uid, uid, uid).or_refuse(step, what)?;
    tie_to_parent()
}

/// Dies with the helper; stays readable to itself while it sets up.
fn tie_to_parent() -> Result<(), Refusal> {
    let step = SetupStep::Init;
    prctl::set_dumpable(true).or_refuse(step, || "cannot become dumpable".to_owned())?;
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
