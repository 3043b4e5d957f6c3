//! The index of registered weights: `artifacts/per_view/<tree>/<key>.json` (PVW-02, O-PVW-1).

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use vec_types::{Digest, ExecName, NodeId, RelPath, TreeId, UnixMs, ViewId, canonical_json};

use crate::{ExecError, KeyParts, WEIGHT_BYTES_MAX};

/// Longest index.
const INDEX_BYTES_MAX: u64 = 1 << 20;

/// One weight file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// Below `solution/`.
    pub path: RelPath,
    /// Content; the file is `artifacts/<sha256>`.
    pub sha256: Digest,
    /// Size.
    pub bytes: u64,
}

/// One complete registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Version; 1.
    pub schema: u32,
    /// Key of the parts below.
    pub key: Digest,
    /// As [`KeyParts::tree`].
    pub tree: TreeId,
    /// The view that it was trained on, for people.
    pub view: ViewId,
    /// As [`KeyParts::view_content`].
    pub view_content: Digest,
    /// As [`KeyParts::train_seed`].
    pub train_seed: u32,
    /// As [`KeyParts::environment`].
    pub env_hash: Digest,
    /// As [`KeyParts::extra_args`].
    pub extra_args: Vec<String>,
    /// Every declared file, sorted by path.
    pub files: Vec<WeightFile>,
    /// Node that trained it.
    pub node: NodeId,
    /// Execution that trained it.
    pub exec: ExecName,
    /// When.
    pub created_at: UnixMs,
}

impl Index {
    /// The bytes that are stored.
    ///
    /// # Errors
    /// [`ExecError::Canonical`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExecError> {
        canonical_json(self).map_err(ExecError::Canonical)
    }

    /// Reads an index and checks that it is the whole registration of `parts` for `declared`.
    ///
    /// # Errors
    /// [`ExecError::Damaged`] names what does not fit (PVW-06).
    pub(crate) fn read(
        path: &Path,
        parts: &KeyParts,
        declared: &[RelPath],
    ) -> Result<Self, ExecError> {
        let damaged = |what: String| ExecError::damaged(path, what);
        let meta = path
            .symlink_metadata()
            .map_err(|error| damaged(format!("cannot be read: {error}")))?;
        if !meta.is_file() || meta.len() > INDEX_BYTES_MAX {
            return Err(damaged("is not a small regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(INDEX_BYTES_MAX).read_to_end(&mut bytes))
            .map_err(|error| damaged(format!("cannot be read: {error}")))?;
        let index: Self = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("is not a complete index: {error}")))?;
        index.check(parts, declared).map_err(damaged)?;
        Ok(index)
    }

    fn check(&self, parts: &KeyParts, declared: &[RelPath]) -> Result<(), String> {
        let own = KeyParts {
            tree: self.tree.clone(),
            train_seed: self.train_seed,
            view_content: self.view_content,
            environment: self.env_hash,
            extra_args: self.extra_args.clone(),
        };
        if self.schema != 1 {
            return Err(format!("has schema {}", self.schema));
        }
        if own != *parts || own.key().ok() != Some(self.key) {
            return Err("is the index of something else".to_owned());
        }
        if !self.files.iter().map(|file| &file.path).eq(declared) {
            return Err("does not name exactly the declared files".to_owned());
        }
        match self.files.iter().find(|file| file.bytes > WEIGHT_BYTES_MAX) {
            Some(file) => Err(format!("names {} with {} bytes", file.path, file.bytes)),
            None => Ok(()),
        }
    }
}
