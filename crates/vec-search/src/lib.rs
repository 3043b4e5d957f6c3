//! The pure run: draw, FUTS, parent selection, node pipeline, promotion, final selection.
//!
//! Invariants: no I/O, no async, no clock, no global state, no unordered iteration. State changes
//! only through [`RunState::apply`]; [`RunState::decide`] returns decisions and never mutates;
//! [`RunState::wanted`] is derived: every effect that an event started and none has ended.

mod effect;
mod event;
mod policy;

pub use effect::{
    CommitInfo, Effect, EffectId, EngineerEnd, ExecReport, ExecResult, MethodState, Outcome,
    PlanResult, ReviewVerdict, ScoreResult, SessionReport,
};
pub use event::{Event, Pair, SelectReason, SkipReason, Standing};
pub use policy::{Budget, ChecksMode, Guard, GuardKind, Policy, SeedProgram, Select};
