//! Giving the work directory to the sandbox's user (root start only).
//!
//! Invariants: walks by descriptor below the directory that was opened without following links;
//! changes directories, regular files and links themselves; refuses hard links, because the other
//! name may lie anywhere, and anything that is not a plain file.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{Gid, Uid, fchown, fchownat};

use super::{OrRefuse, Refusal};
use crate::plan::OuterIds;
use crate::report::SetupStep;

/// A work directory is prepared by us: a program and its brief, not a data set.
const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 64;

/// Changes the owner of `path` and everything below.
pub(crate) fn give(path: &Path, ids: OuterIds) -> Result<(), Refusal> {
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let top = openat2(AT_FDCWD, path, how)
        .or_refuse(SetupStep::WorkOwner, || format!("cannot open {path:?}"))?;
    let mut walk = Walk {
        shown: path,
        uid: Uid::from_raw(ids.uid),
        gid: Gid::from_raw(ids.gid),
        entries: 0,
    };
    walk.directory(top, 0)
}

struct Walk<'a> {
    shown: &'a Path,
    uid: Uid,
    gid: Gid,
    entries: usize,
}

impl Walk<'_> {
    fn directory(&mut self, fd: OwnedFd, depth: usize) -> Result<(), Refusal> {
        if depth > DEPTH_MAX {
            return Err(self.plain(&format!("is deeper than {DEPTH_MAX} directories")));
        }
        fchown(fd.as_fd(), Some(self.uid), Some(self.gid)).map_err(|e| self.failed(e))?;
        let mut dir = Dir::from_fd(fd).map_err(|e| self.failed(e))?;
        let names: Vec<_> = dir
            .iter()
            .map(|entry| entry.map(|e| e.file_name().to_owned()))
            .collect::<Result<_, Errno>>()
            .map_err(|e| self.failed(e))?;
        for name in names
            .iter()
            .filter(|n| !matches!(n.to_bytes(), b"." | b".."))
        {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(self.plain(&format!("holds more than {ENTRIES_MAX} entries")));
            }
            let stat = fstatat(&dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
                .map_err(|e| self.failed(e))?;
            match stat.st_mode & libc::S_IFMT {
                libc::S_IFDIR => {
                    let how =
                        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                    let below = nix::fcntl::openat(&dir, name.as_c_str(), how, Mode::empty())
                        .map_err(|e| self.failed(e))?;
                    self.directory(below, depth + 1)?;
                }
                libc::S_IFREG if stat.st_nlink > 1 => {
                    let what = format!("holds a hard link {name:?}; copy files into it instead");
                    return Err(self.plain(&what));
                }
                libc::S_IFREG | libc::S_IFLNK => fchownat(
                    &dir,
                    name.as_c_str(),
                    Some(self.uid),
                    Some(self.gid),
                    AtFlags::AT_SYMLINK_NOFOLLOW,
                )
                .map_err(|e| self.failed(e))?,
                _ => return Err(self.plain(&format!("holds {name:?}, which is no plain file"))),
            }
        }
        Ok(())
    }

    fn failed(&self, errno: Errno) -> Refusal {
        let what = format!(
            "cannot give the work directory {:?} to the sandbox",
            self.shown
        );
        Refusal::new(SetupStep::WorkOwner, errno, what)
    }

    fn plain(&self, problem: &str) -> Refusal {
        let what = format!("the work directory {:?} {problem}", self.shown);
        Refusal::plain(SetupStep::WorkOwner, what)
    }
}
