//! Launch, resume, stop, status, list, watch: one launcher per machine and user (architecture §2).
//! It locks and snapshots a run, starts its daemons out of `<run_dir>/code/bin`, restarts them
//! within limits, and takes over what an earlier launcher left.
//!
//! Invariants: truth is a descriptor that is handed on, never bytes that are read; a refused
//! launch leaves a record and no run; one task owns the daemons of a run; a launcher that dies
//! takes no run with it. State: `R/launcher/` (lock, pid, requests), `R/r/<run8>/run.json`.
//!
//! Order of reading: `launcher` (who runs), `launch` → `prepare`, `preflight`, `locking`; `group` →
//! `specs`, `spawn`, `restart`, `closing`; `adopt`, `resume`; `rpc` and `watch` serve it.

mod adopt;
mod answering;
mod closing;
mod data_root;
mod deps;
mod error;
mod files;
mod group;
mod instance;
mod launch;
mod launcher;
mod locking;
mod off_thread;
mod prefix;
mod preflight;
mod prepare;
mod python;
mod record;
mod refusal;
mod requests;
mod restart;
mod resume;
mod rpc;
mod run_facts;
pub mod run_view;
mod runtime_dir;
mod server;
mod service;
mod spawn;
mod specs;
mod watch;

pub use answering::answering;
pub use closing::{CloseError, close_as_infra};
pub use data_root::DataRoot;
pub use deps::{Deps, Supervision, SupervisorChoice};
pub use error::LauncherError;
pub use files::FileError;
pub use group::GroupError;
pub use instance::{Claim, Instance, InstanceError};
pub use launch::{ConfigSource, LaunchCall, LaunchError};
pub use launcher::{Launcher, Listed, list_known};
pub use locking::LockingError;
pub use prefix::own_prefix;
pub use preflight::Item;
pub use prepare::PrepareError;
pub use python::PythonError;
pub use record::{RunRecord, RunStage};
pub use requests::{Launched, Requests, is_request_id};
pub use restart::{RestartDecision, RestartHistory, RestartLimit};
pub use resume::ResumeError;
pub use run_facts::FactsError;
pub use runtime_dir::{RunRuntime, RuntimeDir, RuntimeDirError, Surroundings};
pub use server::{ServeError, serve};
pub use service::Service;
pub use spawn::SpawnError;
