//! The folded state of a run and its public face.
//!
//! Invariants: changed only by [`RunState::apply`]; `in_work` holds exactly the effects that were
//! started and have neither ended nor been dropped; `running` holds exactly the unsettled nodes.

mod apply;
mod apply_effect;
mod apply_final;
mod apply_import;
mod apply_tree;
mod check;
mod check_effect;
mod check_final;
mod check_import;
mod index;
mod names;
mod run;

use serde::{Deserialize, Serialize};
use vec_types::{NodeId, StopReason, UnixMs};

pub(crate) use run::{Drawn, Finale, GuardRun, Run, Winner};

use crate::{CorruptRun, Effect, Event, decide};

/// The state of one run: the fold of its events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunState {
    run: Option<Box<Run>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// STP-02.
    pub reason: StopReason,
    /// One sentence for people.
    pub detail: String,
    /// The run's answer, if final selection came to one.
    pub winner: Option<NodeId>,
    /// Is the answer the baseline.
    pub winner_is_baseline: bool,
    /// When.
    pub at: UnixMs,
}

/// Why a run cannot be resumed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeRefused {
    /// There is nothing to resume.
    #[error("the run has not started")]
    NotStarted,
    /// The answer is chosen, or final selection refused to give one.
    #[error("final selection is finished")]
    Finished,
    /// Only runs stopped by `operator` or `infra` are reopened.
    #[error("the run stopped by itself with reason {}", .0.as_str())]
    Reason(StopReason),
    /// The hard end has passed (O-RSM-2).
    #[error("its time ended at {0}")]
    TimeOver(UnixMs),
}

impl RunState {
    /// The state before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Would [`RunState::apply`] accept the event? Facts are checked before they are stored.
    ///
    /// # Errors
    /// [`CorruptRun`] names what does not fit.
    pub fn check(&self, at: UnixMs, event: &Event) -> Result<(), CorruptRun> {
        check::check(self.run.as_deref(), at, event)
    }

    /// Changes the state by one event; the only way in which it changes.
    ///
    /// # Errors
    /// [`CorruptRun`] when the event cannot follow the events before it; nothing changed then.
    pub fn apply(&mut self, at: UnixMs, event: &Event) -> Result<(), CorruptRun> {
        self.check(at, event)?;
        if let Event::RunStart { run, policy } = event {
            self.run = Some(Box::new(Run::new(run.clone(), policy, at)));
        } else if let Some(run) = &mut self.run {
            apply::apply(run, at, event);
        }
        Ok(())
    }

    /// The next batch of decisions; the driver applies it and asks again until it is empty.
    #[must_use]
    pub fn decide(&self, at: UnixMs) -> Vec<Event> {
        self.run
            .as_deref()
            .map_or_else(Vec::new, |run| decide::decide(run, at))
    }

    /// Every effect that was started and has neither ended nor been dropped, sorted. Empty after
    /// `stop`.
    #[must_use]
    pub fn wanted(&self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self
            .open()
            .into_iter()
            .flat_map(|run| run.in_work.values().cloned())
            .collect();
        effects.sort();
        effects
    }

    /// Is the effect in [`RunState::wanted`]? Results of others are dropped, never stored.
    #[must_use]
    pub fn is_wanted(&self, effect: &Effect) -> bool {
        self.open()
            .is_some_and(|run| run.in_work.contains_key(&effect.id()))
    }

    fn open(&self) -> Option<&Run> {
        self.run.as_deref().filter(|run| run.outcome.is_none())
    }

    /// May `run_resume` follow now?
    ///
    /// # Errors
    /// [`ResumeRefused`] with the reason.
    pub fn resumable(&self, at: UnixMs) -> Result<(), ResumeRefused> {
        self.run
            .as_deref()
            .ok_or(ResumeRefused::NotStarted)?
            .resumable(at)
    }

    pub(crate) fn run_data(&self) -> Option<&Run> {
        self.run.as_deref()
    }
}
