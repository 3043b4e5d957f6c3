//! Control runs and view checks (ABL, VCK): what they say is worked out once more from the results
//! of executions as the events told them, and what is promoted or guarded has passed.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{
    Effect, Event, ExecResult, MechanismActive, Outcome, RunState, ScoreResult, ViewVerdict,
};
use vec_types::{Digest, ExecName, NodeId, Phase, ProgramSeed, Table, UnixMs, ViewId};

use crate::Invariant;
use crate::book::Book;
use crate::must;
use crate::rules::{Rule, Tally};

const SEED_0: ExecName = ExecName::Seed(ProgramSeed(0));

type Output = Table<ViewId, Digest>;

/// How an execution ended.
#[derive(Debug, Clone)]
enum End {
    Output(Output),
    Fault,
    Lost,
}

/// What the events told.
#[derive(Debug, Default)]
pub(super) struct Checks {
    ends: BTreeMap<(NodeId, ExecName), End>,
    /// Nodes whose control run is scored: one that is cut before has no result.
    controls: BTreeSet<NodeId>,
    /// Confirming runs that began.
    confirming: BTreeSet<(NodeId, u32)>,
    /// Since when this process is in final selection.
    finale: Option<UnixMs>,
}

impl Checks {
    /// Sees an event before it is in the book.
    pub(super) fn saw(
        &mut self,
        state: &RunState,
        book: &Book,
        (at, event): (UnixMs, &Event),
        tally: &mut Tally,
    ) {
        match event {
            Event::PhaseChange { to, .. } => self.finale = (*to == Phase::Final).then_some(at),
            Event::RunResume { .. } => self.finale = self.finale.map(|_| at),
            Event::EffectEnded { effect, end } => self.write(effect, end),
            Event::EffectStarted {
                effect:
                    Effect::Execute {
                        node,
                        exec: ExecName::ViewCheckConfirm { attempt },
                    },
            } => {
                self.confirming.insert((*node, *attempt));
            }
            Event::AblationResult {
                node,
                mechanism_active,
                ..
            } => {
                let due = self.mechanism(state, book, *node);
                must(*mechanism_active == due, Invariant::Checks, || {
                    format!("node {node}: {mechanism_active:?}, its outputs say {due:?}")
                });
            }
            Event::ViewCheckResult {
                node,
                attempt,
                verdict,
                ..
            } => {
                if self.is_given_up(*node, *attempt) {
                    tally.add(Rule::ViewGivenUp);
                    self.waited(state, at, *node);
                }
                let due = self.verdict(state, book, *node, *attempt);
                must(*verdict == due, Invariant::Checks, || {
                    format!("node {node}: {verdict:?}, its outputs say {due:?}")
                });
            }
            Event::PromotionStart { node, .. }
            | Event::GuardStart {
                candidate: node, ..
            } => {
                let view = book.entry(*node).and_then(|entry| entry.view);
                let passed = [ViewVerdict::Same, ViewVerdict::Nondeterministic];
                must(
                    view.is_some_and(|view| passed.contains(&view)),
                    Invariant::Checks,
                    || format!("node {node} goes on with view check {view:?}"),
                );
            }
            _ => {}
        }
    }

    fn write(&mut self, effect: &Effect, end: &Outcome) {
        let (Effect::Execute { node, exec } | Effect::Score { node, exec }) = effect else {
            return;
        };
        let end = match end {
            Outcome::Executed { report } => match &report.result {
                ExecResult::Done { digests } => End::Output(digests.clone()),
                ExecResult::Fault { .. } => End::Fault,
            },
            Outcome::Scored {
                result: ScoreResult::InvalidFormat { .. },
            } => End::Fault,
            Outcome::Interrupted { .. } => End::Lost,
            Outcome::Scored { .. } if *exec == ExecName::Ablate => {
                self.controls.insert(*node);
                return;
            }
            _ => return,
        };
        self.ends.insert((*node, *exec), end);
    }

    fn output(&self, node: NodeId, exec: ExecName) -> Option<&Output> {
        match self.ends.get(&(node, exec))? {
            End::Output(output) => Some(output),
            End::Fault | End::Lost => None,
        }
    }

    fn mechanism(&self, state: &RunState, book: &Book, node: NodeId) -> MechanismActive {
        let (seed, control) = (
            self.output(node, SEED_0),
            self.output(node, ExecName::Ablate),
        );
        let epochs = book.entry(node).map(|entry| &entry.epochs);
        let is_same_data =
            epochs.is_some_and(|began| began.get(&SEED_0) == began.get(&ExecName::Ablate));
        let control = control.filter(|_| is_same_data && self.controls.contains(&node));
        let (Some(seed), Some(control), Some(policy)) = (seed, control, state.policy()) else {
            return MechanismActive::Unclear;
        };
        let mut views = policy.objective_views().into_iter();
        if views.all(|view| seed.get(view) == control.get(view)) {
            MechanismActive::No
        } else {
            MechanismActive::Yes
        }
    }

    /// Did a run of the check begin and not end?
    fn is_given_up(&self, node: NodeId, attempt: u32) -> bool {
        let is_open = |exec| !self.ends.contains_key(&(node, exec));
        let confirm = ExecName::ViewCheckConfirm { attempt };
        is_open(ExecName::ViewCheck { attempt })
            || (self.confirming.contains(&(node, attempt)) && is_open(confirm))
    }

    /// VCK-06: only final selection gives a check up, and not before its wait.
    fn waited(&self, state: &RunState, at: UnixMs, node: NodeId) {
        let wait_ms = state.policy().map(|policy| policy.view_check.lock_wait_ms);
        let waited = self.finale.map(|since| at.since_ms(since));
        must(
            waited >= wait_ms && waited.is_some(),
            Invariant::Checks,
            || format!("node {node}: its check is given up after {waited:?} ms of {wait_ms:?}"),
        );
    }

    fn verdict(&self, state: &RunState, book: &Book, node: NodeId, attempt: u32) -> ViewVerdict {
        let names = [
            ExecName::ViewCheck { attempt },
            ExecName::ViewCheckConfirm { attempt },
        ];
        let lost = |exec| matches!(self.ends.get(&(node, exec)), Some(End::Lost) | None);
        // An import brings its outputs along.
        let told = state.node(node).and_then(|node| node.digests);
        let seed = self.output(node, SEED_0).or(told);
        let [check, confirm] = names.map(|exec| self.output(node, exec));
        let views = state.policy().map(|policy| &policy.view_check.views);
        let equal = |a: Option<&Output>, b: Option<&Output>| match (a, b, views) {
            (Some(a), Some(b), Some(views)) => views.iter().all(|view| a.get(view) == b.get(view)),
            _ => false,
        };
        let epochs = book.entry(node).map(|entry| &entry.epochs);
        let began = |exec| {
            epochs
                .and_then(|epochs| epochs.get(&exec))
                .copied()
                .unwrap_or(0)
        };
        let [check_epoch, confirm_epoch] = names.map(began);
        let is_old = seed.is_none() || check_epoch != began(SEED_0);
        if lost(names[0]) {
            ViewVerdict::Unknown
        } else if equal(seed, check) {
            ViewVerdict::Same
        } else if lost(names[1]) || check_epoch != confirm_epoch {
            ViewVerdict::Unknown
        } else if equal(seed, confirm) {
            ViewVerdict::ViewDependent
        } else if is_old && equal(check, confirm) {
            ViewVerdict::Same
        } else if is_old {
            ViewVerdict::Unknown
        } else {
            ViewVerdict::Nondeterministic
        }
    }
}
