//! Registered weights of a run: looking them up, waiting for whoever trains them, and handing a
//! first training to the store (PVW-02..06).
//!
//! Invariants: what the ledger knows as registered and what is on disk must agree, or the look-up
//! says `Damaged`; a missing index of a registered key is damage, not a miss. A registration is one
//! batch of the store: artifacts first, the index last, so a crash leaves nothing or everything.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use vec_store::{Content, NewFile, RunLayout, rel};
use vec_types::{Digest, ExecName, NodeId, RelPath, TreeId, UnixMs, ViewId};

use crate::place::Collected;
use crate::{ExecError, Index, KeyParts, TrainingLocks};

/// Called after a step of a training with its name; crash tests end the process there.
pub type StepHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The steps of a training in order; those of the store's batch follow.
pub const STEPS: [&str; 6] = [
    "locked",
    "prepared",
    "trained",
    "collected",
    "validated",
    "handed_over",
];

/// What a look-up found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A complete index. The files themselves are verified when they are placed.
    Registered(Box<Index>),
    /// Nobody has trained this key in this run.
    Unknown,
}

/// Who trained what, for the index.
#[derive(Debug, Clone)]
pub struct Registration {
    /// What the weights depend on.
    pub parts: KeyParts,
    /// The view that they were trained on.
    pub view: ViewId,
    /// Node of the execution.
    pub node: NodeId,
    /// The execution.
    pub exec: ExecName,
    /// Now.
    pub at: UnixMs,
}

/// The weights of one run. Cheap to clone.
#[derive(Clone)]
pub struct Weights {
    layout: RunLayout,
    registered: Arc<Mutex<BTreeSet<RelPath>>>,
    locks: TrainingLocks,
    hook: Option<StepHook>,
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Weights")
            .field(&self.layout.run_dir())
            .finish()
    }
}

impl Weights {
    /// `registered`: paths of the ledger below `artifacts/`; others are ignored.
    #[must_use]
    pub fn new(layout: RunLayout, registered: impl IntoIterator<Item = RelPath>) -> Self {
        let registered = registered.into_iter().filter(is_artifact);
        Self {
            layout,
            registered: Arc::new(Mutex::new(registered.collect())),
            locks: TrainingLocks::default(),
            hook: None,
        }
    }

    /// The same, calling `hook` after each of [`STEPS`].
    #[must_use]
    pub fn with_hook(mut self, hook: StepHook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Tells the hook.
    pub fn step(&self, name: &'static str) {
        if let Some(hook) = &self.hook {
            hook(name);
        }
    }

    /// The training locks.
    #[must_use]
    pub const fn locks(&self) -> &TrainingLocks {
        &self.locks
    }

    /// The run's paths.
    #[must_use]
    pub const fn layout(&self) -> &RunLayout {
        &self.layout
    }

    /// Notes what a batch has registered.
    pub fn note_registered<'a>(&self, paths: impl IntoIterator<Item = &'a RelPath>) {
        let paths = paths.into_iter().filter(|path| is_artifact(path));
        let mut registered = self.registered();
        registered.extend(paths.cloned());
    }

    /// Is an artifact of this content registered?
    #[must_use]
    pub fn has_artifact(&self, sha256: Digest) -> bool {
        self.registered().contains(&rel::artifact(sha256))
    }

    /// Looks a key up.
    ///
    /// # Errors
    /// [`ExecError::Damaged`] where the ledger and the disk, or the index and the program's
    /// declaration, do not agree (PVW-06).
    pub fn find(&self, parts: &KeyParts, declared: &[RelPath]) -> Result<Found, ExecError> {
        let name = index_name(&parts.tree, parts.key()?);
        let path = self.layout.at(&name);
        let is_registered = self.registered().contains(&name);
        let is_there = path.symlink_metadata().is_ok();
        match (is_registered, is_there) {
            (false, false) => Ok(Found::Unknown),
            (true, false) => Err(ExecError::damaged(&path, "is missing")),
            (false, true) => Err(ExecError::damaged(&path, "is not in the ledger")),
            (true, true) => Ok(Found::Registered(Box::new(Index::read(
                &path, parts, declared,
            )?))),
        }
    }

    /// The files of a first training for the store's batch: artifacts, then the index. `collected`
    /// lies in the run's spool.
    ///
    /// # Errors
    /// [`ExecError::Canonical`].
    pub fn files_of(
        &self,
        registration: Registration,
        collected: Vec<Collected>,
    ) -> Result<Vec<NewFile>, ExecError> {
        let Registration {
            parts,
            view,
            node,
            exec,
            at,
        } = registration;
        let key = parts.key()?;
        let mut seen = BTreeSet::new();
        let mut files: Vec<NewFile> = collected
            .iter()
            .filter(|file| seen.insert(file.weight.sha256))
            .map(|file| {
                let content = Content::Spool(file.at.clone());
                NewFile::once(rel::artifact(file.weight.sha256), content)
            })
            .collect();
        let name = index_name(&parts.tree, key);
        let index = Index {
            schema: 1,
            key,
            tree: parts.tree,
            view,
            view_content: parts.view_content,
            train_seed: parts.train_seed,
            env_hash: parts.environment,
            extra_args: parts.extra_args,
            files: collected.into_iter().map(|file| file.weight).collect(),
            node,
            exec,
            created_at: at,
        };
        files.push(NewFile::once(name, Content::Bytes(index.to_bytes()?)));
        Ok(files)
    }

    fn registered(&self) -> std::sync::MutexGuard<'_, BTreeSet<RelPath>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_artifact(path: &RelPath) -> bool {
    path.top() == "artifacts"
}

fn index_name(tree: &TreeId, key: Digest) -> RelPath {
    rel::weights_index(tree, key)
}

/// The artifact of a digest.
pub(crate) fn artifact_path(layout: &RunLayout, sha256: Digest) -> std::path::PathBuf {
    layout.at(&rel::artifact(sha256))
}

/// Is `path` a regular file with this size and content?
pub(crate) fn verify(path: &Path, bytes: Option<u64>, sha256: Digest) -> Result<(), ExecError> {
    let meta = path
        .symlink_metadata()
        .map_err(|error| ExecError::damaged(path, format!("cannot be read: {error}")))?;
    if !meta.is_file() {
        return Err(ExecError::damaged(path, "is not a regular file"));
    }
    if bytes.is_some_and(|bytes| meta.len() != bytes) {
        let what = format!("has {} bytes, not {}", meta.len(), bytes.unwrap_or(0));
        return Err(ExecError::damaged(path, what));
    }
    let (_, found) = vec_store::hash_file(path)
        .map_err(|error| ExecError::damaged(path, format!("cannot be read: {error}")))?;
    if found == sha256 {
        Ok(())
    } else {
        Err(ExecError::damaged(
            path,
            format!("has sha256 {found}, not {sha256}"),
        ))
    }
}
