//! ENV.json and files.json: what an environment was when it was built, and checking that it
//! still is.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vec_types::{Digest, manifest_hash};

use super::{FILES, RECORD, VENV};
use crate::error::{BoardError, EnvError};
use crate::tree::{hash_file, regular_files, relative, tree_manifest};

/// ENV.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvRecord {
    /// Version of this document; 1.
    pub schema: u32,
    /// Directory name below `envs/`.
    pub id: String,
    /// sha256 of the requirements lock.
    pub lock_sha256: Digest,
    /// The base interpreter.
    pub interpreter: PathBuf,
    /// Its sha256.
    pub interpreter_sha256: Digest,
    /// Its version.
    pub version: String,
    /// Manifest hash of `venv/`.
    pub manifest_hash: Digest,
    /// sha256 of `files.json`.
    pub files_sha256: Digest,
    /// Number of files.
    pub files: usize,
}

// One file in files.json, by its path below `venv/`.
#[derive(Serialize, Deserialize, PartialEq)]
pub(super) struct FileFacts {
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) mtime_s: i64,
    pub(super) sha256: Digest,
}

/// Checks all bytes of an environment (`envs/<id>`) and returns its manifest hash.
///
/// # Errors
/// [`EnvError::Changed`] naming the first file that is not as built.
pub fn verify_env(dir: &Path) -> Result<Digest, EnvError> {
    let record = check_times(dir)?;
    let manifest = manifest_hash(&tree_manifest(&dir.join(VENV))?);
    if manifest == record.manifest_hash {
        return Ok(manifest);
    }
    let files: BTreeMap<String, FileFacts> = read_json(&dir.join(FILES))?;
    for (path, facts) in files {
        let path = dir.join(VENV).join(path);
        let (sha256, _) = hash_file(&path).map_err(BoardError::io("read", &path))?;
        if sha256 != facts.sha256 {
            return Err(changed(dir, path, "other bytes"));
        }
    }
    Err(changed(dir, dir.join(FILES), "other manifest hash"))
}

/// Facts of every file below `venv`.
pub(super) fn file_facts(venv: &Path) -> Result<BTreeMap<String, FileFacts>, EnvError> {
    let mut files = BTreeMap::new();
    for entry in tree_manifest(venv)? {
        let path = venv.join(&entry.path);
        let meta = std::fs::metadata(&path).map_err(BoardError::io("look at", &path))?;
        let facts = FileFacts {
            mode: entry.mode,
            size: entry.size,
            mtime_s: meta.mtime(),
            sha256: entry.sha256,
        };
        files.insert(entry.path, facts);
    }
    Ok(files)
}

/// Checks mode, size and time of every file of `envs/<id>`.
pub(super) fn check_times(dir: &Path) -> Result<EnvRecord, EnvError> {
    let record: EnvRecord = read_json(&dir.join(RECORD))?;
    let path = dir.join(FILES);
    let (sha256, _) = hash_file(&path).map_err(BoardError::io("read", &path))?;
    if sha256 != record.files_sha256 {
        return Err(changed(dir, path, "other bytes"));
    }
    let mut files: BTreeMap<String, FileFacts> = read_json(&path)?;
    let venv = dir.join(VENV);
    for path in regular_files(&venv)? {
        let meta = std::fs::metadata(&path).map_err(BoardError::io("look at", &path))?;
        let mode = meta.permissions().mode() & 0o7777;
        match files.remove(&relative(&venv, &path)?) {
            None => return Err(changed(dir, path, "a new file")),
            Some(facts) if facts.size != meta.len() => {
                return Err(changed(dir, path, "other size"));
            }
            Some(facts) if facts.mtime_s != meta.mtime() => {
                return Err(changed(dir, path, "other time"));
            }
            Some(facts) if facts.mode != mode => return Err(changed(dir, path, "other mode")),
            Some(_) => {}
        }
    }
    match files.into_keys().next() {
        Some(gone) => Err(changed(dir, venv.join(gone), "gone")),
        None => Ok(record),
    }
}

pub(super) fn changed(root: &Path, path: PathBuf, what: &'static str) -> EnvError {
    EnvError::Changed {
        path,
        root: root.to_owned(),
        what,
    }
}

/// Reads a record.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, EnvError> {
    let bytes = std::fs::read(path).map_err(BoardError::io("read", path))?;
    serde_json::from_slice(&bytes).map_err(|source| EnvError::Record {
        path: path.to_owned(),
        source,
    })
}
