//! Ending a run in its controller's place: when a daemon was restarted too often, the launcher
//! becomes the run's writer, stops it with reason infra and closes it (STP-02, RSM-03). Its
//! daemons are gone by then.
//!
//! The events are the same as a controller's: one fact, then `decide` until it is silent, so that
//! replay holds.

use std::io::ErrorKind;

use serde_json::{Value, json};
use vec_clock::Clock;
use vec_search::{CorruptRun, Event, RunState};
use vec_store::{Batch, NewFile, RunLayout, Store, StoreError, rel};
use vec_types::{Digest, StopReason, UnixMs, pretty_json};

use crate::run_view::{ViewError, fold};

/// What the controller keeps in the run's spool so that a full disk has room for the last words.
const BALLAST: &str = "ballast";

/// Why a run could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The run directory cannot be written.
    #[error("close run {run}")]
    Store {
        /// The run.
        run: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Its events cannot be folded.
    #[error("close the run")]
    View(#[source] ViewError),
    /// The search refuses to stop: a bug.
    #[error("close the run: {kind} does not fit")]
    Decision {
        /// The event.
        kind: String,
        /// Why.
        #[source]
        source: CorruptRun,
    },
    /// The search did not come to an end.
    #[error("the search did not stop when told to")]
    Endless,
    /// A document has no JSON form.
    #[error("write the run's last documents")]
    Encode(#[source] vec_types::CanonicalError),
}

struct Closing {
    store: Store,
    state: RunState,
    at: UnixMs,
}

/// Stops a run with reason infra and closes it. Returns the ledger's head.
///
/// # Errors
/// [`CloseError`]; the run is then still open and can be resumed.
pub async fn close_as_infra(
    layout: &RunLayout,
    clock: &dyn Clock,
    why: &str,
) -> Result<Digest, CloseError> {
    let failed = |source| CloseError::Store {
        run: layout.run().to_string(),
        source,
    };
    let now = clock.now();
    drop_ballast(layout);
    let (mut store, recovery) = Store::open(layout.run_dir(), now).await.map_err(failed)?;
    if !recovery.missing.is_empty() {
        tracing::error!(missing = ?recovery.missing, "registered files are gone");
    }
    let stored = store.events().await.map_err(failed)?;
    let state = fold(layout.run_dir(), &stored).map_err(CloseError::View)?;
    let at = stored.last().map_or(now, |last| now.max(last.at));
    let mut closing = Closing { store, state, at };
    if closing.state.run().is_some() && closing.state.outcome().is_none() {
        closing.stop(why).await?;
    }
    closing.meta(why).await?;
    let manifest = closing.manifest(layout, why);
    closing.store.close(at, &manifest).await.map_err(failed)
}

// The disk may be full. Without that room, opening the store says what is wrong.
fn drop_ballast(layout: &RunLayout) {
    let path = layout.spool().join(BALLAST);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "remove the ballast");
        }
        _ => {}
    }
}

impl Closing {
    // As a controller that takes over and is told to stop at once: the search settles what is in
    // work and stops.
    async fn stop(&mut self, why: &str) -> Result<(), CloseError> {
        let start = self.state.resumes() + 1;
        self.fact(Event::RunResume { start }).await?;
        if self.state.outcome().is_none() {
            let (reason, detail) = (StopReason::Infra, why.to_owned());
            self.fact(Event::StopRequested { reason, detail }).await?;
        }
        match self.state.outcome() {
            Some(_) => Ok(()),
            None => Err(CloseError::Endless),
        }
    }

    async fn fact(&mut self, event: Event) -> Result<(), CloseError> {
        self.state
            .check(self.at, &event)
            .map_err(|source| CloseError::Decision {
                kind: event.kind(),
                source,
            })?;
        self.persist(vec![event]).await?;
        loop {
            let batch = self.state.decide(self.at);
            if batch.is_empty() {
                return Ok(());
            }
            self.persist(batch).await?;
        }
    }

    async fn persist(&mut self, events: Vec<Event>) -> Result<(), CloseError> {
        let batch = Batch {
            at: self.at,
            files: Vec::new(),
            events: events.clone(),
        };
        let run = self.store.layout().run().to_string();
        self.store
            .commit(batch)
            .await
            .map_err(|source| CloseError::Store { run, source })?;
        for event in &events {
            self.state
                .apply(self.at, event)
                .map_err(|source| CloseError::Decision {
                    kind: event.kind(),
                    source,
                })?;
        }
        Ok(())
    }

    // run_meta.json carries the stop reason, too (STP-01); what else it says stays.
    async fn meta(&mut self, why: &str) -> Result<(), CloseError> {
        let path = self.store.layout().run_meta();
        let meta = std::fs::read(&path).ok();
        let meta = meta.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let Some(Value::Object(mut meta)) = meta else {
            return Ok(());
        };
        meta.insert("stop_reason".to_owned(), json!(StopReason::Infra));
        meta.insert("stop_detail".to_owned(), json!(why));
        meta.insert("stopped_at".to_owned(), json!(self.at.to_string()));
        let bytes = pretty_json(&meta).map_err(CloseError::Encode)?;
        let run = self.store.layout().run().to_string();
        let batch = Batch {
            at: self.at,
            files: vec![NewFile::replace(rel::run_meta(), bytes)],
            events: Vec::new(),
        };
        let committed = self.store.commit(batch).await;
        committed.map_err(|source| CloseError::Store { run, source })?;
        Ok(())
    }

    fn manifest(&self, layout: &RunLayout, why: &str) -> Value {
        let outcome = self.state.outcome();
        let (seq, hash) = self.store.head();
        json!({
            "run_id": layout.run(),
            "stop_reason": outcome.map_or(StopReason::Infra, |outcome| outcome.reason),
            "detail": outcome.map_or(why, |outcome| outcome.detail.as_str()),
            "winner": outcome.and_then(|outcome| outcome.winner),
            "winner_is_baseline": outcome.map(|outcome| outcome.winner_is_baseline),
            "stopped_at": self.at.to_string(),
            "last_event": { "seq": seq, "hash": hash },
        })
    }
}

#[cfg(test)]
mod tests {
    use vec_clock::ManualClock;

    use super::*;
    use crate::run_view::{is_closed, stop_reason};

    #[tokio::test]
    async fn a_run_is_closed_without_its_ballast() {
        let dir = tempfile::tempdir().expect("dir");
        let run: vec_types::RunId = "20261130-101010-diabetes-abcd".parse().expect("id");
        let store = Store::create(dir.path(), &run, UnixMs(7)).await;
        let store = store.expect("created");
        let layout = store.layout().clone();
        store.release().await.expect("released");
        let ballast = layout.spool().join(BALLAST);
        std::fs::write(&ballast, [0; 4096]).expect("ballast");
        let clock = ManualClock::new(UnixMs(8));
        close_as_infra(&layout, &clock, "why")
            .await
            .expect("closed");
        assert!(!ballast.exists());
        assert!(is_closed(&layout));
        assert_eq!(stop_reason(&layout).expect("reason"), StopReason::Infra);
    }
}
