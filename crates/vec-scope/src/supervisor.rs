//! Starting and finding units.
//!
//! Invariants: a unit gets exactly the environment and descriptors of its request. A unit whose
//! pidfile cannot be written does not stay alive.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use nix::errno::Errno;

use crate::process::Stat;
use crate::unit::Unit;
use crate::{Cgroups, Pidfile, ScopeError, sys};

/// Who keeps the processes of units and groups together. Units, the daemons, are sessions (setsid)
/// with pidfiles under both; the difference is in groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supervisor {
    /// No limits of a whole group, no accounting beyond `/proc`.
    Plain,
    /// A control group for each group.
    Cgroup(Cgroups),
}

/// What to start.
#[derive(Debug)]
pub struct SpawnRequest {
    /// Name for messages.
    pub name: String,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Descriptors with the numbers (3 or more) that they have in the unit.
    pub fds: Vec<(OwnedFd, i32)>,
    /// Where its stderr goes; stdin and stdout are `/dev/null`.
    pub stderr: File,
    /// Where its identity is written.
    pub pidfile: PathBuf,
}

impl Supervisor {
    /// Its name in the lock.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cgroup(_) => "cgroup",
        }
    }

    /// Starts a unit as leader of its own session. Call within a tokio runtime.
    ///
    /// # Errors
    /// [`ScopeError`]; nothing keeps running then.
    pub fn spawn(&self, request: SpawnRequest) -> Result<Unit, ScopeError> {
        let SpawnRequest {
            name,
            program,
            args,
            env,
            cwd,
            fds,
            stderr,
            pidfile,
        } = request;
        let mut command = Command::new(&program);
        command
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        sys::start_session(&mut command);
        let mappings = fds
            .into_iter()
            .map(|(parent_fd, child_fd)| FdMapping {
                parent_fd,
                child_fd,
            })
            .collect();
        command
            .fd_mappings(mappings)
            .map_err(|error| ScopeError::Descriptors {
                name: name.clone(),
                source: std::io::Error::other(error),
            })?;
        let mut child = command.spawn().map_err(|source| ScopeError::Spawn {
            name: name.clone(),
            program,
            source,
        })?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let unit = watch(name, pid).and_then(|unit| {
            unit.identity().write(&pidfile)?;
            Ok(unit)
        });
        if unit.is_err() {
            // Our own unreaped child: the pid cannot be anybody else's.
            let _ = child.kill();
            let _ = child.wait();
        }
        unit
    }

    /// Finds the unit of an earlier launcher by its pidfile: `None` when there is no pidfile, the
    /// process is gone, or the pid belongs to another process now. Its name is that of the
    /// pidfile's directory. Call within a tokio runtime.
    ///
    /// # Errors
    /// [`ScopeError`]: the pidfile is unreadable or malformed, or the process cannot be watched.
    pub fn adopt(&self, pidfile: &Path) -> Result<Option<Unit>, ScopeError> {
        let Some(identity) = Pidfile::read(pidfile)? else {
            return Ok(None);
        };
        let fd = match sys::pidfd_open(identity.pid) {
            Ok(fd) => fd,
            // No process, or only a thread of one, has that number.
            Err(Errno::ESRCH | Errno::EINVAL | Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(cannot_watch(identity.pid, errno.into())),
        };
        // Looked at after the pidfd was taken: what matches now is what the pidfd refers to.
        match Stat::of(identity.pid) {
            Some(stat) if stat.is_alive() && stat.start_time_ticks == identity.start_time_ticks => {
            }
            _ => return Ok(None),
        }
        let directory = pidfile.parent().and_then(Path::file_name);
        let name = directory.unwrap_or(pidfile.as_os_str()).to_string_lossy();
        Unit::new(name.into_owned(), identity, fd).map(Some)
    }
}

/// Watches our own fresh child, whose pid stays its own until we reap it.
fn watch(name: String, pid: i32) -> Result<Unit, ScopeError> {
    let fd = sys::pidfd_open(pid).map_err(|errno| cannot_watch(pid, errno.into()))?;
    let stat = Stat::of(pid).ok_or_else(|| cannot_watch(pid, Errno::ESRCH.into()))?;
    let identity = Pidfile {
        pid,
        start_time_ticks: stat.start_time_ticks,
    };
    Unit::new(name, identity, fd)
}

fn cannot_watch(pid: i32, source: std::io::Error) -> ScopeError {
    ScopeError::Watch { pid, source }
}
