//! Final selection and the end of a run (FIN-03, FIN-07, SED-10, STP).

use vec_search::{Effect, Event, RunState, RunStatus};
use vec_types::{NodeStatus, Operator, Phase, SeedState, UnixMs};

use super::effects::Effects;
use crate::Invariant::{Ends, Final, Storage};
use crate::must;

/// What final selection started, in order.
#[derive(Debug, Default)]
pub(super) struct Finale {
    is_final: bool,
    starts: Vec<&'static str>,
}

impl Finale {
    pub(super) fn saw(&mut self, event: &Event, effects: &Effects) {
        match event {
            Event::PhaseChange { to, .. } => self.is_final = *to == Phase::Final,
            Event::EffectStarted { effect } if self.is_final => {
                self.starts.push(effect.kind());
                let first = ["execute", "place"];
                let in_order = self
                    .starts
                    .iter()
                    .zip(first)
                    .all(|(found, due)| *found == due);
                must(in_order, Final, || {
                    format!("it starts with {:?}", self.starts)
                });
            }
            Event::GuardStart { baseline, .. } => {
                let place = Effect::Place {
                    node: *baseline,
                    provisional: true,
                };
                must(effects.has_ended(&place), Final, || {
                    "the guard starts before the baseline is written".to_owned()
                });
            }
            _ => {}
        }
    }

    #[expect(clippy::unused_self, reason = "one shape for every part of the watch")]
    pub(super) fn ended(&self, state: &RunState, at: UnixMs) {
        must(state.outcome().is_some(), Ends, || {
            "the run does not end".to_owned()
        });
        let open = state
            .nodes()
            .find(|node| node.status == NodeStatus::Running);
        must(open.is_none(), Ends, || format!("not settled: {open:?}"));
        let rest = (state.wanted(), state.next_deadline(at));
        must(rest.0.is_empty() && rest.1.is_none(), Ends, || {
            format!("after the end: {rest:?}")
        });
        winner(state);
        status(state, at);
    }
}

fn winner(state: &RunState) {
    let outcome = state
        .outcome()
        .filter(|outcome| !outcome.winner_is_baseline);
    let Some(winner) = outcome.and_then(|outcome| outcome.winner) else {
        return;
    };
    let verdict = state.guard_verdict();
    let has_won = verdict.is_some_and(|verdict| {
        let bound = verdict.lower_bound.is_some_and(|bound| bound > 0.0);
        verdict.replace && verdict.complete && verdict.candidate == winner && bound
    });
    must(has_won, Final, || {
        format!("node {winner} wins by {verdict:?}")
    });
    let may_win = state.node(winner).is_some_and(|node| {
        let is_reviewed = node.operator == Operator::Seed || node.review == "pass";
        is_reviewed
            && node
                .seed_state
                .is_none_or(|seed| seed == SeedState::Exploration)
    });
    must(may_win, Final, || format!("node {winner} must not win"));
}

fn status(state: &RunState, at: UnixMs) {
    let status = state.status(at);
    let text = serde_json::to_string(&status).unwrap_or_default();
    let read: Option<RunStatus> = serde_json::from_str(&text).ok();
    must(read.as_ref() == Some(&status), Storage, || text.clone());
}
