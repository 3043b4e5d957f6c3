//! Supervisors: start, adopt, account and end whole process trees.
//!
//! Invariants: a signal goes only to a process whose identity (pid and start time) was checked
//! while its pidfd was held, never to a recycled pid. Every wait that this crate makes by itself is
//! bounded. Today there is one supervisor, `plain`; `cgroup` and `systemd` are further variants of
//! [`Supervisor`] with the same [`Unit`] and [`Group`].

mod accounting;
mod exit;
mod group;
mod names;
mod pidfile;
mod process;
mod sample;
mod supervisor;
mod sys;
mod unit;

pub use accounting::{Accounting, AccountingSource, OomVerdict, oom_verdict};
pub use exit::{ExitKind, ScopeError};
pub use group::{Group, GroupLimits};
pub use nix::sys::signal::Signal;
pub use pidfile::Pidfile;
pub use supervisor::{SpawnRequest, Supervisor};
pub use unit::Unit;
