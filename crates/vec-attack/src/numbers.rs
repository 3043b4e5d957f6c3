//! Numbers of this architecture's system calls for the probes, a piece of System V memory, and the end of
//! a right.
#![expect(unsafe_code, reason = "shmget and prctl have no safe binding")]

use anyhow::{Context, Result};
use nix::errno::Errno;

/// Bytes of the bait.
const SHARED_BYTES: usize = 4096;

/// The table that `common.py` reads.
pub(crate) fn json() -> String {
    let calls = [
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("fsopen", libc::SYS_fsopen),
        ("open_tree", libc::SYS_open_tree),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("move_mount", libc::SYS_move_mount),
        ("unshare", libc::SYS_unshare),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("ptrace", libc::SYS_ptrace),
        ("kcmp", libc::SYS_kcmp),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("ioctl", libc::SYS_ioctl),
        ("add_key", libc::SYS_add_key),
        ("keyctl", libc::SYS_keyctl),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("memfd_secret", libc::SYS_memfd_secret),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("syslog", libc::SYS_syslog),
        ("socket", libc::SYS_socket),
        ("shmget", libc::SYS_shmget),
        ("inotify_init1", libc::SYS_inotify_init1),
        ("inotify_add_watch", libc::SYS_inotify_add_watch),
        ("personality", libc::SYS_personality),
    ];
    let pairs: Vec<String> = calls
        .iter()
        .map(|(name, number)| format!("\"{name}\": {number}"))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

/// A segment that everybody on the host may read; gives its key. Removed with the namespace, or
/// by the system's administrator: it holds nothing.
pub(crate) fn shared_memory() -> Result<i32> {
    let key = i32::try_from(std::process::id()).unwrap_or(1) | 0x5643_0000;
    // SAFETY: integer arguments only.
    let id = unsafe { libc::shmget(key, SHARED_BYTES, libc::IPC_CREAT | 0o666) };
    Errno::result(id).context("make a shared memory segment")?;
    Ok(key)
}

/// What this process executes from here on has no capability of ours.
pub(crate) fn give_up_ambient() -> Result<()> {
    const PR_CAP_AMBIENT: i32 = 47;
    const PR_CAP_AMBIENT_CLEAR_ALL: i32 = 4;
    // SAFETY: prctl with integer arguments only.
    let result = unsafe { libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    Errno::result(result).context("give up capabilities")?;
    Ok(())
}
