//! The pure run: draw, FUTS, parent selection, node pipeline, promotion, final selection.
//!
//! Invariants: no I/O, no async, no clock, no global state, no unordered iteration. State changes
//! only through [`RunState::apply`]; [`RunState::decide`] returns decisions and never mutates;
//! [`RunState::wanted`] is derived: every effect that an event started and none has ended or
//! dropped.
//!
//! | file | owns |
//! |---|---|
//! | `event`, `effect`, `import`, `policy`, `choice` | the vocabulary: what is stored, done, locked |
//! | `state`, `state/check*`, `state/apply*` | the fold: what may follow, what it changes |
//! | `state/index` | what would be searched for again and again |
//! | `node` | stages and endings of one node |
//! | `failure` | the failure algebra: what each outcome means, one table |
//! | `decide/*` | the rules, in order: ends, pipeline, promotion, seeding, reviews, reserve, search, finale |
//! | `futs` | the public reference algorithm, bit for bit |
//! | `select`, `ranks` | the wrapper around it: ties, epochs, virtual visits, pools, owed improves |
//! | `drafts`, `plateau`, `resume` | families, standing still, carried-over work |
//! | `mt19937` | CPython's generator |
//! | `identity`, `ranking` | who is the same candidate; who is promoted, reviewed, a finalist |
//! | `guard` | the guard's statistics |
//! | `deadlines`, `retry` | the run's points in time, pauses after infrastructure faults |
//! | `inputs` | digests of what a decision saw |
//! | `view`, `status` | read access for everybody else |
//! | `planted` | the simulator's switch for planted bugs; always off here |
//!
//! # Driver rules
//! One clock reading per turn: a fact and all decisions after it carry the same `at`, which never
//! goes backwards. Results of effects that are not wanted any more are dropped. A fact passes
//! [`RunState::check`] before it is stored.

mod checks;
mod choice;
mod corrupt;
mod deadlines;
mod decide;
mod drafts;
mod effect;
mod event;
pub mod failure;
pub mod futs;
mod guard;
mod identity;
mod import;
mod inputs;
mod mt19937;
mod node;
#[cfg(feature = "planted")]
pub mod planted;
#[cfg(not(feature = "planted"))]
mod planted;
mod plateau;
mod policy;
mod ranking;
mod ranks;
mod resume;
mod retry;
mod select;
mod state;
mod status;
mod view;

pub use checks::{MechanismActive, VIEW_CHECK_ATTEMPTS_MAX, ViewTrigger, ViewVerdict};
pub use choice::{DraftMode, OutOfPool, STANDINGS_MAX, SelectReason, Standing};
pub use corrupt::CorruptRun;
pub use deadlines::Deadlines;
pub use decide::reserve::RESERVE_STEP_MS;
pub use effect::{
    CommitInfo, Effect, EffectId, EngineerEnd, ExecReport, ExecResult, MethodState, Outcome,
    PlanResult, ReviewVerdict, ScoreResult, SessionReport,
};
pub use event::{Event, Pair, PromotionFailure, SkipReason};
pub use guard::{GUARD_CONFIDENCE, GuardStats, GuardVerdict, guard_stats};
pub use import::{CarriedKind, Import, ImportEnd};
pub use mt19937::Mt19937;
pub use node::PlanView;
pub use policy::{
    Budget, Continuation, Draft, Family, Guard, GuardKind, Plateau, Policy, Reserve, SeedProgram,
    Select, ViewCheck,
};
pub use retry::{RETRY_FIRST_MS, RETRY_MOST_MS};
pub use state::{ResumeRefused, RunOutcome, RunState};
pub use status::{RankedNode, RunStatus, RunningNode};
pub use view::NodeView;

/// Review calls per node before it counts as one that cannot be reviewed (O-REV-2).
pub const REVIEW_ATTEMPTS_MAX: u32 = 2;

/// Nodes per seed program: a seed that was shelved through no fault of its own is tried again.
pub const SEED_ATTEMPTS_MAX: u32 = 3;

/// Promotions of a node that may end in infrastructure faults in one data epoch (O-PRO-1).
pub const PROMOTION_ATTEMPTS_MAX: u32 = 3;
