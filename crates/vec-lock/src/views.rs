//! Views by content (EVS-01, EVS-10).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;
use vec_config::Limits;
use vec_types::{Digest, ManifestEntry, manifest_hash};

use crate::copy::{files_below, hash};
use crate::error::SnapshotError;

/// What the lock says of one view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewFacts {
    /// sha256 per file: path below the view.
    pub files: BTreeMap<String, Digest>,
    /// Manifest hash of the directory.
    pub content: Digest,
    /// Limits from its `manifest.json` (EVS-03).
    pub limits: Limits,
}

/// Reads and hashes a view directory of the run.
///
/// # Errors
/// [`SnapshotError`].
pub fn view_facts(dir: &Path) -> Result<ViewFacts, SnapshotError> {
    #[derive(Deserialize)]
    struct Manifest {
        limits: Limits,
    }
    let path = dir.join("manifest.json");
    let bytes = std::fs::read(&path).map_err(SnapshotError::io("read", &path))?;
    let Manifest { limits } = serde_json::from_slice(&bytes)
        .map_err(|error| SnapshotError::refused(&path, format!("not a view manifest: {error}")))?;
    let mut entries = Vec::new();
    for file in files_below(dir)? {
        let path = dir.join(&file);
        let mode = std::fs::metadata(&path)
            .map_err(SnapshotError::io("read", &path))?
            .permissions()
            .mode();
        let (size, sha256) = hash(&path)?;
        entries.push(ManifestEntry {
            path: file.to_string_lossy().into_owned(),
            mode: mode & 0o7777,
            sha256,
            size,
        });
    }
    Ok(ViewFacts {
        content: manifest_hash(&entries),
        files: entries
            .into_iter()
            .map(|entry| (entry.path, entry.sha256))
            .collect(),
        limits,
    })
}
