//! System calls that `nix` does not wrap: clone3, fork, the new mount API, capabilities, pidfd
//! signals, wait4 with resource usage.
//!
//! Invariants: the only file of this crate with `unsafe`. Every function is a thin wrapper that
//! returns `Errno`; no policy here. `clone_into` and `fork_payload` may be called only in the
//! single-threaded helper: the child is a copy and runs ordinary Rust code.
#![expect(
    unsafe_code,
    reason = "thin wrappers of system calls without a safe binding"
)]

use std::ffi::{CStr, c_int, c_long, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

pub(crate) const CLONE_PIDFD: u64 = 0x1000;
pub(crate) const OPEN_TREE_CLONE: u32 = 1;
pub(crate) const AT_RECURSIVE: u32 = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
pub(crate) const MOUNT_ATTR_RDONLY: u64 = 1;
pub(crate) const MOUNT_ATTR_NOSUID: u64 = 2;
pub(crate) const MOUNT_ATTR_NODEV: u64 = 4;
pub(crate) const MOUNT_ATTR_NOEXEC: u64 = 8;

/// `struct clone_args`, first published version (64 bytes).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Which side of a fork we are on.
pub(crate) enum Cloned {
    Parent { pid: Pid, pidfd: OwnedFd },
    Child,
}

fn check(result: c_long) -> Result<c_long, Errno> {
    Errno::result(result)
}

/// Fork-like clone3 with a pidfd; the child continues after this call on a copy of the stack.
pub(crate) fn clone_into(namespaces: u64) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: namespaces | CLONE_PIDFD,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid clone_args of the size passed; no new stack is given, so this
    // behaves like fork(2). The helper has one thread, so no lock can be held by another.
    let pid =
        check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) })?;
    if pid == 0 {
        return Ok(Cloned::Child);
    }
    // SAFETY: in the parent the kernel stored a fresh descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Cloned::Parent {
        pid: Pid::from_raw(pid as i32),
        pidfd,
    })
}

/// fork(2): `None` in the child.
pub(crate) fn fork_payload() -> Result<Option<Pid>, Errno> {
    // SAFETY: called by the sandbox's init, which has one thread.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child)),
        nix::unistd::ForkResult::Child => Ok(None),
    }
}

/// Leaves the process without running destructors or exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// open_tree of the object behind `fd`.
pub(crate) fn open_tree(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | (libc::AT_EMPTY_PATH | libc::O_CLOEXEC) as u32;
    // SAFETY: the path is a valid empty C string, the descriptor is open.
    let raw =
        check(unsafe { libc::syscall(libc::SYS_open_tree, fd.as_raw_fd(), c"".as_ptr(), flags) })?;
    // SAFETY: a successful open_tree returns a fresh descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

/// Sets mount attributes and private propagation on the mount at `fd` + `path`.
pub(crate) fn mount_setattr(
    fd: BorrowedFd<'_>,
    path: &CStr,
    recursive: bool,
    set: u64,
) -> Result<(), Errno> {
    let attr = MountAttr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let recursive = if recursive { AT_RECURSIVE } else { 0 };
    let empty = if path.is_empty() {
        libc::AT_EMPTY_PATH as u32
    } else {
        0
    };
    // SAFETY: `path` is a C string and `attr` a mount_attr of the size passed; both outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            path.as_ptr(),
            empty | recursive,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Attaches the detached tree `tree` at `path`, relative to the working directory.
pub(crate) fn move_mount(tree: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    // SAFETY: both paths are C strings, the descriptor is open.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// Marks close-on-exec, or closes, every descriptor from `first` on.
pub(crate) fn close_from(first: u32, only_on_exec: bool) -> Result<(), Errno> {
    let flags = if only_on_exec {
        libc::CLOSE_RANGE_CLOEXEC
    } else {
        0
    };
    // SAFETY: the caller owns none of these descriptors through a Rust type that will be used again.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) }).map(drop)
}

/// Closes the descriptors from `first` to the one before `end`.
pub(crate) fn close_range(first: u32, end: u32) -> Result<(), Errno> {
    if first >= end {
        return Ok(());
    }
    // SAFETY: the caller owns none of these descriptors through a Rust type that will be used again.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) }).map(drop)
}

/// Takes ownership of an inherited descriptor by number.
pub(crate) fn take_fd(raw: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: F_GETFD has no memory arguments.
    Errno::result(unsafe { libc::fcntl(raw, libc::F_GETFD) })?;
    // SAFETY: the number is open and, by the helper's protocol, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Sends `signal` to the process behind `pidfd`.
pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
    // SAFETY: a null siginfo is allowed, the descriptor is open.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as c_int,
            std::ptr::null::<c_void>(),
            0,
        )
    })
    .map(drop)
}

/// What wait4 says about a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) status: i32,
    pub(crate) user_ms: u64,
    pub(crate) sys_ms: u64,
    pub(crate) max_rss_kib: u64,
}

/// wait4 without blocking; `None` while the child lives.
pub(crate) fn wait4(pid: Pid) -> Result<Option<Reaped>, Errno> {
    let mut status: c_int = 0;
    // SAFETY: an all-zero rusage is a valid value of plain integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-pointers are valid for the call.
    let pid = Errno::result(unsafe {
        libc::wait4(
            pid.as_raw(),
            &raw mut status,
            libc::WNOHANG | libc::__WALL,
            &raw mut usage,
        )
    })?;
    if pid == 0 {
        return Ok(None);
    }
    let ms = |t: libc::timeval| (t.tv_sec as u64) * 1000 + (t.tv_usec as u64) / 1000;
    Ok(Some(Reaped {
        status,
        user_ms: ms(usage.ru_utime),
        sys_ms: ms(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or_default(),
    }))
}

/// Reaps any child of init; `None` when none has ended. Gives (pid, raw status).
pub(crate) fn reap_any() -> Result<Option<(Pid, i32)>, Errno> {
    let mut status: c_int = 0;
    // SAFETY: the out-pointer is valid for the call.
    let pid =
        Errno::result(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) })?;
    Ok((pid != 0).then(|| (Pid::from_raw(pid), status)))
}

/// Every signal back to its default action (Rust's start-up ignores SIGPIPE, a parent may have
/// ignored SIGCHLD).
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid action; numbers that cannot be changed fail harmlessly.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Capability to signal processes of any mapped id.
pub(crate) const CAP_KILL: u32 = 5;

/// Empties the bounding set, which children inherit.
pub(crate) fn drop_bounding_set() -> Result<(), Errno> {
    for capability in 0..64 {
        // SAFETY: prctl with integer arguments only.
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // Past the last capability this kernel knows.
            Err(Errno::EINVAL) if capability > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Drops every capability from every set but the bounding one, and the ways to get one back; `keep`
/// stays permitted and effective until the next exec.
pub(crate) fn drop_capabilities(keep: Option<u32>) -> Result<(), Errno> {
    const PR_CAP_AMBIENT: c_int = 47;
    const PR_CAP_AMBIENT_CLEAR_ALL: c_int = 4;
    /// noroot, no_setuid_fixup, keep_caps locked off, no_cap_ambient_raise: all set and locked.
    const SECUREBITS_ALL_LOCKED: c_int = 0xEF;
    const CAPABILITY_V3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    // SAFETY: prctl with integer arguments only.
    Errno::result(unsafe { libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) })?;
    // SAFETY: prctl with integer arguments only.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS_ALL_LOCKED, 0, 0, 0) })?;
    let header = Header {
        version: CAPABILITY_V3,
        pid: 0,
    };
    let mut sets = [0_u32; 6];
    if let Some(kept) = keep {
        // Effective and permitted of the low word.
        sets[0] = 1 << kept;
        sets[1] = 1 << kept;
    }
    // SAFETY: version 3 reads a header and two triples of u32, both valid for the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) }).map(drop)
}

/// Makes every permitted capability survive an exec: what [`drop_capabilities`] is there to
/// prevent. Compiled into the attack suite's build alone.
#[cfg(feature = "lifted")]
pub(crate) fn keep_capabilities() -> Result<(), Errno> {
    const PR_CAP_AMBIENT: c_int = 47;
    const PR_CAP_AMBIENT_RAISE: c_int = 2;
    const CAPABILITY_V3: u32 = 0x2008_0522;
    let header = [CAPABILITY_V3, 0];
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 fills two triples of u32.
    check(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) })?;
    sets[2] = sets[1];
    sets[5] = sets[4];
    // SAFETY: version 3 reads a header and two triples of u32, both valid for the call.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) })?;
    for capability in 0..64 {
        // SAFETY: prctl with integer arguments only; unknown numbers are refused.
        let _ = unsafe { libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) };
    }
    Ok(())
}

/// Files made from here on belong to these ids.
pub(crate) fn file_ids(uid: u32, gid: u32) {
    // SAFETY: integer arguments only. Both calls answer with the id before, never with an error;
    // what they did not take shows in the first file.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
}

/// Opens a new file at `path` as descriptor 2.
#[cfg(feature = "lifted")]
pub(crate) fn stderr_to_file(path: &CStr) {
    // SAFETY: the path is a C string; both calls take integers otherwise.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600);
        libc::dup2(fd, 2);
    }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: an all-zero ifreq is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, valid for the call.
    Errno::result(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    })
    .map(drop)
}

/// Sets one resource limit, soft and hard, never above the present hard limit.
pub(crate) fn lower_limit(resource: u32, wanted: u64) -> Result<(), Errno> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the out-pointer is valid for the call.
    Errno::result(unsafe { libc::getrlimit(resource as _, &raw mut limit) })?;
    let value = wanted.min(limit.rlim_max);
    limit.rlim_cur = value;
    limit.rlim_max = value;
    // SAFETY: the pointer is valid for the call.
    Errno::result(unsafe { libc::setrlimit(resource as _, &raw const limit) }).map(drop)
}

/// prctl(PR_GET_SECCOMP) and the like are read from /proc; this one says whether a system call
/// is refused: the raw result of `number` with zero arguments.
pub(crate) fn try_syscall(number: c_long, first: c_long, second: c_long) -> Result<c_long, Errno> {
    // SAFETY: used by the self-check inside the sandbox with integer arguments only.
    check(unsafe { libc::syscall(number, first, second, 0, 0, 0, 0) })
}
