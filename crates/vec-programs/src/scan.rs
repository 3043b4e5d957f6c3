//! Reading a program directory that untrusted code wrote: regular files and directories only,
//! plain names, bounded in number, size and depth.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use vec_types::RelPath;

use crate::ProgramsError;

/// Files of one program, at most.
pub const FILES_MAX: usize = 2_000;
/// Bytes of one file, at most.
pub const FILE_BYTES_MAX: u64 = 20_000_000;
/// Bytes of one program, at most.
pub const TOTAL_BYTES_MAX: u64 = 64_000_000;
/// Directories on the way to a file, at most.
pub const DEPTH_MAX: usize = 32;

// nix's flags without its name: open must not wait for a pipe's other end or follow a link.
const OPEN_FLAGS: i32 = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Has it the owner's execution bit.
    pub executable: bool,
}

/// A program: files by `/`-separated path.
pub type ProgramFiles = BTreeMap<RelPath, ProgramFile>;

/// Reads all files below `dir`. Empty directories do not count.
///
/// # Errors
/// [`ProgramsError::BadFile`] and [`ProgramsError::TooBig`] for what no program may hold; I/O
/// errors.
pub fn read_program_dir(dir: &Path) -> Result<ProgramFiles, ProgramsError> {
    let mut scan = Scan {
        files: ProgramFiles::new(),
        bytes: 0,
    };
    scan.dir(dir, "", 0)?;
    Ok(scan.files)
}

pub(crate) fn check_name(name: &OsStr) -> Result<&str, &'static str> {
    let name = name.to_str().ok_or("has a name that is not UTF-8")?;
    if name.chars().any(char::is_control) {
        return Err("has a name with control characters");
    }
    // What git takes for its own directory, also on other file systems.
    let plain = name.trim_end_matches([' ', '.']);
    if plain.eq_ignore_ascii_case(".git") || plain.eq_ignore_ascii_case("git~1") {
        return Err("has a name that belongs to git");
    }
    Ok(name)
}

struct Scan {
    files: ProgramFiles,
    bytes: u64,
}

impl Scan {
    fn dir(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), ProgramsError> {
        if depth > DEPTH_MAX {
            let what = format!("lies below more than {DEPTH_MAX} directories");
            return Err(ProgramsError::bad_file(Path::new(prefix), what));
        }
        let entries = fs::read_dir(dir).map_err(ProgramsError::io("read", dir))?;
        for entry in entries {
            let entry = entry.map_err(ProgramsError::io("read", dir))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = check_name(&name).map_err(|what| ProgramsError::bad_file(&path, what))?;
            let below = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}/{name}")
            };
            let kind = entry
                .file_type()
                .map_err(ProgramsError::io("stat", &path))?;
            if kind.is_dir() {
                self.dir(&path, &below, depth + 1)?;
            } else if kind.is_file() {
                self.file(&path, &below)?;
            } else {
                let what = "is not a regular file or directory";
                return Err(ProgramsError::bad_file(Path::new(&below), what));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, below: &str) -> Result<(), ProgramsError> {
        let name: RelPath = below
            .parse()
            .map_err(|_| ProgramsError::bad_file(Path::new(below), "has too long a path"))?;
        let too_big = |path: &Path, limit, unit| ProgramsError::TooBig {
            path: path.to_owned(),
            limit,
            unit,
        };
        if self.files.len() == FILES_MAX {
            return Err(too_big(Path::new("program"), FILES_MAX as u64, "files"));
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OPEN_FLAGS)
            .open(path)
            .map_err(ProgramsError::io("open", path))?;
        let meta = file.metadata().map_err(ProgramsError::io("stat", path))?;
        if !meta.is_file() {
            return Err(ProgramsError::bad_file(
                Path::new(below),
                "is not a regular file",
            ));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(ProgramsError::io("read", path))?;
        let length = bytes.len() as u64;
        if length > FILE_BYTES_MAX {
            return Err(too_big(Path::new(below), FILE_BYTES_MAX, "bytes"));
        }
        self.bytes += length;
        if self.bytes > TOTAL_BYTES_MAX {
            return Err(too_big(Path::new("program"), TOTAL_BYTES_MAX, "bytes"));
        }
        let executable = meta.permissions().mode() & 0o100 != 0;
        self.files.insert(name, ProgramFile { bytes, executable });
        Ok(())
    }
}
