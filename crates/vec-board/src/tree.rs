//! Directories by content: the manifest hash of `decisions.md` (regular files only, streamed).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use vec_types::{Digest, Hasher, ManifestEntry};

/// Deepest directory that is followed.
const DEPTH_MAX: u32 = 64;
/// Read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// Why a directory cannot be listed or hashed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or directory cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A name that is not UTF-8, or too deep a directory.
    #[error("{}: {what}", path.display())]
    Name {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

/// Every regular file below `root`, sorted by path. Links are not followed and not listed.
///
/// # Errors
/// [`TreeError`].
pub fn tree_manifest(root: &Path) -> Result<Vec<ManifestEntry>, TreeError> {
    let mut entries = Vec::new();
    for path in regular_files(root)? {
        let read = |source| TreeError::Read {
            path: path.clone(),
            source,
        };
        let meta = std::fs::symlink_metadata(&path).map_err(read)?;
        let (sha256, size) = hash_file(&path).map_err(read)?;
        entries.push(ManifestEntry {
            path: relative(root, &path)?,
            mode: meta.permissions().mode() & 0o7777,
            sha256,
            size,
        });
    }
    entries.sort();
    Ok(entries)
}

/// The path below `root` as text.
pub(crate) fn relative(root: &Path, path: &Path) -> Result<String, TreeError> {
    path.strip_prefix(root)
        .ok()
        .and_then(Path::to_str)
        .map(str::to_owned)
        .ok_or_else(|| TreeError::Name {
            path: path.to_owned(),
            what: "the name is not UTF-8",
        })
}

/// Regular files below `root`, in no order that matters.
pub(crate) fn regular_files(root: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let (mut files, mut directories) = (Vec::new(), vec![(root.to_owned(), 0)]);
    while let Some((directory, depth)) = directories.pop() {
        let read = |source| TreeError::Read {
            path: directory.clone(),
            source,
        };
        if depth > DEPTH_MAX {
            return Err(TreeError::Name {
                path: directory,
                what: "too deep",
            });
        }
        for entry in std::fs::read_dir(&directory).map_err(read)? {
            let entry = entry.map_err(read)?;
            let kind = entry.file_type().map_err(read)?;
            if kind.is_dir() {
                directories.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// Digest and length of a file, streamed.
pub(crate) fn hash_file(path: &Path) -> io::Result<(Digest, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut size = 0;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((hasher.finish(), size));
        }
        hasher.update(&chunk[..read]);
        size += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_regular_files_only_sorted_by_path() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir(dir.path().join("b")).expect("mkdir");
        for (name, text) in [("b/x", "1"), ("a", "22")] {
            std::fs::write(dir.path().join(name), text).expect("write");
        }
        std::os::unix::fs::symlink("a", dir.path().join("link")).expect("link");
        let entries = tree_manifest(dir.path()).expect("manifest");
        let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["a", "b/x"]);
        assert_eq!((entries[0].size, entries[0].sha256), (2, Digest::of(b"22")));
        assert!(tree_manifest(&dir.path().join("none")).is_err());
    }
}
