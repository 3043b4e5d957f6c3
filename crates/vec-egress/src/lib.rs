//! The model gateway of a run: the one way from roles and agents to a model.
//!
//! Invariants: only `POST /v1/chat/completions` for locked models goes out; the number of calls of
//! a run is bounded and survives a restart; every call leaves two synced lines of evidence
//! (`start` before it goes out, `end` before it is answered), a refused one leaves one; whatever an
//! upstream does, the caller gets a JSON reply within the total time limit.

mod evidence;
mod gateway;
mod refusal;
mod server;
mod upstream;

pub use evidence::{Evidence, EvidenceError};
pub use gateway::Gateway;
pub use refusal::Refusal;
pub use server::{EgressError, serve};
