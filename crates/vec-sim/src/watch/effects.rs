//! Effects: each starts before it ends, ends once, and never starts again; reviews come one at a
//! time per node; what is wanted is in order.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{Effect, Event, REVIEW_ATTEMPTS_MAX, RunState, SEED_ATTEMPTS_MAX};
use vec_types::{NodeId, UnixMs};

use crate::Invariant::{self, Limits, Reviews, Wanted};
use crate::must;

/// What started and ended.
#[derive(Debug, Default)]
pub(super) struct Effects {
    started: BTreeSet<String>,
    ended: BTreeSet<String>,
    seeds: BTreeMap<String, u32>,
}

impl Effects {
    pub(super) fn has_ended(&self, effect: &Effect) -> bool {
        self.ended.contains(effect.id().as_str())
    }

    pub(super) fn saw(&mut self, state: &RunState, at: UnixMs, event: &Event) {
        match event {
            Event::EffectStarted { effect } => self.start(effect),
            Event::EffectEnded { effect, .. } => self.end(effect),
            Event::NodeCreated {
                seed_program: Some(seed),
                ..
            } => {
                let tried = self.seeds.entry(seed.to_string()).or_default();
                *tried += 1;
                must(*tried <= SEED_ATTEMPTS_MAX, Limits, || {
                    format!("seed {seed} is tried {tried} times")
                });
            }
            _ => return,
        }
        wanted(state, at);
    }

    fn start(&mut self, effect: &Effect) {
        let id = effect.id().to_string();
        must(!self.ended.contains(&id), Invariant::Effects, || {
            format!("{id} starts after it ended")
        });
        if let Effect::Review { attempt, .. } = effect {
            must(*attempt < REVIEW_ATTEMPTS_MAX, Limits, || {
                format!("{id} is one review too many")
            });
        }
        self.started.insert(id);
    }

    fn end(&mut self, effect: &Effect) {
        let id = effect.id().to_string();
        must(self.started.contains(&id), Invariant::Effects, || {
            format!("{id} ends and never started")
        });
        must(self.ended.insert(id.clone()), Invariant::Effects, || {
            format!("{id} ends a second time")
        });
    }
}

fn wanted(state: &RunState, at: UnixMs) {
    let wanted = state.wanted();
    // One node at a time: one thing at a time, so that the order of results is ours.
    let alone = state
        .policy()
        .is_some_and(|policy| policy.concurrency_nodes == 1);
    in_order(&wanted);
    let skipped: BTreeSet<NodeId> = state.skipped().into_keys().collect();
    let mut in_time = 0;
    for effect in &wanted {
        let deadline = state.effect_deadline(effect);
        let may_run = state.is_wanted(effect) && deadline.is_some();
        must(may_run, Wanted, || format!("{effect:?} has no deadline"));
        // What is past its deadline is being cut, and the review of a candidate that is out may
        // still be in work; the answer waits for neither.
        let is_idle_review =
            matches!(effect, Effect::Review { node, .. } if skipped.contains(node));
        let is_late = deadline.is_none_or(|deadline| deadline <= at);
        in_time += u32::from(!is_late && !is_idle_review);
    }
    must(!alone || in_time <= 1, Wanted, || {
        format!("one node at a time, but {wanted:?}")
    });
}

fn in_order(wanted: &[Effect]) {
    let shown = || format!("{wanted:?}");
    must(wanted.is_sorted(), Wanted, shown);
    let ids: BTreeSet<_> = wanted.iter().map(Effect::id).collect();
    must(ids.len() == wanted.len(), Wanted, shown);
    let mut reviewed: BTreeSet<NodeId> = BTreeSet::new();
    for effect in wanted {
        if let Effect::Review { node, .. } = effect {
            must(reviewed.insert(*node), Reviews, || {
                format!("two reviews of node {node} at once")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::tests::raised;

    #[test]
    fn disorder_and_two_reviews_of_one_node_are_breaches() {
        let review = |node, attempt| Effect::Review {
            node: NodeId(node),
            attempt,
        };
        let two = [review(1, 0), review(2, 0)];
        assert_eq!(raised(|| in_order(&two)), None);
        let reverse = [review(2, 0), review(1, 0)];
        assert_eq!(raised(|| in_order(&reverse)), Some(Wanted));
        let twice = [review(1, 0), review(1, 0)];
        assert_eq!(raised(|| in_order(&twice)), Some(Wanted));
        let both = [review(1, 0), review(1, 1)];
        assert_eq!(raised(|| in_order(&both)), Some(Reviews));
    }
}
