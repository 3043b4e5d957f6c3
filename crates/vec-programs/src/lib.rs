//! `programs.git`: every node's program as a commit at `refs/nodes/<id>` (ARV-03), through gix.
//!
//! Invariants: SHA-256 objects; author, time and message are given, so equal inputs give equal
//! ids; a ref is made once and never moves; every read re-hashes what it read (gix does not);
//! `syncfs` comes before an acknowledgement (gix does not sync). No configuration but the
//! repository's own is read.

mod commit;
mod error;
mod export;
mod scan;
mod tree_id;
mod verify;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gix::objs::Kind;
use gix::{ObjectId, Repository, ThreadSafeRepository};
use vec_types::{NodeId, TreeId};

pub use error::ProgramsError;
pub use export::{Change, ChangedFile};
pub use scan::{
    DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, ProgramFile, ProgramFiles, TOTAL_BYTES_MAX,
    read_program_dir,
};
pub use tree_id::tree_id_of_dir;
pub use verify::{ProgramsFault, ProgramsReport};

/// A program in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Commit id.
    pub commit: TreeId,
    /// Tree of the program.
    pub tree: TreeId,
    /// The tree without METHOD.md at its top (CID-01 a, O-CID-2).
    pub runtime_key: TreeId,
}

/// The repository. Cheap to clone; usable from several threads.
#[derive(Clone)]
pub struct Programs {
    repo: ThreadSafeRepository,
    path: PathBuf,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Programs").field(&self.path).finish()
    }
}

fn options() -> gix::open::Options {
    gix::open::Options::isolated().open_path_as_is(true)
}

impl Programs {
    /// Makes an empty bare SHA-256 repository at `path`, which must not exist.
    ///
    /// # Errors
    /// [`ProgramsError::Git`] and I/O errors, naming the path.
    pub fn init(path: &Path) -> Result<Self, ProgramsError> {
        if path.symlink_metadata().is_ok() {
            return Err(ProgramsError::Exists(path.to_owned()));
        }
        let create = gix::create::Options {
            object_hash: Some(gix::hash::Kind::Sha256),
            ..gix::create::Options::default()
        };
        let failed = ProgramsError::git("make a repository", path);
        let repo =
            ThreadSafeRepository::init_opts(path, gix::create::Kind::Bare, create, options())
                .map_err(failed)?;
        // Sample hooks and texts are of no use here and would only be evidence to carry.
        let hooks = path.join("hooks");
        fs::remove_dir_all(&hooks).map_err(ProgramsError::io("remove", &hooks))?;
        let programs = Self {
            repo,
            path: path.to_owned(),
        };
        programs.sync()?;
        Ok(programs)
    }

    /// Opens the repository at `path`.
    ///
    /// # Errors
    /// [`ProgramsError::Git`] when there is none; [`ProgramsError::NotSha256`].
    pub fn open(path: &Path) -> Result<Self, ProgramsError> {
        let repo = options()
            .open(path)
            .map_err(ProgramsError::git("open the repository", path))?;
        let programs = Self {
            repo,
            path: path.to_owned(),
        };
        if programs.local().object_hash() != gix::hash::Kind::Sha256 {
            return Err(ProgramsError::NotSha256(path.to_owned()));
        }
        Ok(programs)
    }

    /// The program of a node, if it has one.
    ///
    /// # Errors
    /// [`ProgramsError::Git`], [`ProgramsError::BadObject`].
    pub fn node(&self, node: NodeId) -> Result<Option<Committed>, ProgramsError> {
        let repo = self.local();
        match self.node_ref(&repo, node)? {
            Some(id) => self.describe(&repo, id).map(Some),
            None => Ok(None),
        }
    }

    fn local(&self) -> Repository {
        self.repo.to_thread_local()
    }

    fn node_ref(&self, repo: &Repository, node: NodeId) -> Result<Option<ObjectId>, ProgramsError> {
        let found = repo
            .try_find_reference(ref_name(node).as_str())
            .map_err(ProgramsError::git("read a ref of", &self.path))?;
        Ok(found.and_then(|found| found.inner.target.try_into_id().ok()))
    }

    /// Reads an object of the kind wanted and re-hashes it.
    fn object(
        &self,
        repo: &Repository,
        id: ObjectId,
        kind: Kind,
    ) -> Result<Vec<u8>, ProgramsError> {
        let object = repo
            .find_object(id)
            .map_err(ProgramsError::git("read an object of", &self.path))?;
        let bad = |what| ProgramsError::BadObject {
            id: id.to_string(),
            what,
        };
        if object.kind != kind {
            return Err(bad("is of another kind than its place says"));
        }
        let found = gix::objs::compute_hash(repo.object_hash(), kind, &object.data)
            .map_err(ProgramsError::git("hash an object of", &self.path))?;
        if found != id {
            return Err(bad("has other bytes than its id says"));
        }
        Ok(object.detach().data)
    }

    fn tree(
        &self,
        repo: &Repository,
        id: ObjectId,
    ) -> Result<Vec<gix::objs::tree::Entry>, ProgramsError> {
        let data = self.object(repo, id, Kind::Tree)?;
        let tree = gix::objs::TreeRef::from_bytes(&data, repo.object_hash())
            .map_err(ProgramsError::git("decode a tree of", &self.path))?;
        Ok(tree.entries.iter().map(|e| (*e).into()).collect())
    }

    /// Tree and parents of a commit.
    fn commit_parts(
        &self,
        repo: &Repository,
        id: ObjectId,
    ) -> Result<(ObjectId, Vec<ObjectId>, Vec<u8>), ProgramsError> {
        let data = self.object(repo, id, Kind::Commit)?;
        let commit = gix::objs::CommitRef::from_bytes(&data, repo.object_hash())
            .map_err(ProgramsError::git("decode a commit of", &self.path))?;
        let message = commit.message.to_vec();
        Ok((commit.tree(), commit.parents().collect(), message))
    }

    fn describe(&self, repo: &Repository, id: ObjectId) -> Result<Committed, ProgramsError> {
        let (tree, _, _) = self.commit_parts(repo, id)?;
        let entries = self.tree(repo, tree)?;
        Ok(Committed {
            commit: tree_id(id)?,
            tree: tree_id(tree)?,
            runtime_key: tree_id(commit::runtime_tree(repo, &entries, &self.path)?)?,
        })
    }

    /// Everything written so far survives a power cut when this returns.
    fn sync(&self) -> Result<(), ProgramsError> {
        let dir = File::open(&self.path).map_err(ProgramsError::io("open", &self.path))?;
        nix::unistd::syncfs(&dir)
            .map_err(|errno| ProgramsError::io("sync", &self.path)(errno.into()))
    }
}

fn ref_name(node: NodeId) -> String {
    format!("refs/nodes/{node}")
}

fn tree_id(id: ObjectId) -> Result<TreeId, ProgramsError> {
    id.to_string().parse().map_err(ProgramsError::BadId)
}

fn object_id(id: &TreeId) -> Result<ObjectId, ProgramsError> {
    ObjectId::from_hex(id.to_string().as_bytes()).map_err(|_| ProgramsError::NoSuchId(id.clone()))
}
