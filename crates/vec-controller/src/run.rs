//! The run's one owner: state, store, clock. A turn persists and applies one fact (or none), then
//! drains `decide` with the same `at` (architecture §3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;
use vec_clock::Clock;
use vec_search::{Effect, Event, Outcome, RunState};
use vec_store::{Batch, NewFile, Store, StoredEvent, rel};
use vec_types::{NodeId, UnixMs, canonical_json};

use crate::error::ControllerError;
use crate::evidence;
use crate::fault::{FaultWatch, die};
use crate::feed::{Feed, Latest};
use crate::spans::{Span, Spans};

/// A fact with the files that it refers to.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) event: Event,
    pub(crate) files: Vec<NewFile>,
}

/// The run and everything that may change it.
#[derive(Debug)]
pub(crate) struct Run {
    state: RunState,
    store: Store,
    clock: Arc<dyn Clock>,
    last_at: UnixMs,
    fault: FaultWatch,
    feed: Feed,
    spans: Spans,
    turn: Turn,
    registering: Registering,
}

/// Does the batch in progress register weights? For crash tests.
pub(crate) type Registering = Arc<AtomicBool>;

/// The turn in progress, for the accounts of time.
#[derive(Debug)]
struct Turn {
    began: Instant,
    /// Node of the fact.
    node: Option<NodeId>,
    /// Nodes created in it.
    created: Vec<NodeId>,
}

impl Turn {
    fn begin(node: Option<NodeId>) -> Self {
        Self {
            began: Instant::now(),
            node,
            created: Vec::new(),
        }
    }
}

impl Run {
    /// Folds the stored events.
    ///
    /// # Errors
    /// [`ControllerError::Corrupt`] names the first event that does not fit.
    pub(crate) fn fold(
        store: Store,
        stored: &[StoredEvent],
        clock: Arc<dyn Clock>,
        fault: FaultWatch,
        feed: Feed,
        registering: Registering,
    ) -> Result<Self, ControllerError> {
        let mut state = RunState::new();
        for event in stored {
            let decoded = event.event().map_err(ControllerError::Store)?;
            state
                .apply(event.at, &decoded)
                .map_err(|source| ControllerError::Corrupt {
                    seq: event.seq,
                    source,
                })?;
        }
        feed.extend(stored);
        let last_at = stored.last().map_or(UnixMs(0), |event| event.at);
        Ok(Self {
            state,
            store,
            clock,
            last_at,
            fault,
            feed,
            spans: Spans::default(),
            turn: Turn::begin(None),
            registering,
        })
    }

    /// The folded state.
    pub(crate) const fn state(&self) -> &RunState {
        &self.state
    }

    /// Where a node's time went.
    pub(crate) const fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Adds time to a node in work.
    pub(crate) fn add_spans(&mut self, node: NodeId, spans: &[Span]) {
        for span in spans {
            self.spans.add(node, *span);
        }
    }

    /// The store, for marks and closing.
    pub(crate) const fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Gives store and feed up for closing.
    pub(crate) fn into_parts(self) -> (RunState, Store, Feed) {
        (self.state, self.store, self.feed)
    }

    /// Now, never earlier than the last turn.
    pub(crate) fn now(&self) -> UnixMs {
        self.clock.now().max(self.last_at)
    }

    /// One turn. Returns `false` when the fact was dropped because its effect is no longer wanted
    /// (nothing of it is stored).
    ///
    /// # Errors
    /// A store that refuses, or an event that does not fit.
    pub(crate) async fn turn(&mut self, fact: Option<Fact>) -> Result<bool, ControllerError> {
        let at = self.now();
        self.last_at = at;
        self.turn = Turn::begin(fact.as_ref().and_then(|fact| fact.event.node()));
        let mut used = fact.is_none();
        if let Some(Fact { event, files }) = fact
            && self.is_due(&event)
        {
            used = true;
            self.state
                .check(at, &event)
                .map_err(|source| ControllerError::Decision {
                    kind: event.kind(),
                    source,
                })?;
            self.persist(at, files, vec![event]).await?;
        }
        loop {
            let batch = self.state.decide(at);
            if batch.is_empty() {
                break;
            }
            let files = evidence::files(&self.state, &batch);
            self.persist(at, files, batch).await?;
        }
        self.account_for_turn();
        self.publish();
        Ok(used)
    }

    /// Tells readers the state.
    pub(crate) fn publish(&self) {
        let seq = self.store.head().0;
        self.feed.publish(Latest {
            seq,
            status_json: status_json(&self.state, self.now()),
            is_over: false,
        });
    }

    // Results of effects that the run gave up (a cut node, an abandoned promotion) are dropped.
    fn is_due(&self, event: &Event) -> bool {
        match event {
            Event::EffectEnded { effect, .. } => self.state.is_wanted(effect),
            _ => true,
        }
    }

    async fn persist(
        &mut self,
        at: UnixMs,
        files: Vec<NewFile>,
        events: Vec<Event>,
    ) -> Result<(), ControllerError> {
        let registers = files.iter().any(|file| rel::is_weights_index(file.path()));
        self.registering.store(registers, Ordering::SeqCst);
        let batch = Batch {
            at,
            files,
            events: events.clone(),
        };
        let stored = self.store.commit(batch).await;
        self.registering.store(false, Ordering::SeqCst);
        let stored = stored.map_err(ControllerError::Store)?;
        for event in &events {
            self.state
                .apply(at, event)
                .map_err(|source| ControllerError::Decision {
                    kind: event.kind(),
                    source,
                })?;
            self.count(event);
        }
        self.feed.extend(&stored);
        for event in &stored {
            if self.fault.is_due(&event.kind) {
                let hash = event.hash.to_string();
                let note = json!({ "kind": event.kind, "seq": event.seq, "hash": hash });
                die(self.store.layout().run_dir(), &note);
            }
        }
        Ok(())
    }

    // A turn's time belongs to the node of its fact; a node created in it has waited since.
    fn account_for_turn(&mut self) {
        if let Some(node) = self.turn.node {
            self.spans.add(node, persisting(self.turn.began.elapsed()));
        }
        for node in std::mem::take(&mut self.turn.created) {
            self.spans.add_since_creation(node, "persist.harness");
        }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::NodeCreated { node, .. } => {
                tracing::info!(node = node.0, "node created");
                self.spans.created(*node);
                self.turn.created.push(*node);
            }
            Event::NodeSettled { node, status, .. } => {
                tracing::info!(node = node.0, status = status.as_str(), "node settled");
                if self.turn.node == Some(*node) {
                    self.spans.add(*node, persisting(self.turn.began.elapsed()));
                }
                self.spans.settled(*node);
            }
            Event::PhaseChange { to, .. } => tracing::info!(phase = ?to, "phase"),
            Event::Stop { reason, detail, .. } => {
                tracing::info!(reason = reason.as_str(), detail, "stop");
            }
            _ => {}
        }
    }
}

const fn persisting(length: std::time::Duration) -> Span {
    Span {
        name: "persist.harness",
        length,
    }
}

/// The fact that an effect ended.
pub(crate) const fn ended(effect: Effect, end: Outcome) -> Event {
    Event::EffectEnded { effect, end }
}

/// The state's status as canonical JSON.
pub(crate) fn status_json(state: &RunState, at: UnixMs) -> Vec<u8> {
    canonical_json(&state.status(at)).unwrap_or_else(|error| {
        tracing::error!(%error, "status cannot be written");
        b"{}".to_vec()
    })
}
