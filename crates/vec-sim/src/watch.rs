//! What must hold after every event. Nothing here shares code with `vec_search`: the events are
//! written down in a book of their own, and the state is compared with that.
//!
//! Nodes that an event touches are compared at once, all of them every [`FULL_CHECK`] events and at
//! the end; a check of every node after every event would cost more than everything else.

mod checks;
mod effects;
mod finale;
mod promotion;
mod ranking;
mod retries;
mod selection;
mod shelved;
mod standings;
mod visits;

use vec_search::{Deadlines, Event, Policy, RunState};
use vec_types::{FamilyId, NodeStatus, Operator, UnixMs};

use crate::Invariant::{self, Coverage, Draws, Limits, Outranks, SettledOnce};
use crate::book::Book;
use crate::rules::Tally;
use crate::{coverage, must};

/// Events between two comparisons of every node.
pub const FULL_CHECK: u64 = 16;

/// Compares a run with what its events say, event by event.
#[derive(Debug, Default)]
pub struct Watch {
    /// How often each rule fired.
    pub tally: Tally,
    /// What the events said.
    pub book: Book,
    checks: checks::Checks,
    effects: effects::Effects,
    finale: finale::Finale,
    retries: retries::Retries,
    selection: selection::Selection,
    draws: u64,
    created: u64,
    shelved: shelved::Before,
    deadlines: Option<Deadlines>,
}

impl Watch {
    /// A watch over a run in which every rule of the wrapper is off, so that the reference decides.
    #[must_use]
    pub fn over_idle() -> Self {
        let mut watch = Self::default();
        watch.selection.is_idle = true;
        watch
    }

    /// Compares the state after one event.
    ///
    /// # Panics
    /// With the invariant that is broken.
    pub fn saw(&mut self, state: &RunState, at: UnixMs, event: &Event) {
        self.tally.event(event);
        self.selection
            .saw(state, &self.book, event, &mut self.tally);
        let is_paused = |node| self.retries.is_paused(node, at);
        ranking::saw(state, &self.book, (event, &is_paused), &mut self.tally);
        self.retries.saw(at, event);
        promotion::saw(state, &self.book, event);
        self.checks
            .saw(state, &self.book, (at, event), &mut self.tally);
        self.write(state, event);
        self.times(state, event);
        self.shelved.saw(state, event, &mut self.tally);
        self.effects.saw(state, at, event);
        self.finale.saw(event, &self.effects);
        visits::touched(state, &self.book, event);
        if self.book.events.is_multiple_of(FULL_CHECK) {
            self.everything(state);
        }
    }

    /// Compares every node.
    ///
    /// # Panics
    /// As [`Watch::saw`].
    pub fn everything(&self, state: &RunState) {
        visits::all(state, &self.book);
        limits(state);
    }

    /// What must hold of a run that is over.
    ///
    /// # Panics
    /// As [`Watch::saw`].
    pub fn ended(&self, state: &RunState, at: UnixMs) {
        self.everything(state);
        self.finale.ended(state, at);
    }

    /// DRF-02, BUD-01, RSV-04, FIN-09.
    fn times(&mut self, state: &RunState, event: &Event) {
        if let Event::RunStart { policy, .. } = event {
            coverage(policy, &state.coverage_order());
        }
        let now = state.deadlines();
        if let (Some(before), Some(now)) = (&self.deadlines, &now) {
            only_earlier(before, now);
        }
        self.deadlines = now;
    }

    fn write(&mut self, state: &RunState, event: &Event) {
        match event {
            Event::NodeSettled { node, status, .. } => {
                let entry = self.book.entry(*node);
                let is_open = entry.is_some_and(|entry| entry.status == NodeStatus::Running);
                must(is_open, SettledOnce, || {
                    format!("node {node} a second time")
                });
                let found = state.node(*node).map(|node| node.status);
                must(found == Some(*status), SettledOnce, || {
                    format!("node {node} is {found:?} after it settled as {status:?}")
                });
            }
            Event::Draw { index, .. } => {
                must(*index == self.draws, Draws, || {
                    format!("draw {index} where {} comes next", self.draws)
                });
                self.draws += 1;
            }
            Event::NodeCreated { node, operator, .. } => {
                let is_drawn = !matches!(operator, Operator::Seed | Operator::Resume);
                self.created += u64::from(is_drawn);
                must(self.created == self.draws, Draws, || {
                    let (created, draws) = (self.created, self.draws);
                    format!("{created} nodes and {draws} draws at node {node}")
                });
            }
            _ => {}
        }
        self.book.write(event);
    }
}

/// The order of coverage, from the policy alone.
fn coverage(policy: &Policy, found: &[&FamilyId]) {
    let due = coverage::order(&policy.families, policy.search_seed.0);
    must(found.iter().copied().eq(&due), Coverage, || {
        format!("{found:?} instead of {due:?}")
    });
}

fn only_earlier(before: &Deadlines, now: &Deadlines) {
    let holds = now.handoff <= before.handoff
        && now.cutoff <= before.cutoff
        && now.settle_deadline <= before.settle_deadline
        && now.guard_deadline <= before.guard_deadline
        && now.place_deadline <= before.place_deadline
        && (now.t0, now.stop_at) == (before.t0, before.stop_at);
    must(holds, Invariant::Deadlines, || {
        format!("{before:?} became {now:?}")
    });
}

/// ARC-09, BUD, PRO-04; and no failure has a score.
fn limits(state: &RunState) {
    let Some(policy) = state.policy() else { return };
    let (mut running, mut made, mut promoting) = (0, 0, 0);
    for node in state.nodes() {
        running += u32::from(node.status == NodeStatus::Running);
        let is_own = node.origin.is_none();
        made += u32::from(node.operator != Operator::Seed && is_own);
        promoting += u32::from(node.promotion == "running");
        let is_scored = node.status == NodeStatus::Scored;
        must(node.ranking_score.is_some() == is_scored, Outranks, || {
            format!(
                "node {} is {:?} with score {:?}",
                node.id, node.status, node.ranking_score
            )
        });
        must(is_scored || node.promotion == "none", Outranks, || {
            format!("node {} is {:?} and in promotion", node.id, node.status)
        });
    }
    for (found, limit, what) in [
        (running, policy.concurrency_nodes, "nodes in work"),
        (made, policy.budget.max_nodes, "nodes"),
        (promoting, 1, "promotions"),
    ] {
        must(found <= limit, Limits, || {
            format!("{found} {what}, at most {limit}")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{T0, policy};
    use crate::invariant::tests::raised;

    #[test]
    fn another_order_of_families_is_a_breach() {
        let mut policy = policy();
        let due = coverage::order(&policy.families, policy.search_seed.0);
        let due: Vec<&FamilyId> = due.iter().collect();
        assert_eq!(raised(|| coverage(&policy, &due)), None);
        policy.search_seed.0 += 1;
        assert_eq!(raised(|| coverage(&policy, &due)), Some(Coverage));
    }

    #[test]
    fn a_deadline_that_moves_later_is_a_breach() {
        let before = Deadlines::new(T0, &policy().budget);
        let mut now = before;
        now.cutoff = now.cutoff.plus_ms(-1);
        assert_eq!(raised(|| only_earlier(&before, &now)), None);
        let later = raised(|| only_earlier(&now, &before));
        assert_eq!(later, Some(Invariant::Deadlines));
        now.stop_at = now.stop_at.plus_ms(-1);
        let hard = raised(|| only_earlier(&before, &now));
        assert_eq!(hard, Some(Invariant::Deadlines));
    }
}
