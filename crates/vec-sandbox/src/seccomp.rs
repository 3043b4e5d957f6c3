//! The system-call filters of a payload: a deny list that ends in EPERM, `clone3` → ENOSYS (glibc
//! then falls back to `clone`, whose flags can be judged), and x32 numbers → ENOSYS.
//!
//! Invariants: built per architecture from `libc` numbers; a call made through another
//! architecture's entry (int 0x80) kills the process. Integer arguments that the kernel reads as
//! 32 bits are compared as 32 bits (CVE-2019-10063). The aarch64 table is compiled only there:
//! unverified on aarch64.

use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as ArgLen, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that no candidate or agent needs and that reach deep into the kernel.
const DENIED: &[i64] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Namespaces and names.
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Keys, tracing, other processes' memory and descriptors.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_secret,
    // io_uring can open sockets without socket(2).
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine.
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    libc::SYS_personality,
    // Files by handle, marks on whole mounts, pages of others.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_vmsplice,
    libc::SYS_nfsservctl,
    // Numbers that are the same everywhere (since 5.x) and that `libc` may lack.
    443, // quotactl_fd
    450, // set_mempolicy_home_node
    457, // statmount
    458, // listmount
    459, // lsm_get_self_attr
    460, // lsm_set_self_attr
    467, // open_tree_attr
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    174, // create_module
    178, // query_module
    177, // get_kernel_syms
];
/// Unverified on aarch64: the generic table has none of the x86 relics; kexec_file_load is 294.
#[cfg(target_arch = "aarch64")]
const DENIED_HERE: &[i64] = &[294];

/// Socket families a payload may create: Unix, IPv4, IPv6. Not AF_VSOCK, which no network
/// namespace contains, and not AF_NETLINK: name service works without.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Terminal ioctls that inject input (TIOCSTI) or paste (TIOCLINUX).
const IOCTLS: [u64; 2] = [0x5412, 0x541C];

/// Namespace bits of clone(2), each one enough to be refused.
const CLONE_NEW: [u64; 8] = [
    0x80,        // time
    0x0002_0000, // mount
    0x0200_0000, // cgroup
    0x0400_0000, // uts
    0x0800_0000, // ipc
    0x1000_0000, // user
    0x2000_0000, // pid
    0x4000_0000, // net
];

/// The filters in the order in which they are installed.
pub(crate) fn filters() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let deny = SeccompFilter::new(
        deny_rules()?,
        SeccompAction::Allow,
        SeccompAction::Errno(Errno::EPERM as u32),
        arch,
    )?;
    let absent = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(Errno::ENOSYS as u32),
        arch,
    )?;
    let mut programs: Vec<BpfProgram> = vec![deny.try_into()?, absent.try_into()?];
    programs.extend(foreign_numbers());
    Ok(programs)
}

fn deny_rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED
        .iter()
        .chain(DENIED_HERE)
        .map(|&number| (number, Vec::new()))
        .collect();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let none_of = FAMILIES
            .iter()
            .map(|&family| dword(0, Op::Ne, family as u64))
            .collect::<Result<Vec<_>, _>>()?;
        rules.insert(call, vec![SeccompRule::new(none_of)?]);
    }
    let injecting = IOCTLS
        .iter()
        .map(|&command| SeccompRule::new(vec![dword(1, Op::Eq, command)?]))
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_ioctl, injecting);
    let new_namespace = CLONE_NEW
        .iter()
        .map(|&bit| {
            let has_bit = SeccompCondition::new(0, ArgLen::Qword, Op::MaskedEq(bit), bit)?;
            SeccompRule::new(vec![has_bit])
        })
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_clone, new_namespace);
    Ok(rules)
}

fn dword(index: u8, op: Op, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(index, ArgLen::Dword, op, value)
}

/// x32 calls have the x86-64 architecture word and numbers from 0x4000_0000 on, which the exact
/// comparisons above would let through on kernels with that ABI.
#[cfg(target_arch = "x86_64")]
fn foreign_numbers() -> Option<BpfProgram> {
    use seccompiler::sock_filter;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_GE: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let enosys = u32::from(SeccompAction::Errno(Errno::ENOSYS as u32));
    Some(vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_GE, 0, 1, X32_BIT),
        step(RETURN, 0, 0, enosys),
        step(RETURN, 0, 0, u32::from(SeccompAction::Allow)),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_numbers() -> Option<BpfProgram> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_compile_and_no_number_is_listed_twice() {
        let programs = filters().unwrap();
        assert!(programs.len() >= 2);
        assert!(programs.iter().all(|program| program.len() < 4096));
        let mut numbers: Vec<i64> = DENIED.iter().chain(DENIED_HERE).copied().collect();
        numbers.sort_unstable();
        let total = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), total);
    }
}
