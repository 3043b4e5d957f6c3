//! The private `/proc`, and the ceilings that are written through it.
//!
//! Invariants: it is a new instance of our own pid namespace, never the host's. The payload sees
//! processes and no facts of the host: the kernel leaves them out (`subset=pid`), or, where it does not
//! know that option, each is covered here. The self-test says which.

use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::{OrRefuse, Refusal};
use crate::plan::{Lift, SandboxPlan};
use crate::report::SetupStep;

/// Processes alone, others' hidden.
const PROCESSES_ONLY: &str = "subset=pid,hidepid=2";
/// For a kernel without `subset` (before Linux 5.8).
const PROCESSES_HIDDEN: &str = "hidepid=2";
/// What stays uncovered then: links into processes, and figures that programs ask for and that system
/// calls tell too.
const KEPT: [&str; 10] = [
    "self",
    "thread-self",
    "mounts",
    "net",
    "cpuinfo",
    "meminfo",
    "stat",
    "loadavg",
    "uptime",
    "filesystems",
];

/// Ceilings of this user namespace (sandbox.md A.3-14): a nested namespace is impossible, and
/// inotify, whose use is charged to the namespace's creator too, cannot starve the host.
const CEILINGS: [(&str, &str); 12] = [
    ("max_user_namespaces", "0"),
    ("max_mnt_namespaces", "0"),
    ("max_pid_namespaces", "0"),
    ("max_net_namespaces", "0"),
    ("max_ipc_namespaces", "0"),
    ("max_uts_namespaces", "0"),
    ("max_cgroup_namespaces", "0"),
    ("max_time_namespaces", "0"),
    ("max_inotify_instances", "16"),
    ("max_inotify_watches", "16384"),
    ("max_fanotify_groups", "0"),
    ("max_fanotify_marks", "0"),
];

/// Writes the ceilings through a whole `/proc` that exists only for this, then mounts the one
/// that stays.
pub(crate) fn with_ceilings(plan: &SandboxPlan) -> Result<(), Refusal> {
    if plan.lifts(Lift::OwnProc) {
        return Ok(());
    }
    attach(None).or_refuse(SetupStep::Proc, || "cannot mount an own /proc".to_owned())?;
    for (name, value) in CEILINGS {
        let of_inotify = name.contains("inotify");
        if of_inotify && plan.lifts(Lift::InotifyCeiling)
            || !of_inotify && plan.lifts(Lift::UserNamespaceCeiling)
        {
            continue;
        }
        match std::fs::write(Path::new("proc/sys/user").join(name), value) {
            Ok(()) => {}
            // This kernel has no such object, hence nothing to bound.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => {
                return Err(error).or_refuse(SetupStep::Ceilings, || {
                    format!("cannot write /proc/sys/user/{name}")
                });
            }
        }
    }
    if plan.lifts(Lift::ProcSubset) {
        return Ok(());
    }
    umount2("proc", MntFlags::empty()).or_refuse(SetupStep::Proc, || {
        "cannot unmount the first /proc".to_owned()
    })?;
    processes_only(plan)
}

/// The `/proc` that stays. An older kernel answers EINVAL to an option that it does not know.
fn processes_only(plan: &SandboxPlan) -> Result<(), Refusal> {
    let wanted = if plan.lifts(Lift::ProcOption) {
        "subset=unknown"
    } else {
        PROCESSES_ONLY
    };
    match attach(Some(wanted)) {
        Err(Errno::EINVAL) => {}
        other => {
            return other.or_refuse(SetupStep::Proc, || {
                "cannot mount /proc with subset=pid".to_owned()
            });
        }
    }
    attach(Some(PROCESSES_HIDDEN))
        .or_else(|_| attach(None))
        .or_refuse(SetupStep::Proc, || {
            "cannot mount a plain /proc instead of one with subset=pid".to_owned()
        })?;
    cover_facts()
}

fn attach(options: Option<&str>) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "proc", Some("proc"), flags, options)
}

/// Puts an empty read-only directory over each directory of a plain `/proc` that is no process, and
/// the null device over each file.
fn cover_facts() -> Result<(), Refusal> {
    let step = SetupStep::Proc;
    let unread = || "cannot read the plain /proc".to_owned();
    let names = std::fs::read_dir("proc")
        .and_then(|entries| {
            let named = |entry: std::io::Result<std::fs::DirEntry>| {
                let entry = entry?;
                Ok((entry.path(), entry.file_type()?))
            };
            entries.map(named).collect::<std::io::Result<Vec<_>>>()
        })
        .or_refuse(step, unread)?;
    for (path, kind) in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if KEPT.contains(&&*name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let covered = if kind.is_dir() {
            let options = Some("size=4k,nr_inodes=2,mode=555");
            let flags = flags | MsFlags::MS_RDONLY;
            mount(Some("tmpfs"), &path, Some("tmpfs"), flags, options)
        } else {
            mount(
                Some("dev/null"),
                &path,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
        };
        covered.or_refuse(step, || format!("cannot cover /{}", path.display()))?;
    }
    Ok(())
}
