//! Makes what a run reads: a board (views, manifests, truth halves) from raw data, and the
//! candidates' Python. Used by `vecctl board build` and `vecctl env build`, never by a daemon
//! that serves a run; the launcher only loads what is there.
//!
//! Invariants: a result appears under its name as a whole or not at all; building twice gives the
//! same bytes; truth is written below `truth/` alone, 0700/0600, and [`load_built`] never opens it.

mod build;
mod command;
mod env;
mod error;
mod publish;
mod python;
mod raw;
mod record;
mod split;
mod tree;
mod view;

pub use build::{BuildOptions, build};
pub use env::{EnvRecord, PythonEnv, build_env, open_env, stdlib_env, verify_env};
pub use error::{BoardError, EnvError};
pub use raw::RawError;
pub use record::{
    BoardRecord, BuiltBoard, RowCounts, ViewRecord, load_built, view_manifest_limits,
};
pub use tree::{TreeError, tree_manifest};
