//! Files on their way into the run directory, and the sync file primitives that every writer
//! here uses. Hashes are streamed.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use libc::O_NOFOLLOW;
use vec_types::{Digest, Hasher, RelPath};
use walkdir::WalkDir;

use crate::StoreError;

/// Where the bytes of a new file are.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a regular file below the run's spool directory, which is renamed in.
    Spool(PathBuf),
}

/// A file that a commit brings in. Registered files are read-only (0444).
#[derive(Debug, Clone)]
pub struct NewFile {
    pub(crate) path: RelPath,
    pub(crate) content: Content,
    pub(crate) may_replace: bool,
    pub(crate) once: bool,
}

/// How much [`NewFile::tree`] takes.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Regular files, at most.
    pub files_max: usize,
    /// Sum of their sizes, at most.
    pub bytes_max: u64,
}

impl NewFile {
    /// A file that is new. If the path is registered already (an effect repeated after a crash):
    /// equal bytes change nothing, other bytes move the old file below `orphans/`.
    #[must_use]
    pub fn create(path: RelPath, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path,
            content: Content::Bytes(bytes.into()),
            may_replace: false,
            once: false,
        }
    }

    /// A file that takes the place of an earlier version, or is new.
    #[must_use]
    pub fn replace(path: RelPath, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path,
            content: Content::Bytes(bytes.into()),
            may_replace: true,
            once: false,
        }
    }

    /// As [`NewFile::create`], from a file below the spool directory.
    #[must_use]
    pub fn from_spool(path: RelPath, file: PathBuf) -> Self {
        Self {
            path,
            content: Content::Spool(file),
            may_replace: false,
            once: false,
        }
    }

    /// A file that the first writer makes for good, by link(2): where the path is registered
    /// already, this one is dropped, whatever its bytes (PVW-05).
    #[must_use]
    pub fn once(path: RelPath, content: Content) -> Self {
        Self {
            path,
            content,
            may_replace: false,
            once: true,
        }
    }

    /// Where it goes.
    #[must_use]
    pub const fn path(&self) -> &RelPath {
        &self.path
    }

    /// Every regular file below `dir` (which lies in the spool directory), to come below `dest`.
    ///
    /// # Errors
    /// [`StoreError::BadFile`] for anything that is not a directory or a regular file, for names
    /// that no run directory may hold, and past the limits; I/O errors.
    pub fn tree(dest: &RelPath, dir: &Path, limits: TreeLimits) -> Result<Vec<Self>, StoreError> {
        let mut files = Vec::new();
        let mut bytes = 0_u64;
        for entry in WalkDir::new(dir).follow_links(false).sort_by_file_name() {
            let entry = entry.map_err(|error| walk_error(dir, error))?;
            if entry.file_type().is_dir() {
                continue;
            }
            let path = entry.path();
            if !entry.file_type().is_file() {
                return Err(StoreError::bad_file(path, "is not a regular file"));
            }
            let name = path.strip_prefix(dir).ok().and_then(Path::to_str);
            let target = name.and_then(|name| format!("{dest}/{name}").parse().ok());
            let target = target
                .ok_or_else(|| StoreError::bad_file(path, "has a name that no run may hold"))?;
            let size = entry.metadata().map_err(|error| walk_error(dir, error))?;
            bytes = bytes.saturating_add(size.len());
            files.push(Self::from_spool(target, path.to_owned()));
            if files.len() > limits.files_max || bytes > limits.bytes_max {
                let TreeLimits {
                    files_max,
                    bytes_max,
                } = limits;
                return Err(StoreError::bad_file(
                    dir,
                    format!("holds more than {files_max} files or {bytes_max} bytes"),
                ));
            }
        }
        Ok(files)
    }
}

pub(crate) fn walk_error(dir: &Path, error: walkdir::Error) -> StoreError {
    let path = error.path().unwrap_or(dir).to_owned();
    let source = error
        .into_io_error()
        .unwrap_or_else(|| io::Error::other("loop of links"));
    StoreError::Io {
        action: "walk",
        path,
        source,
    }
}

const READ_CHUNK: usize = 256 * 1024;

/// Size and digest of a regular file, streamed; a symlink is refused.
///
/// # Errors
/// I/O errors.
pub fn hash_file(path: &Path) -> Result<(u64, Digest), StoreError> {
    let mut hasher = Hasher::default();
    let size = feed(path, 0, u64::MAX, &mut hasher)?;
    Ok((size, hasher.finish()))
}

/// Size of a regular file, and the digest of each of its prefixes of the lengths given (in
/// rising order; `None` where the file is shorter).
///
/// # Errors
/// I/O errors.
pub fn hash_prefixes(
    path: &Path,
    lengths: &[u64],
) -> Result<(u64, Vec<Option<Digest>>), StoreError> {
    let size = fs::metadata(path)
        .map_err(StoreError::io("stat", path))?
        .len();
    let mut hasher = Hasher::default();
    let mut done = 0;
    let mut digests = Vec::with_capacity(lengths.len());
    for &length in lengths {
        if length > size || length < done {
            digests.push(None);
            continue;
        }
        done += feed(path, done, length - done, &mut hasher)?;
        digests.push((done == length).then(|| hasher.clone().finish()));
    }
    Ok((size, digests))
}

/// Feeds at most `length` bytes from `offset` on; returns how many there were.
pub(crate) fn feed(
    path: &Path,
    offset: u64,
    length: u64,
    hasher: &mut Hasher,
) -> Result<u64, StoreError> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = open_regular(path)?;
    file.seek(SeekFrom::Start(offset))
        .map_err(StoreError::io("read", path))?;
    let mut chunk = vec![0; READ_CHUNK];
    let mut total = 0;
    while total < length {
        let want = usize::try_from(length - total).map_or(READ_CHUNK, |n| n.min(READ_CHUNK));
        let got = file
            .read(&mut chunk[..want])
            .map_err(StoreError::io("read", path))?;
        if got == 0 {
            break;
        }
        hasher.update(&chunk[..got]);
        total += got as u64;
    }
    Ok(total)
}

pub(crate) fn open_regular(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(StoreError::io("open", path))?;
    let meta = file.metadata().map_err(StoreError::io("stat", path))?;
    if meta.is_file() {
        Ok(file)
    } else {
        Err(StoreError::bad_file(path, "is not a regular file"))
    }
}

pub(crate) fn sync_file(path: &Path) -> Result<(), StoreError> {
    open_regular(path)?
        .sync_all()
        .map_err(StoreError::io("sync", path))
}

pub(crate) fn sync_dir(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::io("sync", path))
}

/// Makes `dir` and its missing ancestors and notes every directory that got a new entry.
pub(crate) fn ensure_dir(dir: &Path, touched: &mut BTreeSet<PathBuf>) -> Result<(), StoreError> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        ensure_dir(parent, touched)?;
        touched.insert(parent.to_owned());
    }
    match fs::create_dir(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(StoreError::io("create", dir)(error)),
    }
}

/// Renames and notes both directories. `to` must not exist unless `replace`.
pub(crate) fn move_file(
    from: &Path,
    to: &Path,
    touched: &mut BTreeSet<PathBuf>,
) -> Result<(), StoreError> {
    if let Some(dir) = to.parent() {
        ensure_dir(dir, touched)?;
        touched.insert(dir.to_owned());
    }
    fs::rename(from, to).map_err(StoreError::io("rename", from))?;
    if let Some(dir) = from.parent() {
        touched.insert(dir.to_owned());
    }
    Ok(())
}

pub(crate) fn sync_dirs(touched: &BTreeSet<PathBuf>) -> Result<(), StoreError> {
    touched.iter().try_for_each(|dir| sync_dir(dir))
}

/// Removes everything below `dir`; the directory itself stays (and comes to be).
pub(crate) fn empty_dir(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::io("empty", dir)(error)),
    }
    fs::create_dir_all(dir).map_err(StoreError::io("create", dir))
}

/// Has the file other names, so that somebody else may still write it?
pub(crate) fn is_linked(path: &Path) -> Result<bool, StoreError> {
    let meta = fs::symlink_metadata(path).map_err(StoreError::io("stat", path))?;
    Ok(meta.nlink() > 1)
}
