//! The nouns that two or more crates need: ids, digests, canonical JSON, units, scores,
//! stages, verdicts and stop reasons.
//!
//! Invariants: no I/O except the `new_run_suffix` random source, no async, no clock. Every id is
//! a newtype with one fallible constructor; `Display` and `FromStr` are symmetrical.

mod canonical;
mod digest;
mod ids;
mod manifest;
mod node;
mod outcome;
mod parts;
mod paths;
mod plan;
mod pool;
mod run;
mod score;
mod table;
mod time;
mod tree_id;
mod word;

pub use canonical::{CanonicalError, canonical_json, pretty_json};
pub use digest::{Digest, DigestError, Hasher};
pub use ids::{
    BoardId, ExecName, IdError, NodeId, ProgramSeed, RunId, RunNode, ScoringSeed, SearchSeed,
};
pub use manifest::{ManifestEntry, manifest_hash};
pub use node::{Operator, SeedState};
pub use outcome::{CandidateFault, InfraFault, NodeStatus, WeightsMode};
pub use parts::{Part, PartName, PartRef, Parts};
pub use paths::{PathError, RelPath};
pub use plan::Plan;
pub use pool::Pool;
pub use run::{Phase, StopReason};
pub use score::{Score, ScoreError, ScoreReport, TruthHalf};
pub use table::Table;
pub use time::UnixMs;
pub use tree_id::TreeId;
pub use word::{CategoryId, FamilyId, RulerId, SeedProgramId, ViewId};
