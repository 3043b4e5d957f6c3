//! The pure run: draw, FUTS, parent selection, node pipeline, promotion, final selection.
//!
//! Invariants: no I/O, no async, no clock, no global state, no unordered iteration. State changes
//! only through [`RunState::apply`]; [`RunState::decide`] returns decisions and never mutates;
//! [`RunState::wanted`] is derived: every effect that an event started and none has ended or
//! dropped.
//!
//! | file | owns |
//! |---|---|
//! | `event`, `effect`, `policy` | the vocabulary: what is stored, what is done, what is locked |
//! | `state`, `state/check*`, `state/apply*` | the fold: what may follow, what it changes |
//! | `node` | stages and endings of one node |
//! | `decide/*` | the rules, in order: ends, pipeline, promotion, seeding, reviews, search, finale |
//! | `futs` | the public reference algorithm, bit for bit |
//! | `select` | the wrapper around it: ties, virtual visits, busy, suspended and blocked parents |
//! | `mt19937` | CPython's generator |
//! | `identity`, `ranking` | who is the same candidate; who is promoted, reviewed, a finalist |
//! | `guard` | the guard's statistics |
//! | `deadlines` | the run's points in time |
//! | `inputs` | digests of what a decision saw |
//! | `view`, `status` | read access for everybody else |
//!
//! # Driver rules
//! One clock reading per turn: a fact and all decisions after it carry the same `at`, which never
//! goes backwards. Results of effects that are not wanted any more are dropped. A fact passes
//! [`RunState::check`] before it is stored.

mod corrupt;
mod deadlines;
mod decide;
mod effect;
mod event;
pub mod futs;
mod guard;
mod identity;
mod inputs;
mod mt19937;
mod node;
mod policy;
mod ranking;
mod select;
mod state;
mod status;
mod view;

pub use corrupt::CorruptRun;
pub use deadlines::Deadlines;
pub use effect::{
    CommitInfo, Effect, EffectId, EngineerEnd, ExecReport, ExecResult, MethodState, Outcome,
    PlanResult, ReviewVerdict, ScoreResult, SessionReport,
};
pub use event::{Event, Pair, SelectReason, SkipReason, Standing};
pub use guard::{GUARD_CONFIDENCE, GuardStats, GuardVerdict, guard_stats};
pub use mt19937::Mt19937;
pub use policy::{Budget, ChecksMode, Guard, GuardKind, Policy, SeedProgram, Select};
pub use state::{ResumeRefused, RunOutcome, RunState};
pub use status::{RankedNode, RunStatus, RunningNode};
pub use view::NodeView;

/// Review calls per node before it counts as one that cannot be reviewed (O-REV-2).
pub const REVIEW_ATTEMPTS_MAX: u32 = 2;

/// Nodes per seed program: a seed that was shelved through no fault of its own is tried again.
pub const SEED_ATTEMPTS_MAX: u32 = 3;
