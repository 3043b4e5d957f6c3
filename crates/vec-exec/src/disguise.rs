//! A view in disguise (VCK-01): the same data under another name, with a manifest that says the
//! same things in another way. A program that computes from its data gives the same output; one that
//! knows its view by path, name, order, mode word, stage or file name does not.
//!
//! Data files are byte-identical and keep their modes and modification times. What a program could
//! still see: change times and inode numbers, which nobody can set, and stages that stand inside
//! data files. `manifest.rs` documents which fields of a manifest change.

mod json;
mod manifest;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use vec_types::{Digest, ViewId};
use walkdir::WalkDir;

use crate::ExecError;
use crate::place::same_times;
use json::Json;
use manifest::{Inputs, rewritten};

/// Name of a view's manifest.
const MANIFEST: &str = "manifest.json";
/// Longest manifest.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;
/// Most files and directories of a view.
const ENTRIES_MAX: usize = 100_000;
/// Files up to this size are copied; larger ones are hard-linked, which costs no room.
const COPY_BYTES_MAX: u64 = 64 << 20;

/// What was disguised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disguise {
    /// The name under which the view is shown.
    pub view: ViewId,
    /// Its directory.
    pub dir: PathBuf,
    /// What the manifest let us change beside name and order, in words: `stages`, `modes`, `inputs`.
    pub changed: Vec<&'static str>,
}

/// Another name for a view: the same for the same salt, and telling nothing.
#[must_use]
pub fn alias(view: &ViewId, salt: &str) -> ViewId {
    let digest = Digest::of(format!("{salt}/{view}").as_bytes());
    let text = format!("view_{}", digest.short(6));
    text.parse().unwrap_or_else(|_| view.clone())
}

/// Builds `view` (its directory `source`) again below `parent`, in disguise.
///
/// # Errors
/// [`ExecError::View`] for a manifest that cannot be read, links and special files, and views of
/// more than 100,000 entries; [`ExecError::Io`].
pub fn disguise(
    source: &Path,
    view: &ViewId,
    parent: &Path,
    salt: &str,
) -> Result<Disguise, ExecError> {
    let alias = alias(view, salt);
    let manifest_path = source.join(MANIFEST);
    let manifest = read_manifest(&manifest_path)?;
    let inputs = Inputs::of(&manifest);
    let (new_manifest, changed) = rewritten(&manifest, view, &alias, &inputs);
    let dir = parent.join(alias.as_str());
    let mut dirs = Vec::new();
    let walk = WalkDir::new(source).follow_links(false).sort_by_file_name();
    for (count, entry) in walk.into_iter().enumerate() {
        let entry = entry.map_err(|error| ExecError::view(source, error.to_string()))?;
        if count >= ENTRIES_MAX {
            return Err(ExecError::view(source, "has more than 100000 entries"));
        }
        let from = entry.path();
        let rel = from.strip_prefix(source).unwrap_or(from);
        let meta = entry
            .metadata()
            .map_err(|error| ExecError::view(from, error.to_string()))?;
        if meta.is_dir() {
            let to = dir.join(rel);
            fs::create_dir(&to).map_err(ExecError::io("make", &to))?;
            dirs.push((to, meta));
        } else if !meta.is_file() {
            return Err(ExecError::view(from, "is not a regular file"));
        } else if rel == Path::new(MANIFEST) {
            let to = dir.join(MANIFEST);
            fs::write(&to, &new_manifest).map_err(ExecError::io("write", &to))?;
            dress(&to, &meta)?;
        } else {
            show(from, &dir.join(inputs.renamed(rel)), &meta)?;
        }
    }
    // Innermost first: filling a directory changes its time.
    for (path, meta) in dirs.iter().rev() {
        dress(path, meta)?;
    }
    Ok(Disguise {
        view: alias,
        dir,
        changed,
    })
}

fn read_manifest(path: &Path) -> Result<Json, ExecError> {
    let meta = path
        .symlink_metadata()
        .map_err(|error| ExecError::view(path, error.to_string()))?;
    if !meta.is_file() || meta.len() > MANIFEST_BYTES_MAX {
        return Err(ExecError::view(
            path,
            "is not a regular file of at most 16 MiB",
        ));
    }
    let bytes = fs::read(path).map_err(ExecError::io("read", path))?;
    Json::parse(&bytes).map_err(|error| ExecError::view(path, error.to_string()))
}

fn show(from: &Path, to: &Path, meta: &fs::Metadata) -> Result<(), ExecError> {
    if meta.len() > COPY_BYTES_MAX && fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).map_err(ExecError::io("copy", from))?;
    dress(to, meta)
}

fn dress(path: &Path, like: &fs::Metadata) -> Result<(), ExecError> {
    let mode = Permissions::from_mode(like.permissions().mode() & 0o7777);
    // Times first: a mode may take the right to open it.
    same_times(like, path)?;
    fs::set_permissions(path, mode).map_err(ExecError::io("chmod", path))
}
