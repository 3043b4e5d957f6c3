//! Copying prepared files into a memory work directory.
//!
//! Invariants: walks by descriptor below a detached read-only tree, follows no link, takes
//! directories and regular files only; the work directory's own bounds end a copy that is too
//! large. What is made belongs to the payload.

use std::fs::File;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat, mkdirat};

use super::{OrRefuse, Refusal, mounts};
use crate::plan::{INIT_ID, INSIDE_ID, SandboxPlan};
use crate::report::SetupStep;
use crate::sys;

/// Directory levels of what we prepare.
const DEPTH_MAX: usize = 64;

/// Copies everything below `tree` into the plan's work directory.
pub(crate) fn copy(plan: &SandboxPlan, tree: &OwnedFd) -> Result<(), Refusal> {
    let init = nix::unistd::geteuid().as_raw();
    let to = nix::fcntl::open(
        &mounts::relative(&plan.work.dest),
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .or_refuse(SetupStep::Fill, || {
        "cannot open the work directory".to_owned()
    })?;
    let from = openat(tree, ".", DIRECTORY, Mode::empty())
        .or_refuse(SetupStep::Fill, || "cannot open what is copied".to_owned())?;
    if init == INIT_ID {
        sys::file_ids(INSIDE_ID, INSIDE_ID);
    }
    let copied = directory(from, &to, 0);
    if init == INIT_ID {
        sys::file_ids(INIT_ID, INIT_ID);
    }
    copied
}

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

fn directory(from: OwnedFd, to: &OwnedFd, depth: usize) -> Result<(), Refusal> {
    if depth > DEPTH_MAX {
        let what = format!("what is copied is deeper than {DEPTH_MAX} directories");
        return Err(Refusal::plain(SetupStep::Fill, what));
    }
    let mut dir = Dir::from_fd(from).or_refuse(SetupStep::Fill, || "cannot list".to_owned())?;
    let names: Vec<_> = dir
        .iter()
        .map(|entry| entry.map(|e| e.file_name().to_owned()))
        .collect::<Result<_, Errno>>()
        .or_refuse(SetupStep::Fill, || "cannot list".to_owned())?;
    for name in names {
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let shown = || format!("cannot copy {name:?} into the work directory");
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let entry = openat(&dir, name.as_c_str(), flags, Mode::empty())
            .or_refuse(SetupStep::Fill, shown)?;
        let stat = fstat(&entry).or_refuse(SetupStep::Fill, shown)?;
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFDIR => {
                mkdirat(to, name.as_c_str(), Mode::from_bits_truncate(0o755))
                    .or_refuse(SetupStep::Fill, shown)?;
                let below = openat(to, name.as_c_str(), DIRECTORY, Mode::empty())
                    .or_refuse(SetupStep::Fill, shown)?;
                directory(entry, &below, depth + 1)?;
            }
            libc::S_IFREG => {
                let mode = Mode::from_bits_truncate(stat.st_mode & 0o755 | 0o600);
                let made = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
                let copy =
                    openat(to, name.as_c_str(), made, mode).or_refuse(SetupStep::Fill, shown)?;
                std::io::copy(&mut File::from(entry), &mut File::from(copy))
                    .or_refuse(SetupStep::Fill, shown)?;
            }
            _ => {
                let what = format!("{name:?} is neither a directory nor a regular file");
                return Err(Refusal::plain(SetupStep::Fill, what));
            }
        }
    }
    Ok(())
}
