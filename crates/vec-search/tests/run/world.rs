//! A scripted world: everything works; tests replace single outcomes by effect id.

use std::collections::BTreeMap;

use vec_search::{Effect, Event, Outcome, ReviewVerdict, RunState};
use vec_types::{Digest, ExecName, NodeId, UnixMs};

use crate::driver::{Driver, World};
use crate::fixture::{self, commit, done, planned, scored, session, written};

/// Scores by node; seeds add a fixed amount per program seed so that spreads are above 0.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) scores: BTreeMap<u32, f64>,
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    pub(crate) durations: BTreeMap<String, i64>,
    pub(crate) ended: Vec<String>,
}

impl Script {
    pub(crate) fn with(mut self, effect: &str, outcome: Outcome) -> Self {
        self.outcomes.insert(effect.to_owned(), outcome);
        self
    }

    pub(crate) fn score(mut self, node: u32, score: f64) -> Self {
        self.scores.insert(node, score);
        self
    }

    pub(crate) fn lasting(mut self, effect: &str, ms: i64) -> Self {
        self.durations.insert(effect.to_owned(), ms);
        self
    }

    pub(crate) fn start(self, policy: &vec_search::Policy) -> Driver<Self> {
        Driver::new(self, fixture::run_start(policy), fixture::T0)
    }

    fn total(&self, node: NodeId, exec: ExecName) -> f64 {
        let base = self.scores.get(&node.0).copied();
        let base = base.unwrap_or(50.0 + f64::from(node.0) * 0.01);
        let seed = f64::from(exec.program_seed().0);
        base + seed * 0.001 * (1.0 + f64::from(node.0 % 3))
    }
}

impl World for Script {
    fn run(&mut self, state: &RunState, effect: &Effect) -> (i64, Outcome) {
        let id = effect.id().to_string();
        let duration = self.durations.get(&id).copied().unwrap_or(100);
        if let Some(outcome) = self.outcomes.get(&id) {
            return (duration, outcome.clone());
        }
        let policy = state.policy().expect("started");
        let node = effect.node();
        let outcome = match effect {
            Effect::ImportSeed { program, .. } => Outcome::Imported {
                commit: commit(program.as_str()),
            },
            Effect::Plan { .. } => planned(),
            Effect::Comply { .. } => Outcome::Complied {
                removed: 0,
                emptied: false,
            },
            Effect::Engineer { .. } => session(Some(commit(&node.to_string())), written("method")),
            // An honest program gives the same output in disguise.
            Effect::Execute {
                exec: exec @ (ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. }),
                ..
            } => done(policy, *exec, &format!("{node}/seed0"), 1_000),
            Effect::Execute { exec, .. } => done(policy, *exec, &format!("{node}/{exec}"), 1_000),
            Effect::Score { exec, .. } => scored(policy, self.total(node, *exec)),
            Effect::Analyze { .. } => Outcome::Analyzed {
                written: true,
                family: None,
            },
            Effect::Review { .. } => Outcome::Reviewed {
                verdict: ReviewVerdict::Pass,
            },
            Effect::Place { .. } => Outcome::Placed {
                sha256: Some(Digest::of(id.as_bytes())),
            },
        };
        (duration, outcome)
    }

    fn saw(&mut self, _: &RunState, _: UnixMs, event: &Event) {
        if let Event::EffectEnded { effect, .. } = event {
            self.ended.push(effect.id().to_string());
        }
    }
}
