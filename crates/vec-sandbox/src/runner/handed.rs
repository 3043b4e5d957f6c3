//! The helper's socket: what is handed out when the payload starts, then the report.
//!
//! Invariants: memory is bounded; a descriptor that nobody asked for is closed.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use nix::errno::Errno;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::{SandboxError, Started};
use crate::handover;
use crate::plan::{SandboxPlan, WorkKind};
use crate::report::Handed;

/// A report is one short JSON object.
const REPORT_BYTES_MAX: usize = 64 << 10;

/// The reading end.
#[derive(Debug)]
pub(super) struct Reports {
    socket: UnixStream,
    /// The memory work directory, once it is there.
    pub(super) work: Option<OwnedFd>,
    has_work: bool,
    ports: Vec<u16>,
    started: Option<oneshot::Sender<Started>>,
}

impl Reports {
    pub(super) fn new(socket: StdStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            work: None,
            has_work: false,
            ports: Vec::new(),
            started: None,
        })
    }

    /// What `plan` lets be handed out, and who wants to know.
    pub(super) fn announce(
        &mut self,
        plan: &SandboxPlan,
        started: Option<oneshot::Sender<Started>>,
    ) {
        self.has_work = matches!(plan.work.kind, WorkKind::Memory { .. });
        self.ports.clone_from(&plan.listeners);
        self.started = started;
    }

    /// Reads to the end; gives the report's bytes, none when there is no report.
    pub(super) async fn read(&mut self) -> Result<Vec<u8>, SandboxError> {
        let (mut bytes, mut fds) = (Vec::new(), Vec::new());
        let mut buffer = [0_u8; 4096];
        loop {
            let received = self.socket.async_io(Interest::READABLE, || {
                handover::receive(self.socket.as_fd(), &mut buffer, &mut fds)
                    .map_err(std::io::Error::from)
            });
            let count = match received.await {
                Ok(count) => count,
                // The helper has died with something unread.
                Err(error) if error.raw_os_error() == Some(Errno::ECONNRESET as i32) => 0,
                Err(source) => {
                    return Err(SandboxError::Pipe {
                        action: "listen to",
                        source,
                    });
                }
            };
            if count == 0 || bytes.len() + count > REPORT_BYTES_MAX {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&buffer[..count]);
            self.take_handed(&mut bytes, &mut fds);
        }
    }

    /// The first line, when it is the one about the start.
    fn take_handed(&mut self, bytes: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            return;
        };
        let Ok(Handed { init }) = serde_json::from_slice(&bytes[..end]) else {
            return;
        };
        bytes.drain(..=end);
        let mut fds = std::mem::take(fds).into_iter();
        if self.has_work {
            self.work = fds.next();
        }
        let listeners = self.ports.iter().copied().zip(fds).collect();
        if let Some(started) = self.started.take() {
            // Whoever wanted to know may be gone.
            let _ = started.send(Started { init, listeners });
        }
    }
}
