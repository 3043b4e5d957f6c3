//! The attacks that are one probe each: what is tried, where, and which protection its positive
//! control goes without. Numbers are those of the threat list in `docs/attacks.md`.

use crate::verdict::Profile::{self, Engineer, Exec};

/// How the attack is shown to work where nothing forbids it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    /// The same probe with these protections lifted gets what it wanted.
    Lift(&'static [&'static str]),
    /// No control can be had without danger, or the kernel itself refuses everybody: why.
    None(&'static str),
}

/// One attack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Number in the threat list.
    pub(crate) case: u8,
    /// Function in `probes/`.
    pub(crate) probe: &'static str,
    /// Its arguments; `{…}` is filled in by the place.
    pub(crate) args: &'static [&'static str],
    /// Where it is tried.
    pub(crate) profiles: &'static [Profile],
    /// Its positive control.
    pub(crate) control: Control,
    /// Started by an ordinary user, where only one id can be mapped, a payload may end its own
    /// sandbox; it then has no verdict but a failure.
    pub(crate) self_harm: bool,
}

const BOTH: &[Profile] = &[Exec, Engineer];
const KERNEL: &str = "the kernel refuses it to every unprivileged process";

const fn row(
    case: u8,
    probe: &'static str,
    args: &'static [&'static str],
    control: Control,
) -> Row {
    Row {
        case,
        probe,
        args,
        profiles: BOTH,
        control,
        self_harm: false,
    }
}

const fn of(profiles: &'static [Profile], row: Row) -> Row {
    Row { profiles, ..row }
}

const fn self_harm(row: Row) -> Row {
    Row {
        self_harm: true,
        ..row
    }
}

use Control::{Lift, None as NoControl};

/// Every attack that one probe can make.
pub(crate) const ROWS: &[Row] = &[
    row(1, "write_read_only", &["{view}"], Lift(&["ro_binds"])),
    row(
        1,
        "write_system",
        &[],
        NoControl("system files belong to an id that is not mapped"),
    ),
    row(
        2,
        "write_sub_mount",
        &["{view}/sub"],
        Lift(&["ro_recursive"]),
    ),
    row(3, "mount_calls", &[], Lift(&["seccomp", "capabilities"])),
    row(
        3,
        "remount_rw",
        &["{view}"],
        NoControl("inherited mounts are locked by the kernel"),
    ),
    row(
        4,
        "new_user_namespace",
        &[],
        Lift(&["seccomp", "user_namespace_ceiling"]),
    ),
    row(
        4,
        "clone_user_namespace",
        &[],
        Lift(&["seccomp", "user_namespace_ceiling"]),
    ),
    row(5, "capabilities", &[], Lift(&["capabilities"])),
    row(5, "new_privileges", &[], Lift(&["no_new_privs", "seccomp"])),
    row(
        5,
        "become_root",
        &[],
        NoControl("id 0 is not mapped in any plan"),
    ),
    row(
        6,
        "touch_init",
        &[],
        Lift(&["seccomp", "two_ids", "dumpable"]),
    ),
    row(
        6,
        "read_init",
        &[],
        Lift(&["two_ids", "dumpable", "proc_subset"]),
    ),
    self_harm(row(
        7,
        "kill_init",
        &["9"],
        NoControl("the kernel keeps KILL from PID 1 in its own namespace"),
    )),
    row(
        7,
        "kill_init",
        &["15"],
        NoControl("init ignores TERM from inside whatever its id"),
    ),
    self_harm(row(7, "limit_init", &[], Lift(&["two_ids"]))),
    row(8, "host_processes", &["{host_marker}"], Lift(&["own_proc"])),
    row(8, "host_facts", &[], Lift(&["proc_subset"])),
    row(
        9,
        "kernel_settings",
        &[],
        NoControl("a success would change the host's kernel"),
    ),
    row(
        10,
        "make_nodes",
        &[],
        NoControl("the kernel refuses device nodes in a user namespace"),
    ),
    row(10, "host_devices", &[], Lift(&["dev_nodes"])),
    of(
        &[Engineer],
        row(11, "push_to_terminal", &["0x5412"], Lift(&["seccomp"])),
    ),
    of(
        &[Engineer],
        row(11, "push_to_terminal", &["0x100005412"], Lift(&["seccomp"])),
    ),
    row(
        11,
        "open_terminal",
        &[],
        NoControl("the driver itself has no terminal"),
    ),
    row(12, "old_calls", &[], Lift(&["seccomp"])),
    row(
        12,
        "x32_calls",
        &[],
        NoControl("this kernel may have no x32 entry"),
    ),
    row(
        13,
        "forbidden",
        &["add_key", "0", "0", "0", "0", "0"],
        Lift(&["seccomp"]),
    ),
    row(
        13,
        "forbidden",
        &["keyctl", "0", "-3", "0", "0", "0"],
        Lift(&["seccomp"]),
    ),
    row(13, "forbidden", &["userfaultfd", "1"], Lift(&["seccomp"])),
    row(
        13,
        "forbidden",
        &["io_uring_setup", "1", "0"],
        Lift(&["seccomp", "io_uring"]),
    ),
    row(13, "forbidden", &["memfd_secret", "0"], Lift(&["seccomp"])),
    row(13, "forbidden", &["bpf", "0", "0", "0"], NoControl(KERNEL)),
    row(
        13,
        "forbidden",
        &["perf_event_open", "0", "0", "-1", "-1", "0"],
        Lift(&["seccomp"]),
    ),
    row(
        13,
        "forbidden",
        &["fanotify_init", "0", "0"],
        NoControl(KERNEL),
    ),
    row(
        13,
        "forbidden",
        &["open_by_handle_at", "0", "0", "0"],
        NoControl(KERNEL),
    ),
    row(
        13,
        "forbidden",
        &["syslog", "3", "0", "0"],
        NoControl(KERNEL),
    ),
    row(
        14,
        "socket_family",
        &["40"],
        Lift(&["seccomp", "socket_families"]),
    ),
    row(14, "socket_family", &["17", "3"], NoControl(KERNEL)),
    row(
        14,
        "socket_family",
        &["38", "5"],
        NoControl("needs CRYPTO_USER_API in the kernel"),
    ),
    row(
        14,
        "socket_family",
        &["31"],
        NoControl("needs Bluetooth in the kernel"),
    ),
    row(
        14,
        "socket_family",
        &["29", "3"],
        NoControl("needs CAN in the kernel"),
    ),
    row(14, "socket_family", &["44", "3"], NoControl(KERNEL)),
    row(14, "socket_family", &["15", "3"], NoControl(KERNEL)),
    row(
        14,
        "socket_family",
        &["16", "3"],
        Lift(&["seccomp", "socket_families"]),
    ),
    row(14, "socket_family", &["2", "3"], NoControl(KERNEL)),
    of(
        &[Exec],
        row(
            15,
            "outside",
            &[],
            NoControl("a success would send packets to strangers"),
        ),
    ),
    of(
        &[Exec],
        row(
            15,
            "host_listener",
            &["127.0.0.1", "{port}"],
            Lift(&["net_ns", "seccomp"]),
        ),
    ),
    row(
        15,
        "interfaces",
        &[],
        NoControl("a machine may have lo alone"),
    ),
    of(
        &[Engineer],
        row(
            16,
            "host_listener",
            &["127.0.0.1", "{port}"],
            Lift(&["net_ns"]),
        ),
    ),
    row(
        16,
        "abstract_socket",
        &["{abstract}"],
        Lift(&["net_ns", "seccomp"]),
    ),
    row(
        16,
        "shared_memory",
        &["{shm_key}"],
        Lift(&["ipc", "seccomp"]),
    ),
    of(
        &[Engineer],
        row(23, "replace_service", &["/run/vec"], Lift(&["ro_binds"])),
    ),
    row(25, "descriptors", &[], Lift(&["close_fds"])),
    row(26, "stdout_is_file", &[], Lift(&["pipes_only"])),
    row(28, "forks", &["600"], Lift(&["nproc"])),
    row(28, "threads", &["600"], Lift(&["nproc"])),
    row(33, "inode_bomb", &["/tmp", "20000"], Lift(&["inodes"])),
    row(33, "inode_bomb", &["/dev/shm", "20000"], Lift(&["inodes"])),
    row(33, "fill", &["{work}", "96"], Lift(&["work_size"])),
    row(33, "big_file", &["{work}"], Lift(&["file_size"])),
    row(34, "inotify", &["100"], Lift(&["inotify_ceiling"])),
    row(
        34,
        "watches",
        &["20000"],
        Lift(&["inotify_ceiling", "inodes"]),
    ),
    row(36, "core_file", &["{work}"], Lift(&["core"])),
    row(
        41,
        "own_memory_map",
        &[],
        NoControl("a private mapping is the kernel's own protection"),
    ),
    row(42, "raise_limit", &[], NoControl(KERNEL)),
    row(43, "schedule", &[], NoControl(KERNEL)),
    row(
        44,
        "environment",
        &["{secret}"],
        NoControl("the helper gets no environment at all; the plan names every variable"),
    ),
    row(45, "personality", &[], Lift(&["seccomp"])),
    row(
        46,
        "huge_arguments",
        &[],
        NoControl("shows only that nothing breaks"),
    ),
    of(
        &[Engineer],
        row(
            47,
            "steal_port",
            &["{listener}"],
            NoControl("init holds the port before the payload starts"),
        ),
    ),
];
