//! System calls without a safe binding: pidfds, extended attributes, and setsid between fork and exec.
//!
//! Invariants: the only file of this crate with `unsafe`.
#![expect(
    unsafe_code,
    reason = "pidfd calls, getxattr and pre_exec have no safe binding"
)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor for the process `pid`, close-on-exec.
pub(crate) fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: integer arguments only.
    let raw = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: a successful pidfd_open returns a fresh descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

/// Watches a descriptor for readability. Call within a tokio runtime.
pub(crate) fn readable(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor until it is dropped.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}

/// Watches a file of a control group for changes (poll(2), POLLPRI). Call within a tokio runtime.
pub(crate) fn changing(file: File) -> std::io::Result<AsyncFd<File>> {
    // SAFETY: a `File` gives the same open descriptor until it is dropped.
    unsafe { AsyncFd::register_with_interest(file, Interest::PRIORITY) }.map_err(Into::into)
}

/// Has the directory the extended attribute `name` with the value `1`?
pub(crate) fn has_mark(path: &Path, name: &CStr) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let mut value = [0_u8; 1];
    // SAFETY: two C strings and a buffer with its length.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    };
    length == 1 && value == *b"1"
}

/// Sends `signal` to the process behind `pidfd`.
pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
    // SAFETY: a null siginfo is allowed, the descriptor is open.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as libc::c_int,
            std::ptr::null::<libc::c_void>(),
            0,
        )
    })
    .map(drop)
}

/// Lets the command start as leader of a new session, without descriptors above 2 that somebody
/// opened carelessly. Call before descriptors are mapped: hooks run in order, and the mapped ones
/// must stay.
pub(crate) fn start_session(command: &mut Command) {
    // SAFETY: setsid and close_range are async-signal-safe and touch no memory.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            Errno::result(libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            ))?;
            Ok(())
        });
    }
}
