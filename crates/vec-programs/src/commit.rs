//! Writing: a program directory becomes a commit at `refs/nodes/<id>`.

use std::collections::BTreeMap;
use std::path::Path;

use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Commit, Tree};
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};
use gix::{ObjectId, Repository};
use vec_types::{NodeId, TreeId, UnixMs};

use crate::{
    Committed, ProgramFile, ProgramFiles, Programs, ProgramsError, object_id, read_program_dir,
    ref_name, tree_id,
};

/// Not part of what runs.
const METHOD: &str = "METHOD.md";
const AUTHOR: &str = "vec";

impl Programs {
    /// Commits the program in `dir` for `node`. Repeating the call with the same program, parent
    /// and message gives the commit that is there already.
    ///
    /// # Errors
    /// As [`read_program_dir`] and [`Programs::commit_files`].
    pub fn commit_dir(
        &self,
        node: NodeId,
        dir: &Path,
        parent: Option<&TreeId>,
        message: &str,
        at: UnixMs,
    ) -> Result<Committed, ProgramsError> {
        self.commit_files(node, &read_program_dir(dir)?, parent, message, at)
    }

    /// Commits files that [`read_program_dir`] read or that obey the same limits.
    ///
    /// # Errors
    /// [`ProgramsError::Taken`] when the node has another program; git and I/O errors.
    pub fn commit_files(
        &self,
        node: NodeId,
        files: &ProgramFiles,
        parent: Option<&TreeId>,
        message: &str,
        at: UnixMs,
    ) -> Result<Committed, ProgramsError> {
        let repo = self.local();
        let parents: Vec<ObjectId> = parent.map(object_id).transpose()?.into_iter().collect();
        let tree = self.write_tree(&repo, files)?;
        if let Some(found) = self.node_ref(&repo, node)? {
            let there = self.commit_parts(&repo, found)?;
            if there == (tree, parents.clone(), message.as_bytes().to_vec()) {
                return self.describe(&repo, found);
            }
        }
        let who = gix::actor::Signature {
            name: AUTHOR.into(),
            email: AUTHOR.into(),
            time: gix::date::Time::new(at.0.div_euclid(1_000), 0),
        };
        let commit = Commit {
            tree,
            parents: parents.into_iter().collect(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        let failed = |action| ProgramsError::git(action, &self.path);
        let id = repo
            .write_object(commit)
            .map_err(failed("write a commit to"))?
            .detach();
        self.set_ref(&repo, node, id)?;
        self.sync()?;
        self.describe(&repo, id)
    }

    /// Makes the ref; one that exists is never moved.
    fn set_ref(&self, repo: &Repository, node: NodeId, id: ObjectId) -> Result<(), ProgramsError> {
        let name = gix::refs::FullName::try_from(ref_name(node))
            .map_err(ProgramsError::git("name a ref of", &self.path))?;
        let target = Target::Object(id);
        let edit = RefEdit::update(name, target, PreviousValue::MustNotExist, "");
        match repo.edit_references_as([edit], None) {
            Ok(_) => Ok(()),
            Err(error) => match self.node_ref(repo, node)? {
                Some(found) if found == id => Ok(()),
                Some(found) => Err(ProgramsError::Taken {
                    node,
                    found: tree_id(found)?,
                    wanted: tree_id(id)?,
                }),
                None => Err(ProgramsError::git("make a ref in", &self.path)(error)),
            },
        }
    }

    fn write_tree(
        &self,
        repo: &Repository,
        files: &ProgramFiles,
    ) -> Result<ObjectId, ProgramsError> {
        let parts: Vec<(Vec<&str>, &ProgramFile)> = files
            .iter()
            .map(|(path, file)| (path.as_str().split('/').collect(), file))
            .collect();
        let parts: Vec<(&[&str], &ProgramFile)> = parts
            .iter()
            .map(|(path, file)| (&path[..], *file))
            .collect();
        self.write_level(repo, &parts)
    }

    fn write_level(
        &self,
        repo: &Repository,
        files: &[(&[&str], &ProgramFile)],
    ) -> Result<ObjectId, ProgramsError> {
        let mut entries = Vec::new();
        let mut dirs: BTreeMap<&str, Vec<(&[&str], &ProgramFile)>> = BTreeMap::new();
        for (path, file) in files {
            match path {
                [] => {}
                [name] => {
                    let failed = ProgramsError::git("write a file to", &self.path);
                    let oid = repo.write_blob(&file.bytes).map_err(failed)?.detach();
                    let kind = if file.executable {
                        EntryKind::BlobExecutable
                    } else {
                        EntryKind::Blob
                    };
                    entries.push(entry(name, kind, oid));
                }
                [dir, rest @ ..] => dirs.entry(dir).or_default().push((rest, file)),
            }
        }
        for (name, below) in dirs {
            let oid = self.write_level(repo, &below)?;
            entries.push(entry(name, EntryKind::Tree, oid));
        }
        entries.sort();
        let failed = ProgramsError::git("write a tree to", &self.path);
        let id = repo.write_object(Tree { entries }).map_err(failed)?;
        Ok(id.detach())
    }
}

fn entry(name: &str, kind: EntryKind, oid: ObjectId) -> Entry {
    Entry {
        mode: kind.into(),
        filename: name.into(),
        oid,
    }
}

/// Id of the tree without METHOD.md. The tree need not be in the repository.
pub(crate) fn runtime_tree(
    repo: &Repository,
    entries: &[Entry],
    path: &Path,
) -> Result<ObjectId, ProgramsError> {
    let entries = entries.iter().filter(|entry| entry.filename != METHOD);
    let tree = Tree {
        entries: entries.cloned().collect(),
    };
    let mut data = Vec::new();
    gix::objs::WriteTo::write_to(&tree, &mut data).map_err(ProgramsError::io("encode", path))?;
    gix::objs::compute_hash(repo.object_hash(), gix::objs::Kind::Tree, &data)
        .map_err(ProgramsError::git("hash a tree of", path))
}
