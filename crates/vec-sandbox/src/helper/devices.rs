//! The private `/dev`.
//!
//! Invariants: only harmless nodes, bound from the host (a user namespace cannot make nodes); no
//! vsock, kvm, fuse or GPU node. The file system itself becomes read-only.

use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::{OrRefuse, Refusal};
use crate::plan::{Profile, SandboxPlan};
use crate::report::SetupStep;

/// Nodes bound one by one.
pub(crate) const NODES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];

const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Makes `dev` below the working directory; the nodes are bound later with the other sources.
pub(crate) fn make(plan: &SandboxPlan) -> Result<(), Refusal> {
    let step = SetupStep::Devices;
    std::fs::create_dir("dev").or_refuse(step, || "cannot make /dev".to_owned())?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    tmpfs("dev", flags, "size=64k,nr_inodes=64,mode=755", step)?;
    for (name, target) in LINKS {
        std::os::unix::fs::symlink(target, Path::new("dev").join(name))
            .or_refuse(step, || format!("cannot make /dev/{name}"))?;
    }
    std::fs::create_dir("dev/shm").or_refuse(step, || "cannot make /dev/shm".to_owned())?;
    let size = super::mounts::memory_options(plan, plan.shm, "mode=1777");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    tmpfs("dev/shm", flags, &size, step)?;
    if plan.profile == Profile::Engineer {
        terminals()?;
    }
    Ok(())
}

/// A private set of pseudo terminals: agents run shells in them.
fn terminals() -> Result<(), Refusal> {
    let step = SetupStep::Devices;
    std::fs::create_dir("dev/pts").or_refuse(step, || "cannot make /dev/pts".to_owned())?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(
        Some("devpts"),
        "dev/pts",
        Some("devpts"),
        flags,
        Some("newinstance,ptmxmode=0666,mode=0620"),
    )
    .or_refuse(step, || "cannot mount a private devpts".to_owned())?;
    std::os::unix::fs::symlink("pts/ptmx", "dev/ptmx")
        .or_refuse(step, || "cannot make /dev/ptmx".to_owned())
}

/// Mounts a memory file system at `path`, relative to the working directory.
pub(crate) fn tmpfs(
    path: &str,
    flags: MsFlags,
    options: &str,
    step: SetupStep,
) -> Result<(), Refusal> {
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))
        .or_refuse(step, || format!("cannot mount a tmpfs for /{path}"))
}
