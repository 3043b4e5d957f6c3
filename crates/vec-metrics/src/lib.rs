//! Ranked metrics, skill, points and board score, and the seeded choice of truth rows.
//!
//! Invariants: pure functions, no I/O, no clock, no global state; the same input gives the same
//! bits. Every result is finite: whatever is not a number is a typed failure, never a score
//! (`decisions.md`: failure is never a number).

mod board;
mod rmse;
mod skill;
mod sources;
mod split_rows;

pub use board::{BoardError, MetricPart, MetricSpec, RulerScore, board_score, ruler_score};
pub use rmse::{MetricError, VALUE_MAX, rmse};
pub use skill::{Anchors, Direction, SkillError, skill};
pub use sources::scorer_hash;
pub use split_rows::{RowShare, SplitError, disjoint_parts, draw_fraction, hash_share};
