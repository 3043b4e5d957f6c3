//! Small JSON files outside of run directories: whole or not at all.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use vec_types::CanonicalError;

/// Longest accepted file in bytes.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// A small file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Reading failed.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Writing failed.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is longer than such a file can be.
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It does not hold what it must.
    #[error("{} is damaged; {}", path.display(), advice(path))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The value has no canonical JSON form.
    #[error("encode {}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: CanonicalError,
    },
}

impl FileError {
    /// Kind of the operating system's error, if it was one.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source.kind()),
            Self::TooLong { .. } | Self::Parse { .. } | Self::Encode { .. } => None,
        }
    }
}

// The installed product cannot do without its own description, and a run's files are evidence.
fn advice(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("BUILD.json") => "rebuild or reinstall the product",
        Some("stop_manifest.json") => "see: vecctl verify",
        _ => "delete it if nothing else helps",
    }
}

/// Reads a bounded file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let read = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(read)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(read)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLong {
            path: path.to_owned(),
        });
    }
    Ok(bytes)
}

/// Reads a bounded JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    serde_json::from_slice(&read_bytes(path)?).map_err(|source| FileError::Parse {
        path: path.to_owned(),
        source,
    })
}

/// Writes beside and renames into place; makes missing directories.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FileError> {
    let bytes = vec_types::pretty_json(value).map_err(|source| FileError::Encode {
        path: path.to_owned(),
        source,
    })?;
    let write = |source| FileError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(write)?;
    }
    let fresh = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(write)?;
    file.write_all(&bytes).map_err(write)?;
    file.sync_data().map_err(write)?;
    std::fs::rename(&fresh, path).map_err(write)
}

/// Appends one line of JSON; for records beside a run (LCK-12).
pub(crate) fn append_line<T: Serialize>(path: &Path, value: &T) -> Result<(), FileError> {
    let mut line = vec_types::canonical_json(value).map_err(|source| FileError::Encode {
        path: path.to_owned(),
        source,
    })?;
    line.push(b'\n');
    let write = |source| FileError::Write {
        path: path.to_owned(),
        source,
    };
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o644)
        .open(path)
        .map_err(write)?;
    file.write_all(&line).map_err(write)?;
    file.sync_data().map_err(write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_and_bounded() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a/b.json");
        write_json(&path, &[1, 2]).expect("written");
        assert_eq!(read_json::<Vec<u32>>(&path).expect("read"), [1, 2]);
        let names = std::fs::read_dir(dir.path().join("a"))
            .expect("list")
            .count();
        assert_eq!(names, 1, "no temporary file is left");

        let long = dir.path().join("long");
        File::create(&long)
            .and_then(|file| file.set_len(FILE_BYTES_MAX + 1))
            .expect("made");
        assert!(matches!(read_bytes(&long), Err(FileError::TooLong { .. })));
    }

    #[test]
    fn nobody_is_told_to_delete_the_product() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, advice) in [
            ("BUILD.json", "is damaged; rebuild or reinstall the product"),
            ("roots.json", "is damaged; delete it if nothing else helps"),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, "{").expect("written");
            let error = read_json::<Vec<u32>>(&path).expect_err("damaged");
            assert!(error.to_string().ends_with(advice), "{error}");
        }
    }

    #[test]
    fn lines_are_appended() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("r.jsonl");
        append_line(&path, &1).expect("one");
        append_line(&path, &2).expect("two");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "1\n2\n");
    }
}
