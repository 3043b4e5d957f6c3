//! The end of a run: run_meta.json, stop_manifest.json, the ledger's close, and the last word to
//! watchers.

use serde_json::{Value, json};
use vec_search::RunState;
use vec_store::{Batch, NewFile, rel};
use vec_types::UnixMs;

use crate::context::Context;
use crate::error::ControllerError;
use crate::feed::Latest;
use crate::run::{Run, status_json};
use crate::spans::Overhead;

/// Seals the segment. The store syncs, registers every file and appends `close`.
///
/// # Errors
/// [`ControllerError::Store`].
pub(crate) async fn close(run: Run, context: &Context) -> Result<(), ControllerError> {
    let at = run.now();
    let overhead = run.spans().overhead();
    tracing::info!(
        nodes = overhead.nodes,
        median_ms = overhead.median_ms,
        unaccounted_share = overhead.unaccounted_share,
        "harness overhead per node"
    );
    let (state, mut store, feed) = run.into_parts();
    let (seq, event_hash) = store.head();
    let meta = run_meta(&state, context, at, &overhead);
    let bytes = vec_types::pretty_json(&meta).map_err(|error| ControllerError::Invalid {
        path: context.layout.run_meta(),
        what: error.to_string(),
    })?;
    let files = vec![NewFile::replace(rel::run_meta(), bytes)];
    store
        .commit(Batch {
            at,
            files,
            events: Vec::new(),
        })
        .await
        .map_err(ControllerError::Store)?;
    let manifest = stop_manifest(&state, at, seq, &event_hash.to_string());
    // Nothing may be logged after this: the log is in the ledger as it stands.
    store
        .close(at, &manifest)
        .await
        .map_err(ControllerError::Store)?;
    feed.publish(Latest {
        seq,
        status_json: status_json(&state, at),
        is_over: true,
    });
    Ok(())
}

fn run_meta(state: &RunState, context: &Context, at: UnixMs, overhead: &Overhead) -> Value {
    let lock = &context.lock;
    let reason = state.outcome().map(|outcome| outcome.reason.as_str());
    json!({
        "run_id": lock.run_id,
        "board": lock.board,
        "created_at": lock.created_at.to_string(),
        "stopped_at": at.to_string(),
        "stop_reason": reason,
        "nodes": state.nodes().count(),
        "harness_overhead": overhead,
        "predecessor": null,
    })
}

fn stop_manifest(state: &RunState, at: UnixMs, seq: u64, event_hash: &str) -> Value {
    let outcome = state.outcome();
    json!({
        "run_id": state.run(),
        "stop_reason": outcome.map(|outcome| outcome.reason.as_str()),
        "detail": outcome.map(|outcome| outcome.detail.as_str()),
        "winner": outcome.and_then(|outcome| outcome.winner),
        "winner_is_baseline": outcome.map(|outcome| outcome.winner_is_baseline),
        "stopped_at": at.to_string(),
        "last_event": { "seq": seq, "hash": event_hash },
    })
}
