//! Starting one daemon of a run: descriptors, environment, readiness.
//!
//! The daemon's program is the one of the run's own code snapshot; its spec goes over an unlinked
//! file, so that no secret and no path of the run stands in argv, environment or a named file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use vec_daemon::fds;
use vec_scope::{ExitKind, ScopeError, SpawnRequest, Supervisor, Unit};
use vec_store::RunLayout;

use crate::runtime_dir::{RunRuntime, RuntimeDirError, private_dir};
use crate::service::Service;

/// Longest wait for a daemon's readiness.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// TERM to KILL of a daemon.
pub(crate) const END_GRACE: Duration = Duration::from_secs(5);

/// How much of a failed daemon's stderr is shown.
const STDERR_TAIL_BYTES: u64 = 2_000;

/// Variables that daemons get.
const ENVIRONMENT: [&str; 3] = ["PATH", "LANG", "RUST_BACKTRACE"];

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A file or descriptor for it could not be made.
    #[error("start {service}: {action} {}", path.display())]
    Prepare {
        /// The daemon.
        service: &'static str,
        /// What failed.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its directory cannot be used.
    #[error("start {service}")]
    Directory {
        /// The daemon.
        service: &'static str,
        /// Why.
        #[source]
        source: RuntimeDirError,
    },
    /// Its spec has no JSON form.
    #[error("start {service}: encode its launch spec")]
    Spec {
        /// The daemon.
        service: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The process could not be started.
    #[error("start {service}")]
    Spawn {
        /// The daemon.
        service: &'static str,
        /// Why.
        #[source]
        source: ScopeError,
    },
    /// It ended, or said nothing, before it was ready.
    #[error("{service} did not get ready{how}; its last words: {stderr}")]
    NotReady {
        /// The daemon.
        service: &'static str,
        /// How it failed.
        how: String,
        /// End of its stderr.
        stderr: String,
    },
}

/// Where daemons of a run are started.
#[derive(Debug, Clone)]
pub(crate) struct Stage<'a> {
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) layout: &'a RunLayout,
    pub(crate) runtime: &'a RunRuntime,
    /// Truth of the board, for the scorer.
    pub(crate) truth: &'a Path,
    pub(crate) uid: u32,
}

impl Stage<'_> {
    /// Starts a daemon and waits until it is ready.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing of the daemon is left then.
    pub(crate) async fn start<T: Serialize>(
        &self,
        service: Service,
        spec: &T,
    ) -> Result<Unit, SpawnError> {
        let name = service.as_str();
        let directory = self.runtime.service(service);
        private_dir(&directory, self.uid).map_err(|source| SpawnError::Directory {
            service: name,
            source,
        })?;
        let (ready_reader, ready_writer) =
            std::io::pipe().map_err(prepare(service, "make a pipe for", &directory))?;
        let stderr_path = self.layout.log_stderr(name);
        let stderr = append_only(&stderr_path).map_err(prepare(service, "open", &stderr_path))?;
        let stderr_start = stderr.metadata().map_or(0, |found| found.len());
        let mut descriptors: Vec<(OwnedFd, i32)> = vec![
            (spec_file(service, &directory, spec)?.into(), fds::SPEC),
            (ready_writer.into(), fds::READY),
            (self.listener(service)?.into(), fds::LISTENER),
            (self.log(service)?.into(), fds::LOG),
        ];
        if service == Service::Scorer {
            let truth = File::open(self.truth).map_err(prepare(service, "open", self.truth))?;
            descriptors.push((truth.into(), fds::TRUTH));
        }
        let request = SpawnRequest {
            name: format!("vec-{name}-{}", self.layout.run().run8()),
            program: self.layout.code_bin(service.binary()),
            args: arguments(service),
            env: environment(),
            cwd: PathBuf::from("/"),
            fds: descriptors,
            stderr,
            pidfile: self.runtime.pidfile(service),
        };
        let unit = self
            .supervisor
            .spawn(request)
            .map_err(|source| SpawnError::Spawn {
                service: name,
                source,
            })?;
        match wait_ready(ready_reader, &unit).await {
            Ok(()) => Ok(unit),
            Err(how) => {
                if let Err(error) = unit.end(Duration::ZERO).await {
                    tracing::warn!(service = name, error = %vec_daemon::chain(&error), "end a daemon that did not start");
                }
                Err(SpawnError::NotReady {
                    service: name,
                    how,
                    stderr: tail(&stderr_path, stderr_start),
                })
            }
        }
    }

    fn listener(&self, service: Service) -> Result<UnixListener, SpawnError> {
        let socket = self.runtime.socket(service);
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(prepare(service, "remove", &socket)(error));
            }
            _ => {}
        }
        UnixListener::bind(&socket).map_err(prepare(service, "listen on", &socket))
    }

    fn log(&self, service: Service) -> Result<File, SpawnError> {
        let path = self.layout.log(service.as_str());
        append_only(&path).map_err(prepare(service, "open", &path))
    }
}

fn prepare(
    service: Service,
    action: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> SpawnError + use<> {
    let path = path.to_owned();
    move |source| SpawnError::Prepare {
        service: service.as_str(),
        action,
        path,
        source,
    }
}

fn append_only(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o644)
        .open(path)
}

fn arguments(service: Service) -> Vec<String> {
    match service {
        Service::Playbook => vec!["serve".to_owned()],
        Service::Egress | Service::Scorer | Service::Controller => Vec::new(),
    }
}

fn environment() -> BTreeMap<String, String> {
    ENVIRONMENT
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect()
}

// Unlinked before it is written: only the descriptor leads to it.
fn spec_file<T: Serialize>(
    service: Service,
    directory: &Path,
    spec: &T,
) -> Result<File, SpawnError> {
    let path = directory.join("spec");
    let json = serde_json::to_vec(spec).map_err(|source| SpawnError::Spec {
        service: service.as_str(),
        source,
    })?;
    let make = || {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        std::fs::remove_file(&path)?;
        file.write_all(&json)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    };
    make().map_err(prepare(service, "make the launch spec", &path))
}

// One byte, the end of the pipe, the end of the process, or too long.
async fn wait_ready(reader: std::io::PipeReader, unit: &Unit) -> Result<(), String> {
    let reader = pipe::Receiver::from_owned_fd(reader.into());
    let mut reader = reader.map_err(|error| format!(": {error}"))?;
    let mut byte = [0];
    match tokio::time::timeout(READY_TIMEOUT, reader.read(&mut byte)).await {
        Ok(Ok(1)) => Ok(()),
        Ok(Ok(_)) => {
            // The writer is closed, so the process is about to be gone.
            let exit = tokio::time::timeout(END_GRACE, unit.wait()).await;
            Err(exit.map_or_else(|_| String::new(), |exit| format!(" ({})", exit_words(exit))))
        }
        Ok(Err(error)) => Err(format!(": {error}")),
        Err(_) => Err(format!(" within {} s", READY_TIMEOUT.as_secs())),
    }
}

/// How a daemon ended, in words.
pub(crate) fn exit_words(exit: ExitKind) -> String {
    match exit {
        ExitKind::Code(code) => format!("exit {code}"),
        ExitKind::Signal(signal) => format!("signal {signal}"),
        ExitKind::Unknown => "exit unknown".to_owned(),
    }
}

/// What a daemon wrote to its stderr after `start`, at most the last [`STDERR_TAIL_BYTES`].
fn tail(path: &Path, start: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            start.max(length.saturating_sub(STDERR_TAIL_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(STDERR_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return "none".to_owned();
    }
    lines.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_words_of_this_start_are_shown() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("stderr");
        assert_eq!(tail(&path, 0), "none");
        std::fs::write(&path, "old\nnew\n\nlast\n").expect("written");
        assert_eq!(tail(&path, 4), "new | last");
        let long = "x".repeat(STDERR_TAIL_BYTES as usize * 2);
        std::fs::write(&path, long).expect("written");
        assert_eq!(tail(&path, 0).len() as u64, STDERR_TAIL_BYTES);
    }

    #[test]
    fn the_spec_is_readable_and_has_no_name() {
        let dir = tempfile::tempdir().expect("dir");
        let mut file = spec_file(Service::Scorer, dir.path(), &[1, 2]).expect("made");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "[1,2]");
        assert_eq!(std::fs::read_dir(dir.path()).expect("list").count(), 0);
    }
}
