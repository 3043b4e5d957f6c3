//! The deterministic simulator of `vec-search`: whole runs in virtual time over seeded policies,
//! worlds and mishaps, compared after every event with what must hold.
//!
//! | file | owns |
//! |---|---|
//! | `driver/*`, `replay` | the controller's loop in miniature; what `verify --replay` does |
//! | `fixture` | policies and results to build runs from, for the scenario tests too |
//! | `random`, `policies`, `imports`, `chaos` | seeded policies, earlier runs and worlds |
//! | `nature`, `controls` | what a program is like; a world with other results of control runs |
//! | `simulation` | one seed: crashes, stops, jumps, new data, late results |
//! | `invariant` | what must hold, by name |
//! | `watch/*`, `book/*` | the checks, over an own fold of the events |
//! | `naive/*`, `row`, `coverage` | the next node in the most stupid way |
//! | `slate` | who is promoted, reviewed, a finalist, by comparing every pair |
//! | `rules/*` | how often each rule fired |
//! | `batch`, `report` | many seeds on many threads; the table for people |
//!
//! # Reproducing a failure
//! A seed decides everything: `cargo xtask sim --seeds 1 --first-seed <seed>` gives the same events, the
//! same breach and the same last events on any machine.

pub mod batch;
mod book;
mod chaos;
mod controls;
mod coverage;
mod driver;
pub mod fixture;
mod imports;
mod invariant;
mod naive;
mod nature;
mod policies;
pub mod random;
mod replay;
pub mod report;
mod row;
mod rules;
mod simulation;
mod slate;
mod watch;
mod words;

pub use chaos::{Chaos, Climate, nudged};
pub use controls::results as control_results;
pub use driver::{Driver, Stored, World, cut};
pub use invariant::{Invariant, breach, must};
pub use nature::Nature;
pub use replay::{fold, replay};
pub use rules::{Rule, Tally};
pub use simulation::{IDLE_EVERY, Simulation};
pub use watch::{FULL_CHECK, Watch};
