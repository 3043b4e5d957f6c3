//! Collecting a whole directory tree within caps.
//!
//! Invariants: as of [`super`]; the walk looks at a bounded number of entries, level by level and
//! sorted by name within a directory, so that what lies higher is taken first and the result does
//! not depend on the file system's order. What it leaves out is listed with its reason.

use std::collections::{BinaryHeap, VecDeque};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::sys::stat::{FileStat, fstat};
use vec_types::RelPath;

use super::{
    CollectError, READ_DIR, READ_FILE, ResultDir, copy_open, io_error, is_executable, kind,
    open_beneath, open_top,
};

/// How many left-out entries are listed; more are only counted in the last one.
const REJECTED_MAX: usize = 1000;
/// Entries looked at per collected file allowed: bounds the walk over a bomb of odd entries.
const VISITS_PER_FILE: u64 = 4;
const VISITS_MIN: u64 = 1000;
/// Names read of one directory at most; of more than may be visited the first by name are kept.
const NAMES_MAX: u64 = 1 << 20;

/// Caps of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeCaps {
    /// Files taken at most.
    pub files: u64,
    /// Directory levels at most; 1 = only files directly in the directory.
    pub depth: u32,
    /// Bytes per file at most.
    pub file_bytes: u64,
    /// Bytes of all files at most.
    pub total_bytes: u64,
}

/// One file that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedFile {
    /// Path below the directory, a valid [`RelPath`].
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// It had the owner's execute bit.
    pub executable: bool,
}

/// Why an entry was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// Not UTF-8, a control character, or too long.
    BadName,
    /// A symbolic link.
    Symlink,
    /// FIFO, socket or device.
    NotRegular,
    /// Deeper than allowed.
    TooDeep,
    /// Larger than allowed.
    TooLarge,
    /// A file or byte cap of the tree was reached, or there were too many entries to look at.
    CapReached,
    /// It cannot be opened or read.
    Unreadable,
}

/// One entry that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Path below the directory, with odd characters replaced.
    pub path: String,
    /// Why.
    pub reason: RejectReason,
}

/// Result of [`copy_tree`]; both lists sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// Taken.
    pub files: Vec<CollectedFile>,
    /// Left out.
    pub rejected: Vec<Rejected>,
}

/// Copies every regular file below `dir` into the directory `dest`, which is made, or must be
/// empty. Entries that are no plain file within the caps are listed, not copied.
///
/// # Errors
/// The directories themselves cannot be used, or writing fails. Files copied before stay.
pub fn copy_tree<'a>(
    dir: impl Into<ResultDir<'a>>,
    dest: &Path,
    caps: &TreeCaps,
) -> Result<Collected, CollectError> {
    let top = open_top(dir.into())?;
    let shown = dest.display().to_string();
    std::fs::create_dir_all(dest).map_err(|e| io_error("make", &shown, e))?;
    let mut walk = Walk {
        top: &top,
        dest,
        caps,
        visits: 0,
        bytes: 0,
        waiting: VecDeque::new(),
        collected: Collected::default(),
    };
    walk.everything()?;
    let mut collected = walk.collected;
    collected.files.sort_by(|a, b| a.path.cmp(&b.path));
    collected.rejected.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(collected)
}

struct Walk<'a> {
    top: &'a OwnedFd,
    dest: &'a Path,
    caps: &'a TreeCaps,
    visits: u64,
    bytes: u64,
    /// Directories to look at, with their level. By name: any number of them may be open else.
    waiting: VecDeque<(RelPath, u32)>,
    collected: Collected,
}

impl Walk<'_> {
    fn everything(&mut self) -> Result<(), CollectError> {
        let fd = open_beneath(self.top, Path::new("."), READ_DIR)
            .map_err(|errno| io_error("list", ".", errno.into()))?;
        self.directory(fd, "", 1)?;
        while let Some((path, depth)) = self.waiting.pop_front() {
            let text = path.as_str();
            match open_beneath(self.top, Path::new(text), READ_DIR) {
                Ok(fd) => self.directory(fd, text, depth)?,
                Err(_) => self.reject(text.to_owned(), RejectReason::Unreadable),
            }
        }
        Ok(())
    }

    /// The first names of a directory, sorted; as many as may still be visited.
    fn names(&mut self, dir: &mut Dir, prefix: &str) -> Result<Vec<CString>, CollectError> {
        let shown = if prefix.is_empty() { "." } else { prefix };
        let visits_max = self.caps.files.saturating_mul(VISITS_PER_FILE);
        let left = visits_max.max(VISITS_MIN).saturating_sub(self.visits);
        let (mut names, mut read) = (BinaryHeap::new(), 0_u64);
        for entry in dir.iter() {
            let entry = entry.map_err(|e| io_error("list", shown, e.into()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            read += 1;
            if read > NAMES_MAX {
                break;
            }
            names.push(name.to_owned());
            if names.len() as u64 > left {
                // The last by name.
                let _dropped = names.pop();
            }
        }
        if read > names.len() as u64 {
            self.reject(join(prefix, "…"), RejectReason::CapReached);
        }
        self.visits += names.len() as u64;
        Ok(names.into_sorted_vec())
    }

    fn directory(&mut self, fd: OwnedFd, prefix: &str, depth: u32) -> Result<(), CollectError> {
        let shown = if prefix.is_empty() { "." } else { prefix };
        let mut dir = Dir::from_fd(fd).map_err(|e| io_error("list", shown, e.into()))?;
        let names = self.names(&mut dir, prefix)?;
        for name in names {
            let lossy = join(
                prefix,
                &name.to_string_lossy().replace(char::is_control, "?"),
            );
            let path = name.to_str().ok().map(|name| join(prefix, name));
            match path.and_then(|path| path.parse::<RelPath>().ok()) {
                Some(path) => self.entry(&dir, &path, depth)?,
                None => self.reject(lossy, RejectReason::BadName),
            }
        }
        Ok(())
    }

    fn entry(&mut self, dir: &Dir, path: &RelPath, depth: u32) -> Result<(), CollectError> {
        let text = path.as_str();
        let name = Path::new(text.rsplit('/').next().unwrap_or(text));
        let fd = match open_beneath(dir, name, READ_FILE) {
            Ok(fd) => fd,
            Err(errno) => {
                let reason = match errno {
                    Errno::ELOOP => RejectReason::Symlink,
                    Errno::ENXIO | Errno::ENODEV => RejectReason::NotRegular,
                    _ => RejectReason::Unreadable,
                };
                self.reject(text.to_owned(), reason);
                return Ok(());
            }
        };
        let Ok(stat) = fstat(&fd) else {
            self.reject(text.to_owned(), RejectReason::Unreadable);
            return Ok(());
        };
        match kind(&stat) {
            libc::S_IFDIR if depth >= self.caps.depth => {
                self.reject(text.to_owned(), RejectReason::TooDeep);
                Ok(())
            }
            libc::S_IFDIR => {
                self.waiting.push_back((path.clone(), depth + 1));
                Ok(())
            }
            libc::S_IFREG => self.file(File::from(fd), &stat, path),
            _ => {
                self.reject(text.to_owned(), RejectReason::NotRegular);
                Ok(())
            }
        }
    }

    fn file(&mut self, file: File, stat: &FileStat, path: &RelPath) -> Result<(), CollectError> {
        let text = path.as_str();
        let left = self.caps.total_bytes - self.bytes;
        if self.collected.files.len() as u64 >= self.caps.files {
            self.reject(text.to_owned(), RejectReason::CapReached);
            return Ok(());
        }
        let dest: PathBuf = path.under(self.dest);
        if let Some(parent) = dest.parent() {
            std::fs::create_dir_all(parent).map_err(|e| io_error("make the place of", text, e))?;
        }
        match copy_open(file, stat, text, &dest, self.caps.file_bytes.min(left)) {
            Ok(size) => {
                self.bytes += size;
                self.collected.files.push(CollectedFile {
                    path: text.to_owned(),
                    size,
                    executable: is_executable(stat),
                });
            }
            Err(CollectError::TooLarge { .. }) => {
                let own_fault =
                    u64::try_from(stat.st_size).unwrap_or(u64::MAX) > self.caps.file_bytes;
                let reason = if own_fault {
                    RejectReason::TooLarge
                } else {
                    RejectReason::CapReached
                };
                self.reject(text.to_owned(), reason);
            }
            Err(CollectError::Io { action: "read", .. }) => {
                self.reject(text.to_owned(), RejectReason::Unreadable);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn reject(&mut self, path: String, reason: RejectReason) {
        let rejected = &mut self.collected.rejected;
        match rejected.len() {
            0..REJECTED_MAX => rejected.push(Rejected { path, reason }),
            REJECTED_MAX => rejected.push(Rejected {
                path: "… and more".to_owned(),
                reason: RejectReason::CapReached,
            }),
            _ => {}
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const CAPS: TreeCaps = TreeCaps {
        files: 1000,
        depth: 5,
        file_bytes: 1000,
        total_bytes: 1 << 20,
    };

    fn taken(dir: &Path, caps: &TreeCaps) -> (Vec<String>, Vec<Rejected>) {
        let dest = tempfile::tempdir().unwrap();
        let collected = copy_tree(dir, dest.path(), caps).unwrap();
        let files = collected.files.into_iter().map(|file| file.path);
        (files.collect(), collected.rejected)
    }

    #[test]
    fn higher_files_win_over_a_flood_below_and_the_cap_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let junk = dir.path().join("a/b");
        fs::create_dir_all(&junk).unwrap();
        for n in 0..5000 {
            fs::write(junk.join(format!("{n:04}")), "x").unwrap();
        }
        for name in ["run.py", "METHOD.md", "a/z.py"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let (files, rejected) = taken(dir.path(), &CAPS);
        assert_eq!(files.len(), 1000);
        for name in ["run.py", "METHOD.md", "a/z.py", "a/b/0000", "a/b/0996"] {
            assert!(files.iter().any(|file| file == name), "{name}");
        }
        assert!(
            rejected
                .iter()
                .all(|r| r.reason == RejectReason::CapReached)
        );
        for name in ["a/b/…", "a/b/0997"] {
            assert!(rejected.iter().any(|r| r.path == name), "{name}");
        }
        assert_eq!((files, rejected), taken(dir.path(), &CAPS));
        // Bytes, too, go to what lies higher.
        let caps = TreeCaps {
            total_bytes: 3,
            ..CAPS
        };
        let (files, _) = taken(dir.path(), &caps);
        assert_eq!(files, ["METHOD.md", "a/z.py", "run.py"]);
    }

    #[test]
    fn of_too_many_entries_the_first_by_name_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        for n in (0..1200).rev() {
            fs::write(dir.path().join(format!("{n:04}")), "x").unwrap();
        }
        let caps = TreeCaps { files: 10, ..CAPS };
        let (files, rejected) = taken(dir.path(), &caps);
        let first: Vec<String> = (0..10).map(|n| format!("{n:04}")).collect();
        assert_eq!(files, first);
        assert!(rejected.iter().any(|r| r.path == "…"), "the rest is told");
        assert!(!rejected.iter().any(|r| r.path == "1000"), "not looked at");
    }
}
