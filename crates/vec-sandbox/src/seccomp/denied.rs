//! What no payload may call.
//!
//! Invariants: a list, no logic.

/// Calls that no candidate or agent needs and that reach deep into the kernel.
pub(super) const EVERYWHERE: &[i64] = &[
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

/// The same, of this architecture.
#[cfg(target_arch = "x86_64")]
pub(super) const HERE: &[i64] = &[
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
pub(super) const HERE: &[i64] = &[294];

/// io_uring can open sockets without socket(2).
pub(super) const IO_URING: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
