//! Promotions, reviews and finalists against an independent ranking ([`crate::slate`]).

use vec_search::{Effect, Event, RunState};
use vec_types::{NodeId, Phase};

use crate::Invariant;
use crate::book::Book;
use crate::must;
use crate::rules::{Rule, Tally};
use crate::slate::Slate;

/// Sees an event before it is in the book; the state has it already. Nodes that are
/// paused wait for another time.
pub(super) fn saw(
    state: &RunState,
    book: &Book,
    (event, is_paused): (&Event, &dyn Fn(NodeId) -> bool),
    tally: &mut Tally,
) {
    let Some(policy) = state.policy() else { return };
    let is_search = state.phase() == Phase::Search;
    match event {
        Event::PromotionStart { node, .. } if is_search => {
            let slate = Slate::of(state, book);
            let due = slate.promotion(policy.promotion_top_k, book.epoch, is_paused);
            must(due == Some(*node), Invariant::Slate, || {
                format!("node {node} is promoted; the ranking gives {due:?}")
            });
        }
        Event::EffectStarted {
            effect: Effect::Review { node, .. },
        } if is_search => {
            let due = Slate::of(state, book).reviews(policy.promotion_top_k);
            must(due.contains(node), Invariant::Slate, || {
                format!("node {node} is reviewed; due are {due:?}")
            });
        }
        Event::FinalStart { candidates, .. } => {
            let slate = Slate::of(state, book);
            if slate.has_groups() {
                tally.add(Rule::SameCandidate);
            }
            let due = slate.finalists(policy.final_top_k);
            must(*candidates == due, Invariant::Slate, || {
                format!("finalists {candidates:?}; the ranking gives {due:?}")
            });
        }
        _ => {}
    }
}
