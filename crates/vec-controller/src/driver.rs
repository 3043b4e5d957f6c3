//! The controller's loop: one effect result or a tick is one turn; then the missing effects of
//! `wanted()` start and those that left it, or ran into their deadline, are cancelled.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use vec_exec::TrainingLock;
use vec_search::{Effect, EffectId, Event, Outcome};
use vec_types::{InfraFault, RelPath, StopReason, UnixMs};

use crate::context::Context;
use crate::disk;
use crate::effects::{self, Done};
use crate::error::ControllerError;
use crate::run::{Fact, Run, ended};
use crate::spans::Span;

/// Longest time between two turns; deadlines in between come earlier.
const TICK: Duration = Duration::from_secs(30);
/// Marks of logs and archive in the ledger (O-LED-1: every 10 minutes).
const MARK_INTERVAL: Duration = Duration::from_secs(600);
/// Beside the grace, how long cancelled work may take to end.
const WIND_DOWN: Duration = Duration::from_secs(15);

/// An effect in work.
#[derive(Debug)]
struct Work {
    effect: Effect,
    cancel: CancellationToken,
    deadline: Option<UnixMs>,
    started: Instant,
}

/// What ends a wait.
enum Wake {
    Finished(Box<Result<(Id, Done), JoinError>>),
    Stop(String),
    Tick,
}

/// What an effect leaves beside its fact, for when that is stored.
#[derive(Debug, Default)]
struct Rest {
    scratch: Option<PathBuf>,
    locks: Vec<TrainingLock>,
    registers: Vec<RelPath>,
}

/// The loop and what it needs.
#[derive(Debug)]
pub(crate) struct Driver {
    run: Run,
    context: Arc<Context>,
    work: BTreeMap<EffectId, Work>,
    tasks: JoinSet<Done>,
    task_effects: HashMap<Id, EffectId>,
    marked: Instant,
}

impl Driver {
    /// A driver over a folded run.
    pub(crate) fn new(run: Run, context: Arc<Context>) -> Self {
        Self {
            run,
            context,
            work: BTreeMap::new(),
            tasks: JoinSet::new(),
            task_effects: HashMap::new(),
            marked: Instant::now(),
        }
    }

    /// Runs until the run has stopped and nothing is in work. `stop` and `stop_requests` end the
    /// run with stop_reason operator (BUD-08).
    ///
    /// # Errors
    /// [`ControllerError`]; all work has been cancelled by then. The run comes back either way.
    pub(crate) async fn drive(
        mut self,
        first: Fact,
        stop: CancellationToken,
        mut stop_requests: mpsc::Receiver<String>,
    ) -> (Run, Result<(), ControllerError>) {
        let result = self.turns(first, &stop, &mut stop_requests).await;
        self.wind_down().await;
        (self.run, result)
    }

    async fn turns(
        &mut self,
        first: Fact,
        stop: &CancellationToken,
        stop_requests: &mut mpsc::Receiver<String>,
    ) -> Result<(), ControllerError> {
        self.run.turn(Some(first)).await?;
        let mut signalled = false;
        while self.run.state().outcome().is_none() {
            self.cancel_what_is_over();
            self.start_missing();
            let wait = self.until_next_deadline();
            let wake = tokio::select! {
                Some(joined) = self.tasks.join_next_with_id() => Wake::Finished(Box::new(joined)),
                () = stop.cancelled(), if !signalled => Wake::Stop("signal".to_owned()),
                Some(why) = stop_requests.recv() => Wake::Stop(why),
                () = tokio::time::sleep(wait) => Wake::Tick,
            };
            if let Wake::Finished(joined) = &wake
                && let Ok((_, done)) = joined.as_ref()
                && done.failed()
                && !disk::has_room(&self.context.layout)
            {
                return Err(ControllerError::NoSpace(done.detail()));
            }
            let (fact, rest) = match wake {
                Wake::Finished(joined) => match self.finished(*joined) {
                    Some((fact, rest)) => (Some(fact), rest),
                    None => continue,
                },
                Wake::Stop(why) => {
                    signalled = true;
                    (Some(stop_requested(&why)), Rest::default())
                }
                Wake::Tick => (None, Rest::default()),
            };
            let is_stored = self.run.turn(fact).await?;
            if is_stored {
                self.context.weights.note_registered(&rest.registers);
            }
            drop(rest.locks);
            remove_scratch(rest.scratch);
            self.mark_when_due().await?;
        }
        Ok(())
    }

    fn start_missing(&mut self) {
        for effect in self.run.state().wanted() {
            let id = effect.id();
            if self.work.contains_key(&id) {
                continue;
            }
            let cancel = CancellationToken::new();
            let deadline = self.run.state().effect_deadline(&effect);
            let future = effects::perform(
                &effect,
                self.run.state(),
                &self.context,
                effects::Limits {
                    cancel: cancel.clone(),
                    deadline,
                    now: self.run.now(),
                    started: Instant::now(),
                },
            );
            let handle = self.tasks.spawn(future);
            self.task_effects.insert(handle.id(), id.clone());
            self.work.insert(
                id,
                Work {
                    effect,
                    cancel,
                    deadline,
                    started: Instant::now(),
                },
            );
        }
    }

    // A cut effect that still counts ends as `budget_cut` through its own result. Deadlines move
    // with the run's phases (EXE-03, ENG-12), so they are asked for anew.
    fn cancel_what_is_over(&mut self) {
        let now = self.run.now();
        let state = self.run.state();
        for work in self.work.values_mut() {
            if let Some(moved) = state.effect_deadline(&work.effect) {
                work.deadline = Some(moved);
            }
        }
        for work in self.work.values() {
            let late = work.deadline.is_some_and(|deadline| now >= deadline);
            if late || !self.run.state().is_wanted(&work.effect) {
                work.cancel.cancel();
            }
        }
    }

    fn until_next_deadline(&self) -> Duration {
        let now = self.run.now();
        let next = self
            .work
            .values()
            .filter_map(|work| work.deadline)
            .chain(self.run.state().next_deadline(now))
            .filter(|deadline| *deadline > now)
            .min();
        let wait = next.map_or(TICK, |deadline| {
            Duration::from_millis(deadline.since_ms(now).unsigned_abs())
        });
        wait.min(TICK)
    }

    fn finished(&mut self, joined: Result<(Id, Done), JoinError>) -> Option<(Fact, Rest)> {
        let (task, done) = match joined {
            Ok((task, done)) => (task, done),
            Err(error) => {
                tracing::error!(error = %error, "an effect panicked or was aborted");
                (
                    error.id(),
                    Done::interrupted(InfraFault::Interrupted, "the effect's task failed"),
                )
            }
        };
        let work = self.work.remove(&self.task_effects.remove(&task)?)?;
        let Done {
            outcome,
            files,
            spans,
            scratch,
            locks,
        } = done;
        let registers = files.iter().map(|file| file.path().clone()).collect();
        let node = work.effect.node();
        let named: Duration = spans.iter().map(|span| span.length).sum();
        let rest = work.started.elapsed().saturating_sub(named);
        self.run.add_spans(node, &spans);
        self.run.add_spans(
            node,
            &[Span {
                name: harness_span(&work.effect),
                length: rest,
            }],
        );
        if let Outcome::Interrupted { fault, detail } = &outcome {
            tracing::warn!(effect = %work.effect.id(), ?fault, detail, "effect interrupted");
        }
        Some((
            Fact {
                event: ended(work.effect, outcome),
                files,
            },
            Rest {
                scratch,
                locks,
                registers,
            },
        ))
    }

    async fn mark_when_due(&mut self) -> Result<(), ControllerError> {
        if self.marked.elapsed() < MARK_INTERVAL {
            return Ok(());
        }
        self.marked = Instant::now();
        let at = self.run.now();
        let store = self.run.store_mut();
        store.mark_logs(at).await.map_err(ControllerError::Store)?;
        store
            .mark_archive(at)
            .await
            .map_err(ControllerError::Store)?;
        Ok(())
    }

    async fn wind_down(&mut self) {
        for work in self.work.values() {
            work.cancel.cancel();
        }
        let bound = self.context.term_grace + WIND_DOWN;
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(bound, all).await.is_err() {
            tracing::error!(
                left = self.tasks.len(),
                "work did not end in time; aborting it"
            );
            self.tasks.shutdown().await;
        }
    }
}

// Its files have moved into the run directory; what is left is of no use to anybody. A leftover
// costs room only until the next start.
fn remove_scratch(scratch: Option<PathBuf>) {
    let Some(path) = scratch else { return };
    drop(tokio::task::spawn_blocking(move || {
        if let Err(error) = std::fs::remove_dir_all(&path) {
            tracing::debug!(path = %path.display(), %error, "scratch was not removed");
        }
    }));
}

/// Name of what an effect takes beside the work that was asked for.
const fn harness_span(effect: &Effect) -> &'static str {
    match effect {
        Effect::ImportSeed { .. } => "import_seed.harness",
        Effect::Plan { .. } => "plan.harness",
        Effect::Comply { .. } => "comply.harness",
        Effect::Engineer { .. } => "engineer.harness",
        Effect::Execute { .. } => "execute.harness",
        Effect::Score { .. } => "score.harness",
        Effect::Analyze { .. } => "analyze.harness",
        Effect::Review { .. } => "review.harness",
        Effect::Place { .. } => "place.harness",
    }
}

fn stop_requested(why: &str) -> Fact {
    let event = Event::StopRequested {
        reason: StopReason::Operator,
        detail: why.chars().take(500).collect(),
    };
    Fact {
        event,
        files: Vec::new(),
    }
}
