//! The lock, version 8 (LCK, O-LCK-2): what a run is, fixed before its first event. Written once
//! as canonical JSON by vec-lock; read by everybody else.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, Digest, RunId, TreeId, UnixMs, ViewId};

pub use record::{
    Admission, BuildRecord, CodeSnapshot, IsolationLevel, PinnedInput, Reason, SandboxBuild,
    SandboxRecord, SelfTest, Supervisor, TruthIsolation,
};

use crate::{Board, Config, EvalSpec, Mode, PythonFacts, Role};

/// The version that this code writes and reads.
pub const LOCK_VERSION: u32 = 10;

/// Longest accepted lock file in bytes.
const LOCK_BYTES_MAX: u64 = 16 << 20;

/// `config.lock.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// [`LOCK_VERSION`].
    pub lock_version: u32,
    /// The run.
    pub run_id: RunId,
    /// When the lock was made.
    pub created_at: UnixMs,
    /// The board's id.
    pub board: BoardId,
    /// Kind of run.
    pub mode: Mode,
    /// Normalised configuration.
    pub config: Config,
    /// sha256 of `config_source.yaml` as its author wrote it.
    pub config_source_sha256: Digest,
    /// `--set key=value` in order.
    pub config_sets: Vec<String>,
    /// Normalised board definition.
    pub board_definition: Board,
    /// BUILD.json as found in the prefix.
    pub build: BuildRecord,
    /// Code, prompt and search hashes (LCK-02).
    pub hashes: Hashes,
    /// What gives scores their meaning.
    pub eval_spec: EvalSpec,
    /// sha256 over the whole evaluation spec.
    pub eval_hash: Digest,
    /// sha256 over its scorer side: truth, anchors, scorer (O-EVS-2).
    pub scoring_fingerprint: Digest,
    /// sha256 over what search scores mean (EVS-06).
    pub search_hash: Digest,
    /// Every file of every view: path below the view → sha256.
    pub view_files: BTreeMap<ViewId, BTreeMap<String, Digest>>,
    /// The candidates' Python.
    pub environment: PythonFacts,
    /// First model of each role as reported by its provider.
    pub models: BTreeMap<Role, String>,
    /// Whole chain of each role (LCK-03).
    pub models_fallback: BTreeMap<Role, Vec<String>>,
    /// `code/` of the run.
    pub code_snapshot: CodeSnapshot,
    /// `inputs/` of the run.
    pub pinned_inputs: Vec<PinnedInput>,
    /// The sandbox helper and what it isolates on this machine.
    pub sandbox: SandboxRecord,
    /// Who owns process trees.
    pub supervisor: Supervisor,
    /// Who admits memory and GPU slots (CX-15).
    pub admission: Admission,
    /// What keeps truth from other processes of the host.
    pub truth_isolation: TruthIsolation,
    /// The scorer's self-test before the lock.
    pub self_test: SelfTest,
    /// Runs that this one builds on and that are tainted.
    pub tainted_ancestors: BTreeSet<RunId>,
    /// No reason against submission.
    pub submittable: bool,
    /// Every reason against submission (LCK-04).
    pub reasons: Vec<Reason>,
}

/// Code hashes of a lock (LCK-02, O-LCK-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hashes {
    /// Git tree id of the whole `code/`.
    pub code: TreeId,
    /// sha256 per prompt file: path below `code/prompts`.
    pub prompts: BTreeMap<String, Digest>,
    /// Git tree id of the sources as built (BUILD.json).
    pub search: TreeId,
}

/// Why a lock cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is longer than a lock can be.
    #[error("{} is {bytes} bytes long; a lock has at most {LOCK_BYTES_MAX}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Not a lock.
    #[error("{} is not a lock of version {LOCK_VERSION}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A lock of another version.
    #[error("{} is a lock of version {found}; this program reads version {LOCK_VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl Lock {
    /// Name below the run directory.
    pub const FILE: &str = "config.lock.json";

    /// Reads a lock file.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let read = |source| LockError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = std::fs::metadata(path).map_err(read)?.len();
        if bytes > LOCK_BYTES_MAX {
            return Err(LockError::TooLong {
                path: path.to_owned(),
                bytes,
            });
        }
        Self::parse(path, &std::fs::read(path).map_err(read)?)
    }

    /// Parses the bytes of a lock; `path` is for errors only.
    ///
    /// # Errors
    /// [`LockError::Parse`] and [`LockError::Version`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, LockError> {
        // The version first: a lock of another version may have other fields.
        #[derive(Deserialize)]
        struct Version {
            lock_version: u32,
        }
        let parse = |source| LockError::Parse {
            path: path.to_owned(),
            source,
        };
        let Version { lock_version } = serde_json::from_slice(bytes).map_err(parse)?;
        if lock_version != LOCK_VERSION {
            return Err(LockError::Version {
                path: path.to_owned(),
                found: lock_version,
            });
        }
        serde_json::from_slice(bytes).map_err(parse)
    }
}
