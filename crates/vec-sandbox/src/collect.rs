//! Taking results out of a work directory that a hostile program has written.
//!
//! Invariants: called only when every process of the sandbox is dead. Every name is resolved by
//! openat2 beneath the directory, without links and without crossing mounts; only regular files
//! are read, never blocking; sizes, counts and depth are capped; what is left out is listed.

mod tree;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, fstat};
use vec_types::RelPath;

pub use tree::{Collected, CollectedFile, RejectReason, Rejected, TreeCaps, copy_tree};

/// Why a file or tree was not collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// There is no such file.
    #[error("{path} does not exist")]
    Missing {
        /// Path below the work directory.
        path: String,
    },
    /// Something else has that name.
    #[error("{path} is not a regular file")]
    NotRegular {
        /// Path below the work directory.
        path: String,
    },
    /// The path leads through a link or out of the directory.
    #[error("{path} leads through a link or out of the work directory")]
    Escapes {
        /// Path below the work directory.
        path: String,
    },
    /// Larger than allowed.
    #[error("{path} is larger than {cap_bytes} bytes")]
    TooLarge {
        /// Path below the work directory.
        path: String,
        /// The cap.
        cap_bytes: u64,
    },
    /// The file system failed.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

/// A directory that a hostile program has written.
#[derive(Debug, Clone, Copy)]
pub enum ResultDir<'a> {
    /// By its path on the host.
    Path(&'a Path),
    /// By descriptor: a memory work directory.
    Descriptor(BorrowedFd<'a>),
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for ResultDir<'a> {
    fn from(path: &'a P) -> Self {
        Self::Path(path.as_ref())
    }
}

impl<'a> From<BorrowedFd<'a>> for ResultDir<'a> {
    fn from(fd: BorrowedFd<'a>) -> Self {
        Self::Descriptor(fd)
    }
}

/// Copies the regular file `rel` below `dir` to the new file `dest`; gives its size in bytes.
///
/// # Errors
/// [`CollectError`]; on error `dest` does not exist.
pub fn copy_file<'a>(
    dir: impl Into<ResultDir<'a>>,
    rel: &RelPath,
    dest: &Path,
    cap_bytes: u64,
) -> Result<u64, CollectError> {
    let top = open_top(dir.into())?;
    let path = rel.as_str();
    let fd =
        open_beneath(&top, Path::new(path), READ_FILE).map_err(|errno| open_error(errno, path))?;
    let stat = fstat(&fd).map_err(|errno| io_error("look at", path, errno.into()))?;
    if kind(&stat) != libc::S_IFREG {
        return Err(CollectError::NotRegular {
            path: path.to_owned(),
        });
    }
    copy_open(File::from(fd), &stat, path, dest, cap_bytes)
}

const READ_FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

const READ_DIR: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

fn open_top(dir: ResultDir<'_>) -> Result<OwnedFd, CollectError> {
    let dir = match dir {
        ResultDir::Path(path) => path,
        ResultDir::Descriptor(fd) => {
            return open_beneath(&fd, Path::new("."), READ_DIR)
                .map_err(|errno| io_error("open", "the work directory", errno.into()));
        }
    };
    let shown = dir.display().to_string();
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, dir, how).map_err(|errno| io_error("open", &shown, errno.into()))
}

fn open_beneath(top: &impl AsFd, path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(flags).resolve(
        ResolveFlag::RESOLVE_BENEATH
            | ResolveFlag::RESOLVE_NO_SYMLINKS
            | ResolveFlag::RESOLVE_NO_MAGICLINKS
            | ResolveFlag::RESOLVE_NO_XDEV,
    );
    openat2(top, path, how)
}

fn open_error(errno: Errno, path: &str) -> CollectError {
    let path = path.to_owned();
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => CollectError::Missing { path },
        Errno::ELOOP | Errno::EXDEV => CollectError::Escapes { path },
        // A socket or a device without driver.
        Errno::ENXIO | Errno::ENODEV => CollectError::NotRegular { path },
        errno => io_error("open", &path, errno.into()),
    }
}

fn io_error(action: &'static str, path: &str, source: std::io::Error) -> CollectError {
    CollectError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

fn kind(stat: &FileStat) -> u32 {
    stat.st_mode & libc::S_IFMT
}

fn is_executable(stat: &FileStat) -> bool {
    stat.st_mode & libc::S_IXUSR != 0
}

fn copy_open(
    mut file: File,
    stat: &FileStat,
    path: &str,
    dest: &Path,
    cap_bytes: u64,
) -> Result<u64, CollectError> {
    let too_large = || CollectError::TooLarge {
        path: path.to_owned(),
        cap_bytes,
    };
    // A sparse file of a terabyte is refused before a byte is read.
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > cap_bytes {
        return Err(too_large());
    }
    let mode = if is_executable(stat) { 0o755 } else { 0o644 };
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(dest)
        .map_err(|e| io_error("write the copy of", path, e))?;
    let copied = copy_bytes(&mut file, &mut out, path, cap_bytes);
    match copied {
        Ok(size) if size <= cap_bytes => return Ok(size),
        Ok(_) => {}
        Err(error) => {
            remove(dest);
            return Err(error);
        }
    }
    remove(dest);
    Err(too_large())
}

/// Copies at most one byte more than the cap.
fn copy_bytes(
    file: &mut File,
    out: &mut File,
    path: &str,
    cap_bytes: u64,
) -> Result<u64, CollectError> {
    let mut buffer = vec![0_u8; 64 << 10];
    let mut limited = file.take(cap_bytes.saturating_add(1));
    let mut size = 0;
    loop {
        let count = limited
            .read(&mut buffer)
            .map_err(|e| io_error("read", path, e))?;
        if count == 0 {
            return Ok(size);
        }
        out.write_all(&buffer[..count])
            .map_err(|e| io_error("write the copy of", path, e))?;
        size += count as u64;
    }
}

fn remove(dest: &Path) {
    // The error that led here is the one to report.
    let _ = std::fs::remove_file(dest);
}
