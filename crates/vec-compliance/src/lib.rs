//! The Compliance role's pattern pass: which sentences of a plan must not reach an Engineer
//! (CMP-01, LKG-01, RES-10).
//!
//! Invariants: pure; one table of patterns ([`Rules`]) says everything; what is removed is marked
//! `[compliance: removed]` and reported with the pattern that hit. Later users of the same table
//! are the audit and the knowledge check.

mod check;
mod rules;
mod sentences;

pub use check::{Checked, MARK, Removed, check_plan};
pub use rules::{Pattern, PatternKind, Rules, RulesError};
