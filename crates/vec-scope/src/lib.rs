//! Supervisors: start, adopt, account and end whole process trees.
//!
//! Invariants: a signal goes only to a process whose identity (pid and start time) was checked
//! while its pidfd was held, never to a recycled pid. Every wait that this crate makes by itself is
//! bounded. There are two supervisors, `plain` and `cgroup`; `systemd` will be a further variant of
//! [`Supervisor`] with the same [`Unit`] and [`Group`].

mod accounting;
mod cgroup;
mod ending;
mod exit;
mod group;
mod names;
mod orphans;
mod pidfile;
mod process;
mod sample;
mod supervisor;
mod sys;
mod unit;

pub use accounting::{Accounting, AccountingSource, OomVerdict, oom_verdict};
pub use cgroup::{Cgroups, NoCgroups};
pub use exit::{ExitKind, ScopeError};
pub use group::{Group, GroupLimits};
pub use nix::sys::signal::Signal;
pub use orphans::Orphan;
pub use pidfile::Pidfile;
pub use supervisor::{SpawnRequest, Supervisor};
pub use unit::Unit;
