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
mod paths;
mod plan;
mod run;
mod score;
mod time;

pub use canonical::{CanonicalError, canonical_json, pretty_json};
pub use digest::{Digest, DigestError, Hasher};
pub use ids::{
    BoardId, CategoryId, ExecName, FamilyId, IdError, NodeId, ProgramSeed, RulerId, RunId, RunNode,
    ScoringSeed, SearchSeed, SeedProgramId, TreeId, ViewId,
};
pub use manifest::{ManifestEntry, manifest_hash};
pub use node::{Operator, SeedState};
pub use outcome::{CandidateFault, CheckVerdict, InfraFault, NodeStatus};
pub use paths::{PathError, RelPath};
pub use plan::Plan;
pub use run::{Phase, StopReason};
pub use score::{Part, Score, ScoreError, ScoreReport, TruthHalf};
pub use time::UnixMs;
