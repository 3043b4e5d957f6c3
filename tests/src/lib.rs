//! Builders for real-process scenarios: the built product (VEC_PREFIX, made by `cargo xtask
//! dist`), temporary directories, `vecctl` as a person would call it. Waits are on events of a run
//! and bounded; nothing sleeps.

mod product;
mod run;
mod skip;
mod stack;

pub use product::{prefix, repository};
pub use run::{Closed, WatchedRun};
pub use skip::{is_root, skip};
pub use stack::{Said, Stack};
