//! Reading: export, single files, differences. Every object is re-hashed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository};
use vec_types::{RelPath, TreeId};

use crate::{DEPTH_MAX, FILES_MAX, ProgramFile, ProgramFiles, Programs, ProgramsError, object_id};

/// How a file differs between two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Only in the second.
    Added,
    /// Only in the first.
    Removed,
    /// In both, with other bytes or mode.
    Modified,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: RelPath,
    /// How.
    pub change: Change,
}

type Leaves = BTreeMap<RelPath, (ObjectId, bool)>;

impl Programs {
    /// Writes the program of `commit` to `dest`, which must not exist. Files are 0644 or 0755.
    ///
    /// # Errors
    /// [`ProgramsError::Exists`]; [`ProgramsError::BadObject`]; git and I/O errors.
    pub fn export(&self, commit: &TreeId, dest: &Path) -> Result<(), ProgramsError> {
        if dest.symlink_metadata().is_ok() {
            return Err(ProgramsError::Exists(dest.to_owned()));
        }
        let files = self.files(commit)?;
        fs::create_dir_all(dest).map_err(ProgramsError::io("create", dest))?;
        for (path, file) in &files {
            let target = path.under(dest);
            if let Some(dir) = target.parent() {
                fs::create_dir_all(dir).map_err(ProgramsError::io("create", dir))?;
            }
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(if file.executable { 0o755 } else { 0o644 })
                .open(&target)
                .and_then(|mut out| out.write_all(&file.bytes))
                .map_err(ProgramsError::io("write", &target))?;
        }
        Ok(())
    }

    /// All files of the program of `commit`.
    ///
    /// # Errors
    /// [`ProgramsError::BadObject`]; git errors.
    pub fn files(&self, commit: &TreeId) -> Result<ProgramFiles, ProgramsError> {
        let repo = self.local();
        let mut files = ProgramFiles::new();
        for (path, (id, executable)) in self.leaves(&repo, commit)? {
            let bytes = self.object(&repo, id, Kind::Blob)?;
            files.insert(path, ProgramFile { bytes, executable });
        }
        Ok(files)
    }

    /// One file of the program of `commit`, if it is there.
    ///
    /// # Errors
    /// As [`Programs::files`].
    pub fn read_file(
        &self,
        commit: &TreeId,
        path: &RelPath,
    ) -> Result<Option<Vec<u8>>, ProgramsError> {
        let repo = self.local();
        let leaves = self.leaves(&repo, commit)?;
        let leaf = leaves.get(path);
        leaf.map(|(id, _)| self.object(&repo, *id, Kind::Blob))
            .transpose()
    }

    /// Files that differ between the programs of two commits, by path.
    ///
    /// # Errors
    /// As [`Programs::files`].
    pub fn diff_names(
        &self,
        from: &TreeId,
        to: &TreeId,
    ) -> Result<Vec<ChangedFile>, ProgramsError> {
        let repo = self.local();
        let (old, new) = (self.leaves(&repo, from)?, self.leaves(&repo, to)?);
        let removed = old.keys().filter(|path| !new.contains_key(path));
        let mut changed: Vec<ChangedFile> = removed
            .map(|path| ChangedFile {
                path: path.clone(),
                change: Change::Removed,
            })
            .collect();
        for (path, leaf) in &new {
            let change = match old.get(path) {
                None => Change::Added,
                Some(before) if before != leaf => Change::Modified,
                Some(_) => continue,
            };
            let path = path.clone();
            changed.push(ChangedFile { path, change });
        }
        changed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changed)
    }

    fn leaves(&self, repo: &Repository, commit: &TreeId) -> Result<Leaves, ProgramsError> {
        let (tree, _, _) = self.commit_parts(repo, object_id(commit)?)?;
        let mut leaves = Leaves::new();
        self.walk(repo, tree, "", 0, &mut leaves)?;
        Ok(leaves)
    }

    pub(crate) fn walk(
        &self,
        repo: &Repository,
        tree: ObjectId,
        prefix: &str,
        depth: usize,
        leaves: &mut Leaves,
    ) -> Result<(), ProgramsError> {
        let bad = |what| ProgramsError::BadObject {
            id: tree.to_string(),
            what,
        };
        if depth > DEPTH_MAX {
            return Err(bad("lies too deep"));
        }
        for entry in self.tree(repo, tree)? {
            let name = std::str::from_utf8(&entry.filename).map_err(|_| bad("holds a bad name"))?;
            let below = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}/{name}")
            };
            let executable = match entry.mode.kind() {
                EntryKind::Tree => {
                    self.walk(repo, entry.oid, &below, depth + 1, leaves)?;
                    continue;
                }
                EntryKind::Blob => false,
                EntryKind::BlobExecutable => true,
                EntryKind::Link | EntryKind::Commit => {
                    return Err(bad("holds a link or a submodule"));
                }
            };
            // One name per level was checked when it was written, but not by us if tampered with.
            let path = below.parse().map_err(|_| bad("holds a bad name"))?;
            leaves.insert(path, (entry.oid, executable));
            if leaves.len() > FILES_MAX {
                return Err(bad("holds too many files"));
            }
        }
        Ok(())
    }
}
