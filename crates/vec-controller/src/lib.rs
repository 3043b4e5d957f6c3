//! The search: one loop, one owner of the run's state.
//!
//! Invariants: nothing here decides; `vec-search` does. State changes only by a persisted event
//! (module `run`). One task owns state and store; effects are tasks that get owned inputs and return
//! one outcome; the control service reads the feed.
//!
//! ```text
//! effects ──Done──▶ driver ──Fact──▶ run.turn: persist, apply, drain decide ──▶ feed ──▶ control
//!    ▲                 │
//!    └── wanted() ─────┘
//! ```
//!
//! `server` composes, `driver` loops, `effects/<step>` do one step each, `closing` seals.

mod check;
mod client;
mod closing;
mod commit;
mod context;
mod control;
mod disk;
mod driver;
mod effects;
mod error;
mod evidence;
mod fault;
mod feed;
mod portrait;
mod python;
mod run;
mod selection;
mod server;
mod spans;
mod spool;
mod supervised;

pub use error::ControllerError;
pub use server::serve;
