//! One launcher per runtime directory: a lock file held for life, a pid file for people, and the
//! listener.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::answering::answering;
use crate::files::{FileError, write_json};
use crate::runtime_dir::RuntimeDir;

/// How long a second launcher waits for the first one's answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two looks at a lock whose holder does not answer.
const PROBE_POLL: Duration = Duration::from_millis(20);

/// Why this process cannot be the launcher.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The lock file cannot be used.
    #[error("lock {}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another launcher holds the lock but does not answer.
    #[error(
        "another vec-launcher holds {} but does not answer on its socket; end it (pid in {}) and try again",
        path.display(),
        pid.display()
    )]
    Silent {
        /// The lock file.
        path: PathBuf,
        /// The pid file.
        pid: PathBuf,
    },
    /// The socket cannot be bound.
    #[error("listen on {}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The pid file cannot be written.
    #[error("write the pid file")]
    Pid(#[source] FileError),
}

/// What came of the attempt.
#[derive(Debug)]
pub enum Claim {
    /// This process is the launcher.
    Ours(Instance),
    /// Another one runs and answers.
    Running,
}

/// This process as the launcher of a runtime directory.
#[derive(Debug)]
pub struct Instance {
    /// The launcher's listener.
    pub listener: UnixListener,
    socket: PathBuf,
    _lock: File,
}

#[derive(Debug, Serialize)]
struct PidFile {
    pid: u32,
}

impl Instance {
    /// Takes the lock, writes the pid file and binds the socket.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub async fn claim(runtime: &RuntimeDir) -> Result<Claim, InstanceError> {
        let path = runtime.launcher().join("lock");
        let pid = runtime.launcher().join("pid");
        let lock_error = |source| InstanceError::Lock {
            path: path.clone(),
            source,
        };
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(lock_error)?;
        let socket = runtime.launcher_socket();
        let patience = Instant::now() + PROBE_TIMEOUT;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(lock_error(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            // The holder answers, or is dying and lets go of the lock, or has not come so far yet.
            if answering(&socket, PROBE_TIMEOUT).await.is_some() {
                return Ok(Claim::Running);
            }
            if Instant::now() >= patience {
                return Err(InstanceError::Silent { path, pid });
            }
            tokio::time::sleep(PROBE_POLL).await;
        }
        let listen = |source| InstanceError::Listen {
            path: socket.clone(),
            source,
        };
        // Ours by the lock, so whatever is there is a leftover.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(listen(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(listen)?;
        let this = PidFile {
            pid: std::process::id(),
        };
        write_json(&pid, &this).map_err(InstanceError::Pid)?;
        Ok(Claim::Ours(Self {
            listener,
            socket,
            _lock: lock,
        }))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A leftover socket only costs the next client one refused connection.
        drop(std::fs::remove_file(&self.socket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_dir::Surroundings;

    fn runtime(dir: &std::path::Path) -> RuntimeDir {
        RuntimeDir::open(&dir.join("r"), Surroundings::of_this_process().uid).expect("runtime")
    }

    #[tokio::test]
    async fn a_dying_holder_is_waited_for() {
        let dir = tempfile::tempdir().expect("dir");
        let runtime = runtime(dir.path());
        let first = Instance::claim(&runtime).await.expect("first");
        assert!(matches!(first, Claim::Ours(_)));
        // The second one meets a lock and a socket that accepts, then both go.
        let (second, ()) = tokio::join!(Instance::claim(&runtime), async { drop(first) });
        assert!(matches!(second.expect("second"), Claim::Ours(_)));
    }

    #[tokio::test]
    async fn a_leftover_socket_does_not_matter_and_a_silent_holder_is_named() {
        let dir = tempfile::tempdir().expect("dir");
        let runtime = runtime(dir.path());
        drop(UnixListener::bind(runtime.launcher_socket()).expect("leftover"));
        let first = Instance::claim(&runtime).await.expect("first");
        assert!(matches!(first, Claim::Ours(_)));
        std::fs::remove_file(runtime.launcher_socket()).expect("nobody answers");
        let error = Instance::claim(&runtime).await.expect_err("silent");
        assert!(error.to_string().contains("launcher/lock"), "{error}");
    }
}
