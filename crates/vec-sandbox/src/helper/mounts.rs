//! The private root: an own small tmpfs, with everything in it bound or made by us.
//!
//! Invariants: nothing is ever mounted into a tree that somebody else could change (container CVEs
//! of that class); no host mount is visible after `pivot`. The working directory is the new root
//! while it is built. `/proc` is a new instance of our own pid namespace, never the host's.

use std::ffi::CString;
use std::fs::{File, create_dir, create_dir_all};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, umask};

use super::sources::{Kind, Source};
use super::{OrRefuse, Refusal, devices, fill, proc};
use crate::plan::{INSIDE_ID, Lift, SandboxPlan, TmpfsSize, WorkKind};
use crate::report::SetupStep;
use crate::sys;

/// Where the new root is put together; covered in this mount namespace only.
const STAGE: &str = "/tmp";

/// Builds the root in the working directory and enters it.
pub(crate) fn build(
    plan: &SandboxPlan,
    sources: Vec<Source>,
    already_detached: bool,
) -> Result<(), Refusal> {
    umask(Mode::from_bits_truncate(0o022));
    stage()?;
    devices::make(plan)?;
    create_dir("tmp").or_refuse(SetupStep::Root, || "cannot make /tmp".to_owned())?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = memory_options(plan, plan.tmp, "mode=1777");
    devices::tmpfs("tmp", flags, &options, SetupStep::Root)?;
    create_dir("proc").or_refuse(SetupStep::Proc, || "cannot make /proc".to_owned())?;
    if let WorkKind::Memory { size, .. } = plan.work.kind {
        make_work(plan, size)?;
    }
    for source in sources {
        if source.is_fill() {
            let (tree, _) = source.into_tree(already_detached)?;
            fill::copy(plan, &tree)?;
        } else {
            attach(source, already_detached)?;
        }
    }
    for file in &plan.files {
        let path = relative(&file.path);
        parents(&path)?;
        std::fs::write(&path, &file.text)
            .or_refuse(SetupStep::Root, || format!("cannot write {:?}", file.path))?;
    }
    for link in &plan.symlinks {
        let path = relative(&link.path);
        parents(&path)?;
        std::os::unix::fs::symlink(&link.target, &path)
            .or_refuse(SetupStep::Root, || format!("cannot make {:?}", link.path))?;
    }
    proc::with_ceilings(plan)?;
    pivot()
}

/// Options of a memory file system that the payload may fill.
pub(crate) fn memory_options(plan: &SandboxPlan, size: TmpfsSize, more: &str) -> String {
    if plan.lifts(Lift::Inodes) {
        return format!("size={},{more}", size.bytes);
    }
    format!("size={},nr_inodes={},{more}", size.bytes, size.inodes)
}

/// The memory work directory, empty, owned by the payload.
fn make_work(plan: &SandboxPlan, mut size: TmpfsSize) -> Result<(), Refusal> {
    let path = relative(&plan.work.dest);
    create_dir_all(&path).or_refuse(SetupStep::Root, || {
        format!("cannot make {:?}", plan.work.dest)
    })?;
    if plan.lifts(Lift::WorkSize) {
        size.bytes = 1 << 30;
    }
    let owner = format!("uid={INSIDE_ID},gid={INSIDE_ID},mode=0700");
    let options = memory_options(plan, size, &owner);
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    devices::tmpfs(&path.to_string_lossy(), flags, &options, SetupStep::Root)
}

fn stage() -> Result<(), Refusal> {
    let step = SetupStep::Root;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )
    .or_refuse(step, || "cannot make the mounts private".to_owned())?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = Some("size=4m,nr_inodes=4096,mode=755");
    mount(Some("sandbox"), STAGE, Some("tmpfs"), flags, options)
        .or_refuse(step, || format!("cannot mount a tmpfs on {STAGE}"))?;
    std::env::set_current_dir(STAGE).or_refuse(step, || format!("cannot enter {STAGE}"))
}

fn attach(source: Source, already_detached: bool) -> Result<(), Refusal> {
    let (tree, source) = source.into_tree(already_detached)?;
    let path = relative(&source.dest);
    parents(&path)?;
    let made = match source.kind {
        Kind::Directory => create_dir_all(&path),
        Kind::File => File::create(&path).map(drop),
    };
    let what = || format!("cannot bind {:?} at {:?}", source.path, source.dest);
    made.or_refuse(SetupStep::Bind, what)?;
    let target = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Refusal::new(SetupStep::Bind, Errno::EINVAL, what()))?;
    sys::move_mount(tree.as_fd(), &target).or_refuse(SetupStep::Bind, what)
}

fn pivot() -> Result<(), Refusal> {
    let step = SetupStep::Pivot;
    nix::unistd::pivot_root(".", ".").or_refuse(step, || "cannot pivot the root".to_owned())?;
    umount2(".", MntFlags::MNT_DETACH)
        .or_refuse(step, || "cannot detach the host's root".to_owned())?;
    std::env::set_current_dir("/").or_refuse(step, || "cannot enter the new root".to_owned())?;
    for path in [c"/", c"/dev"] {
        sys::mount_setattr(AT_FDCWD, path, false, sys::MOUNT_ATTR_RDONLY)
            .or_refuse(step, || format!("cannot make {path:?} read-only"))?;
    }
    Ok(())
}

fn parents(path: &Path) -> Result<(), Refusal> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => create_dir_all(parent)
            .or_refuse(SetupStep::Root, || {
                format!("cannot make /{}", parent.display())
            }),
        _ => Ok(()),
    }
}

pub(crate) fn relative(path: &Path) -> PathBuf {
    path.strip_prefix("/").unwrap_or(path).to_owned()
}
