//! Descriptors that the launcher hands to a daemon at fixed numbers.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

use serde::de::DeserializeOwned;

/// Fixed numbers of the inherited descriptors.
pub mod fds {
    /// Launch spec, JSON, read to its end.
    pub const SPEC: i32 = 3;
    /// Readiness pipe: one byte when the daemon listens.
    pub const READY: i32 = 4;
    /// Listener, bound by the launcher.
    pub const LISTENER: i32 = 5;
    /// The daemon's log, opened for appending.
    pub const LOG: i32 = 6;
    /// Truth directory of the board (scorer only).
    pub const TRUTH: i32 = 7;
}

/// Longest accepted launch spec.
const SPEC_BYTES_MAX: u64 = 4 << 20;

/// Why the inherited descriptors are no use.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// A descriptor is missing: the daemon was started by hand.
    #[error("descriptor {0} was not inherited; this program is started by vec-launcher only")]
    Missing(i32),
    /// Reading the spec failed.
    #[error("read the launch spec from descriptor 3")]
    ReadSpec(#[source] std::io::Error),
    /// The spec is too long or not what this daemon expects.
    #[error("launch spec is not valid: {0}")]
    Spec(String),
    /// Reporting readiness failed: the launcher is gone.
    #[error("report readiness to the launcher")]
    Ready(#[source] std::io::Error),
}

/// What the launcher handed over. Taken exactly once, first thing in `main`.
#[derive(Debug)]
pub struct Inherited {
    spec: Vec<u8>,
    ready: File,
    /// The daemon's listener.
    pub listener: UnixListener,
    /// The daemon's log, `O_RDWR | O_APPEND`.
    pub log: File,
    /// Truth directory, where handed over.
    pub truth: Option<OwnedFd>,
}

impl Inherited {
    /// Takes descriptors 3 to 7 and reads the spec.
    ///
    /// # Errors
    /// [`InheritError`] when a descriptor is missing or the spec cannot be read.
    pub fn take() -> Result<Self, InheritError> {
        let spec_file = File::from(take(fds::SPEC)?);
        let mut spec = Vec::new();
        spec_file
            .take(SPEC_BYTES_MAX + 1)
            .read_to_end(&mut spec)
            .map_err(InheritError::ReadSpec)?;
        if spec.len() as u64 > SPEC_BYTES_MAX {
            return Err(InheritError::Spec(format!(
                "longer than {SPEC_BYTES_MAX} bytes"
            )));
        }
        Ok(Self {
            spec,
            ready: File::from(take(fds::READY)?),
            listener: UnixListener::from(take(fds::LISTENER)?),
            log: File::from(take(fds::LOG)?),
            truth: take(fds::TRUTH).ok(),
        })
    }

    /// The launch spec.
    ///
    /// # Errors
    /// [`InheritError::Spec`] with the key that does not fit.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T, InheritError> {
        serde_json::from_slice(&self.spec).map_err(|error| InheritError::Spec(error.to_string()))
    }

    /// Tells the launcher that the daemon listens.
    ///
    /// # Errors
    /// [`InheritError::Ready`] when the launcher is gone.
    pub fn ready(&mut self) -> Result<(), InheritError> {
        self.ready.write_all(b"\n").map_err(InheritError::Ready)
    }
}

#[expect(
    unsafe_code,
    reason = "an inherited descriptor is only a number until it is owned"
)]
fn take(fd: i32) -> Result<OwnedFd, InheritError> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    // SAFETY: only borrowed for one fcntl, which reports a closed number as an error.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(|_| InheritError::Missing(fd))?;
    // SAFETY: the number is open (checked above), comes from the launcher by contract, and `take`
    // runs once per number, before anything else opens descriptors.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
