//! A process that confines itself before it touches a byte of untrusted input: it gives up memory
//! and processor beyond its caps, every new descriptor (files and sockets alike), privileges
//! through exec, and all system calls but the few that reading, computing and writing need.
//!
//! Portable: the calls named exist on x86-64, aarch64 and riscv64 (unverified on aarch64).

use std::collections::BTreeMap;

use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// What a confined process may still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Address space in bytes.
    pub address_space: u64,
    /// Processor seconds; beyond them SIGXCPU.
    pub cpu_s: u64,
}

/// Why a process could not be confined. It then must not read input.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A resource limit was refused.
    #[error("set resource limit {0:?}")]
    Limit(Resource, #[source] nix::Error),
    /// `PR_SET_NO_NEW_PRIVS` was refused.
    #[error("set no_new_privs")]
    NoNewPrivs(#[source] nix::Error),
    /// The kernel has no seccomp filters, or this architecture has no table.
    #[error("install the system call filter")]
    Filter(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Confines this process for good.
///
/// # Errors
/// [`ConfineError`] naming the step that the kernel refused.
pub fn confine(caps: Caps) -> Result<(), ConfineError> {
    let Caps {
        address_space,
        cpu_s,
    } = caps;
    // NOFILE 0 forbids new descriptors and leaves stdin, stdout and stderr usable.
    for (resource, soft, hard) in [
        (Resource::RLIMIT_CORE, 0, 0),
        // At the hard limit the signal is SIGKILL, which would look like a kill from outside.
        (Resource::RLIMIT_CPU, cpu_s, cpu_s.saturating_add(1)),
        (Resource::RLIMIT_FSIZE, 0, 0),
        (Resource::RLIMIT_AS, address_space, address_space),
        (Resource::RLIMIT_NOFILE, 0, 0),
    ] {
        setrlimit(resource, soft, hard).map_err(|source| ConfineError::Limit(resource, source))?;
    }
    set_no_new_privs().map_err(ConfineError::NoNewPrivs)?;
    let program = filter().map_err(|error| ConfineError::Filter(error.into()))?;
    apply_filter(&program).map_err(|error| ConfineError::Filter(error.into()))
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let allowed = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        allowed.into_iter().map(|call| (call, Vec::new())).collect();
    // Refused calls fail instead of killing: a libc that tries something optional lives on.
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
}
