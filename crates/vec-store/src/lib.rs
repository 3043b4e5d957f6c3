//! The run directory: layout, archive, ledger, artifacts (LED, ARV, architecture §6).
//!
//! Invariants: one writer per run, the holder of [`RunLock`]. A file of the run is evidence from
//! the moment its ledger line is synced, an event from the moment its transaction is committed,
//! and files come before the event that refers to them. Nothing here deletes evidence: what a
//! crash leaves half-done is moved to `orphans/` and registered. Only this crate uses sqlx.

mod archive;
mod error;
mod files;
mod layout;
mod ledger;
mod lock;
mod store;
mod taint;

pub use archive::{
    Archive, ArchiveReader, EventFault, ExecutionRow, NodeRow, ScoreRow, StoredEvent, check_events,
    event_hash,
};
pub use error::StoreError;
pub use files::{Content, NewFile, TreeLimits, hash_file, hash_prefixes};
pub use layout::{RunLayout, is_exempt_while_open, rel};
pub use ledger::{
    Ledger, LedgerEntry, LedgerFault, LedgerOp, LedgerReport, NewLine, Registered, covered_hash,
    verify_ledger,
};
pub use lock::RunLock;
pub use store::{Batch, FaultHook, Recovery, STEPS, Store};
pub use taint::{taint, taint_reasons};
