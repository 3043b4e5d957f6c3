//! The world of a simulation: seeded outcomes and durations, with everything that may go wrong.

use vec_search::{
    Effect, Event, MethodState, Outcome, PlanResult, ReviewVerdict, RunState, ScoreResult,
};
use vec_types::{CandidateFault, Digest, ExecName, FamilyId, InfraFault, NodeId, Score, UnixMs};

use crate::controls;
use crate::driver::World;
use crate::fixture::{commit, done, done_as, fault, plan_of, planned, scored, session, written};
use crate::nature::Nature;
use crate::random::Random;
use crate::watch::Watch;

/// Longest wall time of one view in milliseconds.
const VIEW_MS: u64 = 20_000;

/// A program that does not come to an end by itself.
const ENDLESS_MS: i64 = 24 * 3_600_000;

/// What a world is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Climate {
    /// Percent of effects that go wrong; halves and quarters of it for rarer things.
    pub trouble: u64,
    /// Longest duration of an effect in milliseconds: slow worlds run out of time, fast ones of nodes.
    pub longest_ms: u64,
    /// Only faults of ours, distinct scores, reviews that pass: the wrapper has nothing to do.
    pub is_idle: bool,
}

/// The world.
#[derive(Debug)]
pub struct Chaos {
    /// What is compared after every event.
    pub watch: Watch,
    random: Random,
    climate: Climate,
    seed: u64,
    /// Are control runs to say something else (see [`crate::controls`])?
    is_permuted: bool,
}

impl Chaos {
    /// A world of one seed.
    #[must_use]
    pub fn new(seed: u64, climate: Climate) -> Self {
        Self {
            watch: if climate.is_idle {
                Watch::over_idle()
            } else {
                Watch::default()
            },
            random: Random::new(seed),
            climate,
            seed,
            is_permuted: false,
        }
    }

    /// The same world, in which control runs say something else.
    #[must_use]
    pub fn permuted(self) -> Self {
        Self {
            is_permuted: true,
            ..self
        }
    }

    /// The program of a node, by what runs of it, and what it is like.
    fn program(&self, state: &RunState, node: NodeId) -> (String, Nature) {
        let commit = state.node(node).and_then(|node| node.commit.cloned());
        let program = commit.map_or_else(|| node.to_string(), |c| c.runtime_key.to_string());
        let nature = if self.climate.is_idle {
            Nature::plain()
        } else {
            Nature::of(self.seed, &program)
        };
        (program, nature)
    }

    /// Checks find what programs are like. What was measured elsewhere is not of this world.
    fn natures(&self, state: &RunState, event: &Event) {
        match event {
            Event::AblationResult {
                node,
                mechanism_active,
                ..
            } if !self.is_permuted => {
                let (_, nature) = self.program(state, *node);
                nature.bears_mechanism(*mechanism_active, || format!("node {node}"));
            }
            Event::ViewCheckResult { node, verdict, .. } => {
                let (_, nature) = self.program(state, *node);
                nature.bears_verdict(*verdict, || format!("node {node}"));
            }
            _ => {}
        }
    }

    /// Does a fault of the candidate's kind happen, in `share` of the trouble?
    fn goes_wrong(&mut self, divisor: u64) -> bool {
        !self.climate.is_idle && self.random.hits(self.climate.trouble / divisor)
    }

    fn infra(&mut self) -> Outcome {
        let fault = match self.random.below(4) {
            0 => InfraFault::ScoreError,
            1 => InfraFault::InfraOom,
            2 => InfraFault::BudgetCut,
            _ => InfraFault::Interrupted,
        };
        Outcome::Interrupted {
            fault,
            detail: "a daemon died".to_owned(),
        }
    }

    fn plan(&mut self, state: &RunState) -> Outcome {
        if self.goes_wrong(1) {
            return Outcome::Planned {
                result: PlanResult::Invalid {
                    error: "no approach".to_owned(),
                },
            };
        }
        match self.random.below(10) {
            0 => plan_of(self.any_family(state)),
            _ => planned(),
        }
    }

    /// A family of the library, or one that is not in it.
    fn any_family(&mut self, state: &RunState) -> Option<FamilyId> {
        let policy = state.policy()?;
        let families = &policy.families;
        let place = self.random.index(families.len() + 1);
        families
            .get(place)
            .map(|family| family.id.clone())
            .or_else(|| "other".parse().ok())
    }

    fn engineer(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        let node = effect.node();
        let own = || Some(commit(&node.to_string()));
        if self.climate.is_idle {
            return session(own(), written("method"));
        }
        let parent = state.node(node).and_then(|node| node.parent);
        let parent = parent.and_then(|id| state.node(id)?.commit.cloned());
        match self.random.below(14) {
            0 => session(None, MethodState::Missing),
            1 => session(None, written("no program")),
            2 => session(
                parent.or_else(|| Some(commit("same"))),
                written("NO_CHANGE: all tried"),
            ),
            3 => session(own(), MethodState::Placeholder),
            4 => session(Some(commit("twin")), written("a twin")),
            5 => session(own(), written("NO_CHANGE: nothing helps")),
            _ => session(own(), written("method")),
        }
    }

    fn execute(&mut self, state: &RunState, node: NodeId, exec: ExecName) -> Outcome {
        let Some(policy) = state.policy() else {
            return self.infra();
        };
        let faults = [
            CandidateFault::Crash,
            CandidateFault::Oom,
            CandidateFault::Timeout,
            CandidateFault::Hung,
        ];
        let (program, nature) = self.program(state, node);
        let is_check = exec == ExecName::Ablate || is_view_check(exec);
        let may_crash = !(is_check && nature.is_sturdy);
        if self.goes_wrong(1) && may_crash {
            return fault(faults[self.random.index(faults.len())]);
        }
        let wall_ms = self.random.ms(VIEW_MS);
        let began = self.watch.book.entry(node).map(|entry| &entry.epochs);
        let began = began.and_then(|epochs| epochs.get(&exec)).copied();
        let epoch = began.unwrap_or_else(|| state.epoch());
        let view = state.node(node);
        let is_same_data = view.as_ref().is_some_and(|node| node.seed_0_epoch == epoch);
        // An import's seed 0 was measured elsewhere: only its digests are known.
        let before = view
            .and_then(|node| node.digests)
            .filter(|_| is_check && nature.repeats(exec, is_same_data));
        let text = nature.output(&program, exec, epoch, &mut self.random);
        before
            .and_then(|before| done_as(policy, exec, before, wall_ms))
            .unwrap_or_else(|| done(policy, exec, &text, wall_ms))
    }

    fn score(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        if self.goes_wrong(2) {
            return Outcome::Scored {
                result: ScoreResult::InvalidFormat {
                    detail: "NaN".to_owned(),
                },
            };
        }
        let Some(policy) = state.policy() else {
            return self.infra();
        };
        let quality = 50.0 + f64::from(effect.node().0) * 0.1 + self.random.normal();
        // Ties are frequent on purpose.
        let is_tie = !self.climate.is_idle && self.random.hits(40);
        scored(policy, if is_tie { quality.round() } else { quality })
    }

    fn outcome(&mut self, state: &RunState, effect: &Effect) -> Outcome {
        if self.random.hits(self.climate.trouble / 2) {
            return self.infra();
        }
        match effect {
            Effect::ImportSeed { program, .. } => Outcome::Imported {
                commit: commit(program.as_str()),
            },
            Effect::Plan { .. } => self.plan(state),
            Effect::Comply { .. } => Outcome::Complied {
                removed: 1,
                emptied: self.goes_wrong(2),
            },
            Effect::Engineer { .. } => self.engineer(state, effect),
            Effect::Execute { node, exec } => self.execute(state, *node, *exec),
            Effect::Score { .. } => self.score(state, effect),
            Effect::Analyze { .. } => Outcome::Analyzed {
                written: self.random.hits(80),
                family: self
                    .random
                    .hits(20)
                    .then(|| self.any_family(state))
                    .flatten(),
            },
            Effect::Review { .. } => Outcome::Reviewed {
                verdict: match self.random.below(6) {
                    _ if self.climate.is_idle => ReviewVerdict::Pass,
                    0 => ReviewVerdict::Fail,
                    1 => ReviewVerdict::Error,
                    _ => ReviewVerdict::Pass,
                },
            },
            Effect::Place { .. } => Outcome::Placed {
                sha256: (!self.random.hits(self.climate.trouble / 4))
                    .then(|| Digest::of(b"answer")),
            },
        }
    }
}

impl World for Chaos {
    fn run(&mut self, state: &RunState, effect: &Effect) -> (i64, Outcome) {
        let is_check = matches!(effect, Effect::Execute { exec, .. } if is_view_check(*exec));
        let duration = if is_check && self.goes_wrong(2) {
            ENDLESS_MS
        } else {
            self.random.ms(self.climate.longest_ms)
        };
        let outcome = self.outcome(state, effect);
        if self.is_permuted {
            return (duration, controls::permuted(state, effect, outcome));
        }
        (duration, outcome)
    }

    fn saw(&mut self, state: &RunState, at: UnixMs, event: &Event) {
        self.watch.saw(state, at, event);
        self.natures(state, event);
    }

    fn dies(&mut self) -> bool {
        let dies = self.climate.trouble > 0 && self.random.below(2_000) < self.climate.trouble;
        if dies {
            self.watch.tally.add(crate::Rule::CrashInTurn);
        }
        dies
    }
}

const fn is_view_check(exec: ExecName) -> bool {
    matches!(
        exec,
        ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. }
    )
}

/// A score a little above another one, for histories that are changed on purpose.
#[must_use]
pub fn nudged(score: Score) -> Score {
    Score::new(score.get() + 1e-9).unwrap_or(score)
}
