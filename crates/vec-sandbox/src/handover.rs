//! Messages with descriptors over a Unix stream socket: from the daemon to the helper, from the
//! sandbox's init to the helper and from the helper to the daemon.
//!
//! Invariants: at most [`DESCRIPTORS_MAX`] descriptors come with one message; whatever arrives is
//! close-on-exec and owned.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use crate::plan::LISTENERS_MAX;

/// Most control groups of one execution: memory, pids, cpu and io of both hierarchies.
pub(crate) const GROUPS_MAX: usize = 8;
/// Plan, control pipe and every group, or the work directory and every listener.
pub(crate) const DESCRIPTORS_MAX: usize = 2 + GROUPS_MAX;
const _: () = assert!(LISTENERS_MAX < DESCRIPTORS_MAX, "of the hand-out");

/// Sends `bytes` and `fds` as one message.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    let parts = [IoSlice::new(bytes)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    let sent = sendmsg::<()>(socket.as_raw_fd(), &parts, control, flags, None)?;
    if sent == bytes.len() {
        return Ok(());
    }
    // A short message of a few hundred bytes does not fit: the reader has stopped reading.
    Err(Errno::EMSGSIZE)
}

/// Receives what is there: 0 at the end. Descriptors are added to `fds`.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            fds.extend(raw.into_iter().map(owned));
        }
    }
    Ok(message.bytes)
}

#[expect(unsafe_code, reason = "received descriptors come as numbers")]
fn owned(raw: RawFd) -> OwnedFd {
    // SAFETY: SCM_RIGHTS has just made this descriptor for us; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_together() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"inside").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        send(ours.as_fd(), b"one", &[file.as_fd()]).unwrap();
        send(ours.as_fd(), b"two", &[]).unwrap();
        drop(ours);
        let (mut buffer, mut fds) = ([0_u8; 16], Vec::new());
        let mut text = Vec::new();
        loop {
            let count = receive(theirs.as_fd(), &mut buffer, &mut fds).unwrap();
            if count == 0 {
                break;
            }
            text.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(text, b"onetwo");
        assert_eq!(fds.len(), 1);
        let mut read = String::new();
        std::fs::File::from(fds.remove(0))
            .read_to_string(&mut read)
            .unwrap();
        assert_eq!(read, "inside");
    }
}
