//! The SHA-256 git tree id of a directory on disk, without a repository: how `code/` is hashed
//! (`decisions.md`, Formats). Files are streamed.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use vec_types::{Digest, Hasher, TreeId};

use crate::ProgramsError;

const READ_CHUNK: usize = 256 * 1024;

/// The tree id that `git add -A && git write-tree` would give in a SHA-256 repository: execution
/// bits and symlinks count, other permissions and empty directories do not.
///
/// # Errors
/// I/O errors; [`ProgramsError::BadFile`] for what git cannot hold (sockets, devices).
pub fn tree_id_of_dir(dir: &Path) -> Result<TreeId, ProgramsError> {
    let digest = match tree(dir)? {
        Some(digest) => digest,
        None => object("tree", b""),
    };
    digest.to_string().parse().map_err(ProgramsError::BadId)
}

fn object(kind: &str, data: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(format!("{kind} {}\0", data.len()).as_bytes());
    hasher.update(data);
    hasher.finish()
}

struct Entry {
    mode: &'static str,
    name: Vec<u8>,
    id: Digest,
}

impl Entry {
    // git sorts directories as if their names ended with a slash.
    fn key(&self) -> Vec<u8> {
        let mut key = self.name.clone();
        if self.mode == "40000" {
            key.push(b'/');
        }
        key
    }
}

/// `None` for a directory without files.
fn tree(dir: &Path) -> Result<Option<Digest>, ProgramsError> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).map_err(ProgramsError::io("read", dir))? {
        let entry = entry.map_err(ProgramsError::io("read", dir))?;
        let path = entry.path();
        let meta = entry.metadata().map_err(ProgramsError::io("stat", &path))?;
        let kind = meta.file_type();
        let (mode, id) = if kind.is_dir() {
            match tree(&path)? {
                Some(id) => ("40000", id),
                None => continue,
            }
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(ProgramsError::io("read", &path))?;
            ("120000", object("blob", target.as_os_str().as_bytes()))
        } else if kind.is_file() {
            let executable = meta.permissions().mode() & 0o100 != 0;
            let mode = if executable { "100755" } else { "100644" };
            (mode, blob(&path, meta.len())?)
        } else {
            return Err(ProgramsError::bad_file(
                &path,
                "is no file, link or directory",
            ));
        };
        entries.push(Entry {
            mode,
            name: entry.file_name().into_vec(),
            id,
        });
    }
    if entries.is_empty() {
        return Ok(None);
    }
    entries.sort_by_key(Entry::key);
    let mut data = Vec::new();
    for entry in &entries {
        data.extend_from_slice(entry.mode.as_bytes());
        data.push(b' ');
        data.extend_from_slice(&entry.name);
        data.push(0);
        data.extend_from_slice(entry.id.as_bytes());
    }
    Ok(Some(object("tree", &data)))
}

fn blob(path: &Path, size: u64) -> Result<Digest, ProgramsError> {
    let mut file = File::open(path).map_err(ProgramsError::io("open", path))?;
    let mut hasher = Hasher::default();
    hasher.update(format!("blob {size}\0").as_bytes());
    let mut chunk = vec![0; READ_CHUNK];
    let mut total = 0;
    loop {
        let got = file
            .read(&mut chunk)
            .map_err(ProgramsError::io("read", path))?;
        if got == 0 {
            break;
        }
        total += got as u64;
        hasher.update(&chunk[..got]);
    }
    if total != size {
        let changed = io::Error::other("changed while it was read");
        return Err(ProgramsError::io("hash", path)(changed));
    }
    Ok(hasher.finish())
}
