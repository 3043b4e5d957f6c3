//! One supervised unit: a main process and everything in its session.
//!
//! Invariants: signals go through pidfds. A child is reaped only after its session was cleared, so
//! its pid, which is the session's id, cannot be recycled meanwhile. Processes that start a session
//! of their own leave the unit: `plain` cannot hold them (cgroups will).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::process::{self, Stat};
use crate::{ExitKind, Pidfile, ScopeError, sys};

/// How long the kernel may take to end killed processes.
const KILL_MAX: Duration = Duration::from_secs(5);

/// A supervised process tree. Dropping it neither ends nor reaps anything.
#[derive(Debug)]
pub struct Unit {
    name: String,
    identity: Pidfile,
    pidfd: AsyncFd<OwnedFd>,
    /// Kept once known: a child can be reaped only once.
    exit: Mutex<Option<ExitKind>>,
}

impl Unit {
    pub(crate) fn new(name: String, identity: Pidfile, fd: OwnedFd) -> Result<Self, ScopeError> {
        Ok(Self {
            name,
            identity,
            pidfd: watched(fd, identity.pid)?,
            exit: Mutex::new(None),
        })
    }

    /// Name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pid of the main process, which is its session's id too.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.identity.pid
    }

    /// What the pidfile holds.
    #[must_use]
    pub fn identity(&self) -> Pidfile {
        self.identity
    }

    /// Sends `signal` to the main process; one that has ended is no error.
    ///
    /// # Errors
    /// [`ScopeError::Signal`].
    pub fn signal(&self, signal: Signal) -> Result<(), ScopeError> {
        match sys::pidfd_signal(self.pidfd.get_ref().as_fd(), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(ScopeError::Signal {
                pid: self.identity.pid,
                source: errno.into(),
            }),
        }
    }

    /// Waits for the end of the main process and reaps it. Cancel-safe; may be called again.
    pub async fn wait(&self) -> ExitKind {
        self.ended().await;
        self.reap()
    }

    /// Ends the unit: TERM to the main process, after `term_grace` KILL to everything that is left
    /// of its session. Returns when all of it is gone, at most 5 s after the grace.
    ///
    /// # Errors
    /// [`ScopeError::Signal`]; [`ScopeError::Unkillable`] when something survives.
    pub async fn end(&self, term_grace: Duration) -> Result<ExitKind, ScopeError> {
        self.signal(Signal::SIGTERM)?;
        // Elapsed or not: what is left of the session is killed.
        let _ = tokio::time::timeout(term_grace, self.ended()).await;
        self.clear_session().await?;
        match tokio::time::timeout(KILL_MAX, self.wait()).await {
            Ok(exit) => Ok(exit),
            Err(_) => Err(self.unkillable(1)),
        }
    }

    /// Resident memory of the whole session in KiB (shared pages counted once per process);
    /// `None` when it is gone.
    #[must_use]
    pub fn rss_kib(&self) -> Option<u64> {
        let members = self.members();
        let sum = members.into_iter().filter_map(process::rss_kib).sum();
        (sum > 0).then_some(sum)
    }

    /// Resolves when the main process has ended; does not reap.
    async fn ended(&self) {
        if self.pidfd.readable().await.is_err() {
            // The runtime shuts down: there is nobody to tell.
            std::future::pending::<()>().await;
        }
    }

    fn reap(&self) -> ExitKind {
        let mut exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = *exit {
            return known;
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        let kind = match waitid(Id::PIDFd(self.pidfd.get_ref().as_fd()), flags) {
            Ok(WaitStatus::Exited(_, code)) => ExitKind::Code(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => ExitKind::Signal(signal as i32),
            // ECHILD: adopted, somebody else's child.
            _ => ExitKind::Unknown,
        };
        *exit = Some(kind);
        kind
    }

    /// Live processes of the session; none when its number belongs to another session now.
    fn members(&self) -> Vec<i32> {
        let Pidfile {
            pid,
            start_time_ticks,
        } = self.identity;
        match Stat::of(pid) {
            Some(leader) if leader.start_time_ticks != start_time_ticks => Vec::new(),
            _ => process::session_members(pid),
        }
    }

    /// KILL to every live process of the session until none is left.
    async fn clear_session(&self) -> Result<(), ScopeError> {
        let deadline = Instant::now() + KILL_MAX;
        loop {
            let members = self.members();
            if members.is_empty() {
                return Ok(());
            }
            let mut dying = Vec::new();
            for pid in &members {
                let Ok(fd) = sys::pidfd_open(*pid) else {
                    continue;
                };
                // Again, now that the pidfd pins the process.
                let still = Stat::of(*pid).is_some_and(|s| s.session == self.identity.pid);
                if !still {
                    continue;
                }
                match sys::pidfd_signal(fd.as_fd(), Signal::SIGKILL) {
                    Ok(()) | Err(Errno::ESRCH) => {}
                    Err(errno) => {
                        return Err(ScopeError::Signal {
                            pid: *pid,
                            source: errno.into(),
                        });
                    }
                }
                dying.push(watched(fd, *pid)?);
            }
            for fd in dying {
                // A process that a fork bomb adds meanwhile is found in the next round.
                if tokio::time::timeout_at(deadline, fd.readable())
                    .await
                    .is_err()
                {
                    return Err(self.unkillable(members.len()));
                }
            }
        }
    }

    fn unkillable(&self, left: usize) -> ScopeError {
        ScopeError::Unkillable {
            name: self.name.clone(),
            left,
        }
    }
}

fn watched(fd: OwnedFd, pid: i32) -> Result<AsyncFd<OwnedFd>, ScopeError> {
    sys::readable(fd).map_err(|source| ScopeError::Watch { pid, source })
}
