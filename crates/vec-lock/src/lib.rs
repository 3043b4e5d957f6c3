//! Makes the lock of a run: code snapshot, pinned inputs, hashes, evaluation spec, reasons against
//! submission (LCK, EVS).
//!
//! Order at launch: [`snapshot_code`] and [`pin_inputs`] into the new run directory, then
//! [`build_lock`] over what lies there, then [`lock_bytes`] are written once. Truth comes in as
//! digests and anchors only.

mod build;
mod copy;
mod error;
mod machine;
mod pins;
mod reasons;
mod seeds;
mod snapshot;
mod views;

pub use build::{LockInputs, TruthInputs, build_lock, lock_bytes};
pub use error::{LockBuildError, SnapshotError};
pub use machine::cpu_model;
pub use pins::{Pin, pin_inputs};
pub use reasons::{LockFacts, reasons};
pub use seeds::{SeedRecord, check_seeds};
pub use snapshot::{SnapshotInputs, prompt_hashes, read_build_record, snapshot_code, verify_code};
pub use views::{ViewFacts, view_facts};
