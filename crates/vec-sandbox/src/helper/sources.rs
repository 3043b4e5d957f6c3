//! Opening what will be bound, so that what was checked is what gets mounted.
//!
//! Invariants: no symbolic link and no magic link anywhere in a source path; directories, regular
//! files and our own device nodes only. Started by root, the helper clones detached trees before
//! the child exists (parents that the sandbox's user cannot enter do not matter). An ordinary
//! user's child opens the paths again in its own mount namespace and compares device and inode
//! (descriptors opened outside cannot be bound there).

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::fstat;

use super::{OrRefuse, Refusal};
use crate::plan::{Lift, SandboxPlan, WorkKind};
use crate::report::SetupStep;
use crate::sys;

/// Place of what is copied and bound nowhere; no plan can name it.
const FILL: &str = "fill";

/// What kind of object a source is: decides the mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// A regular file or device node.
    File,
}

/// One thing to be bound.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) dest: PathBuf,
    pub(crate) kind: Kind,
    attributes: u64,
    recursive: bool,
    identity: (u64, u64),
    /// A detached tree, or after [`Source::reopen`] an O_PATH descriptor in the child's namespace.
    handle: Option<OwnedFd>,
}

/// All sources of a plan, the system's devices included, in mount order.
pub(crate) fn open_all(plan: &SandboxPlan, detach: bool) -> Result<Vec<Source>, Refusal> {
    const RO: u64 = sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
    const RW: u64 = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
    const DEVICE: u64 = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NOEXEC;
    let mut sources = Vec::new();
    let shown = if plan.lifts(Lift::RoBinds) { RW } else { RO };
    let recursive = !plan.lifts(Lift::RoRecursive);
    for bind in &plan.ro_binds {
        sources.push(Source::open(
            &bind.source,
            &bind.dest,
            shown,
            detach,
            recursive,
        )?);
    }
    if let Some(path) = plan.work.kind.source() {
        let (dest, attributes) = match plan.work.kind {
            WorkKind::Host { .. } => (plan.work.dest.as_path(), RW),
            WorkKind::Memory { .. } => (Path::new(FILL), RO),
        };
        let work = Source::open(path, dest, attributes, detach, true)?;
        if work.kind != Kind::Directory {
            let what = format!("the work directory {path:?} is not a directory");
            return Err(Refusal::plain(SetupStep::Source, what));
        }
        sources.push(work);
    }
    if plan.lifts(Lift::OwnProc) {
        let proc = Path::new("/proc");
        sources.push(Source::open(proc, proc, RO, detach, true)?);
    }
    let more: &[&str] = if plan.lifts(Lift::DevNodes) {
        &["kmsg"]
    } else {
        &[]
    };
    for name in super::devices::NODES.iter().chain(more) {
        let path = Path::new("/dev").join(name);
        sources.push(Source::open(&path, &path, DEVICE, detach, true)?);
    }
    Ok(sources)
}

impl Source {
    fn open(
        path: &Path,
        dest: &Path,
        attributes: u64,
        detach: bool,
        recursive: bool,
    ) -> Result<Self, Refusal> {
        let fd = open_plain(path)?;
        let (kind, identity) = describe(&fd, path)?;
        let device = attributes & sys::MOUNT_ATTR_NODEV == 0;
        let kind = match kind {
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFREG => Kind::File,
            libc::S_IFCHR if device => Kind::File,
            _ => {
                let what = format!("{path:?} is neither a directory nor a regular file");
                return Err(Refusal::plain(SetupStep::Source, what));
            }
        };
        let mut source = Self {
            path: path.to_owned(),
            dest: dest.to_owned(),
            kind,
            attributes,
            recursive,
            identity,
            handle: None,
        };
        if detach {
            source.handle = Some(source.detached(&fd)?);
        }
        Ok(source)
    }

    fn detached(&self, fd: &OwnedFd) -> Result<OwnedFd, Refusal> {
        let tree = sys::open_tree(fd.as_fd()).or_refuse(SetupStep::Bind, || {
            format!("cannot clone the mount of {:?}", self.path)
        })?;
        sys::mount_setattr(tree.as_fd(), c"", self.recursive, self.attributes)
            .or_refuse(SetupStep::Bind, || {
                format!("cannot restrict the mount of {:?}", self.path)
            })?;
        Ok(tree)
    }

    /// Is it copied into the work directory instead of bound?
    pub(crate) fn is_fill(&self) -> bool {
        self.dest == Path::new(FILL)
    }

    /// In the child of an ordinary user: the same object again, in the new mount namespace.
    pub(crate) fn reopen(&mut self) -> Result<(), Refusal> {
        let fd = open_plain(&self.path)?;
        let (_, identity) = describe(&fd, &self.path)?;
        if identity != self.identity {
            let what = format!("{:?} was replaced while the sandbox was set up", self.path);
            return Err(Refusal::plain(SetupStep::Source, what));
        }
        self.handle = Some(fd);
        Ok(())
    }

    /// The tree to attach.
    pub(crate) fn into_tree(mut self, already_detached: bool) -> Result<(OwnedFd, Self), Refusal> {
        let Some(fd) = self.handle.take() else {
            let what = format!("{:?} was never opened", self.path);
            return Err(Refusal::plain(SetupStep::Source, what));
        };
        let tree = if already_detached {
            fd
        } else {
            self.detached(&fd)?
        };
        Ok((tree, self))
    }
}

fn open_plain(path: &Path) -> Result<OwnedFd, Refusal> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, path, how).map_err(|errno| {
        let why = match errno {
            Errno::ELOOP => " (a symbolic link is in the path)",
            _ => "",
        };
        Refusal::new(
            SetupStep::Source,
            errno,
            format!("cannot open {path:?}{why}"),
        )
    })
}

fn describe(fd: &OwnedFd, path: &Path) -> Result<(u32, (u64, u64)), Refusal> {
    let stat = fstat(fd).or_refuse(SetupStep::Source, || format!("cannot look at {path:?}"))?;
    Ok((stat.st_mode & libc::S_IFMT, (stat.st_dev, stat.st_ino)))
}
