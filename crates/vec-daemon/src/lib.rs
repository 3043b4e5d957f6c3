//! What every daemon does: take its launch spec and descriptors, log, listen with a peer check,
//! report readiness, stop on a signal, and leave with a typed exit code.
//!
//! Invariants: a daemon reads its spec once, from an inherited descriptor; it never reads argv or
//! the environment for configuration; SIGTERM ends it within its grace, a second signal at once.

mod at;
mod exit;
mod inherited;
mod listen;
pub mod spec;
mod tracing_setup;

pub use at::{directory_at, file_at, hide_memory};
pub use exit::{ErrorChain, Exit, chain, kill_self, own_uid, run};
pub use inherited::{InheritError, Inherited, fds};
pub use listen::{PeerCheck, Peers, incoming};
pub use tracing_setup::init_tracing;
