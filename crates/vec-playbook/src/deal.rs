//! Chance without time: dice that depend on the search seed, a purpose and a node, and the deck of
//! outcomes.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use vec_types::{Digest, NodeId};

/// What a node shall come to. The order is the order of the deck before it is shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeCard {
    /// Works as well as it can.
    Normal,
    /// The program raises an error.
    Crash,
    /// The program never ends.
    Timeout,
    /// The program predicts NaN.
    Nan,
    /// Session and program reach for what they must not have, then behave.
    Escape,
    /// METHOD.md says `NO_CHANGE:` and run.py stays as it was.
    NoChange,
    /// METHOD.md is deleted.
    MissingMethod,
    /// METHOD.md stays the harness's placeholder.
    AutoMethod,
    /// The Researcher's first reply is damaged.
    PlanInvalid,
}

/// Operators as briefs and contexts name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// A seed program.
    Seed,
    /// From nothing.
    Draft,
    /// Repair.
    Debug,
    /// One change.
    Improve,
}

/// The card of `node`. The deck is shuffled once by `search_seed` and dealt round and round, so as
/// many consecutive nodes as it has cards see every card. A card that the operator makes
/// impossible plays as `normal`: a draft has nothing to leave unchanged, and a repair repairs.
#[must_use]
pub fn deal(
    deck: &[OutcomeCard],
    search_seed: u32,
    node: NodeId,
    operator: Operator,
) -> OutcomeCard {
    let mut order: Vec<OutcomeCard> = deck.to_vec();
    let mut dice = Dice::new("deck", search_seed, NodeId(0), 0);
    for i in (1..order.len()).rev() {
        order.swap(i, dice.below(i + 1));
    }
    let Some(card) = order.get(node.0 as usize % order.len().max(1)).copied() else {
        return OutcomeCard::Normal;
    };
    let impossible = match operator {
        Operator::Draft | Operator::Seed => card == OutcomeCard::NoChange,
        Operator::Debug => matches!(
            card,
            OutcomeCard::Crash | OutcomeCard::Timeout | OutcomeCard::Nan | OutcomeCard::NoChange
        ),
        Operator::Improve => false,
    };
    if impossible {
        OutcomeCard::Normal
    } else {
        card
    }
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// Dice for one purpose of one node.
    pub(crate) fn new(purpose: &str, search_seed: u32, node: NodeId, attempt: u32) -> Self {
        let text = format!("vec-playbook 1\n{purpose}\n{search_seed}\n{node}\n{attempt}\n");
        Self(ChaCha8Rng::from_seed(
            *Digest::of(text.as_bytes()).as_bytes(),
        ))
    }

    /// Even in 0..1, 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Even in 0..`bound`; 0 for 0. The bias of a bound far below 2^53 does not matter here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.unit() * bound as f64) as usize
    }

    /// One of `items`.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let place = self.below(items.len());
        items.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_card_is_dealt_once_per_round_whatever_the_seed() {
        use OutcomeCard::{Crash, Escape, Nan, Normal, Timeout};
        let deck = [Normal, Normal, Crash, Timeout, Nan, Escape];
        let mut orders = BTreeSet::new();
        for seed in 0..20 {
            let cards = |from: u32| -> Vec<OutcomeCard> {
                let node = |n| deal(&deck, seed, NodeId(from + n), Operator::Improve);
                (0..6).map(node).collect()
            };
            for from in [0, 2, 5] {
                let mut sorted = cards(from);
                sorted.sort();
                assert_eq!(sorted, deck);
            }
            orders.insert(cards(0));
        }
        assert!(orders.len() > 10, "the seed shuffles");
    }

    #[test]
    fn impossible_cards_play_as_normal() {
        use OutcomeCard::{Crash, Escape, NoChange, Normal};
        let card = |card, operator| deal(&[card], 3, NodeId(9), operator);
        assert_eq!(card(NoChange, Operator::Draft), Normal);
        assert_eq!(card(NoChange, Operator::Improve), NoChange);
        assert_eq!(card(Crash, Operator::Debug), Normal);
        assert_eq!(card(Crash, Operator::Draft), Crash);
        assert_eq!(card(Escape, Operator::Debug), Escape);
        assert_eq!(deal(&[], 0, NodeId(0), Operator::Draft), Normal);
    }

    #[test]
    fn dice_depend_on_purpose_seed_node_and_attempt_only() {
        let first =
            |purpose, seed, node, attempt| Dice::new(purpose, seed, NodeId(node), attempt).unit();
        assert_eq!(first("a", 1, 2, 3).to_bits(), first("a", 1, 2, 3).to_bits());
        let others = [
            first("b", 1, 2, 3),
            first("a", 0, 2, 3),
            first("a", 1, 1, 3),
            first("a", 1, 2, 0),
        ];
        for other in others {
            assert!(other != first("a", 1, 2, 3) && (0.0..1.0).contains(&other));
        }
    }
}
