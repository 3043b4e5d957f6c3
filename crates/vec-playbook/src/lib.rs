//! The scripted model and the scripted Engineer: a shipped, named offline double of real ones,
//! behind the same chat seam and the same Engineer process seam.
//!
//! Invariants: an answer is a pure function of playbook file, search seed, role, node, attempt and
//! the prompt's context block; a session's choices are one of playbook file, search seed, node,
//! brief and tool replies. Time, process ids and the order of other nodes never matter. A playbook
//! is never submittable; the lock says that a run used one.

mod analyst;
mod chat;
mod context;
mod deal;
mod engineer;
#[cfg(test)]
mod engineer_tests;
mod escape;
mod parameters;
mod playbook;
mod program;
#[cfg(test)]
mod program_tests;
mod researcher;
mod reviewer;
mod serve;
mod session;
mod tools;

pub use chat::{ChatFault, answer};
pub use deal::{Operator, OutcomeCard, deal};
pub use engineer::{EngineerError, engineer};
pub use parameters::{ParameterRange, ParameterValue, Settings};
pub use playbook::{Family, Playbook, PlaybookError};
pub use program::render;
pub use serve::{ServeError, serve};
