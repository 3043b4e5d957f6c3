//! The rules of one candidate execution that are neither the sandbox's nor the search's: which
//! mechanism a control switches off, what a program declares, weights that are trained once per
//! view, views in disguise, whose fault an end was, and whether two outputs are the same.
//!
//! Invariants: nothing here starts a process, decides about a node, or writes into the run
//! directory; what must be kept is handed back as [`vec_store::NewFile`]s for the store's batch. What
//! a program wrote (declarations, weights, predictions) is parsed within bounds and refused with one
//! error that names the thing. Weights that are registered are verified or the execution is
//! interrupted; they are never trained again in silence (PVW-06).

mod ablate;
mod artifacts;
mod attribution;
mod compare;
mod disguise;
mod error;
mod index;
mod key;
mod locks;
mod place;
mod training;
mod weights;

pub use ablate::{DEFAULT_MECHANISM, UNSUPPORTED, ablate_name, is_unsupported};
pub use artifacts::{ARTIFACTS_FILE, Artifacts, FixedArtifact, WEIGHT_BYTES_MAX};
pub use attribution::{Attribution, Collection, Ending, Oom, Scoring, TimeBound, attribute};
pub use compare::{Comparison, compare};
pub use disguise::{Disguise, alias, disguise};
pub use error::ExecError;
pub use index::{Index, WeightFile};
pub use key::{KeyParts, environment_digest};
pub use locks::{TrainingLock, TrainingLocks};
pub use place::{
    Collected, Training, place_copies, place_fixed, place_registered, prepare_training,
};
pub use training::{EXECUTION_FILE, TrainingRules};
pub use weights::{Found, Registration, STEPS, StepHook, Weights};
