//! A shelved node changes nothing: what selection sees after it was shelved is what it saw before it
//! was created, if nothing else happened in between.

use vec_search::{Effect, Event, OutOfPool, RunState};
use vec_types::{NodeId, Score};

use crate::Invariant::Shelved;
use crate::must;
use crate::rules::{Rule, Tally};

/// What selection sees, as far as views show it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sight {
    /// Visits, virtual visits and ranking score of every node.
    nodes: Vec<(u64, u64, Option<Score>)>,
    /// Why nodes are no parents: scores, reviews, caps, streaks, busy children.
    out_of_pool: Vec<(NodeId, OutOfPool)>,
    ranked: Vec<NodeId>,
    is_plateau: bool,
}

impl Sight {
    /// Of the first `count` nodes.
    fn of(state: &RunState, count: usize) -> Self {
        let nodes = state.nodes().take(count);
        let is_old = |id: NodeId| usize::try_from(id.0).is_ok_and(|id| id < count);
        let mut out_of_pool = state.out_of_pool();
        out_of_pool.retain(|(id, _)| is_old(*id));
        Self {
            nodes: nodes
                .map(|node| (node.visits, node.virtual_visits, node.ranking_score))
                .collect(),
            out_of_pool,
            ranked: state.ranked(),
            is_plateau: state.is_plateau(),
        }
    }
}

/// The last sight before a node was created, while nothing else happened.
#[derive(Debug, Default)]
pub(super) struct Before(Option<(NodeId, Sight)>);

impl Before {
    pub(super) fn saw(&mut self, state: &RunState, event: &Event, tally: &mut Tally) {
        match event {
            Event::Draw { node, .. } | Event::ResumePick { node, .. } => {
                let count = usize::try_from(node.0).unwrap_or(usize::MAX);
                self.0 = Some((*node, Sight::of(state, count)));
            }
            Event::NodeSettled { node, status, .. } => {
                let before = self.0.take().filter(|(of, _)| of == node);
                if let Some((_, sight)) = before.filter(|_| status.is_shelved()) {
                    let now = Sight::of(state, sight.nodes.len());
                    same(*node, &sight, &now);
                    tally.add(Rule::ShelvedAlone);
                }
            }
            Event::NodeCreated { node, .. } => {
                self.0 = self.0.take().filter(|(of, _)| of == node);
            }
            Event::PromotionDone { .. }
            | Event::EpochAdvance { .. }
            | Event::Plateau { .. }
            | Event::ViewCheckResult { .. }
            | Event::EffectEnded {
                effect: Effect::Review { .. },
                ..
            } => self.0 = None,
            _ => {}
        }
    }
}

fn same(node: NodeId, before: &Sight, now: &Sight) {
    must(before == now, Shelved, || {
        format!("node {node} was shelved, but {before:?} became {now:?}")
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::tests::raised;

    #[test]
    fn each_thing_that_changes_is_a_breach() {
        let before = Sight {
            nodes: vec![(1, 0, None)],
            out_of_pool: Vec::new(),
            ranked: Vec::new(),
            is_plateau: false,
        };
        let changes: [fn(&mut Sight); 4] = [
            |sight| sight.nodes[0].1 += 1,
            |sight| sight.out_of_pool.push((NodeId(0), OutOfPool::Suspended)),
            |sight| sight.ranked.push(NodeId(0)),
            |sight| sight.is_plateau = true,
        ];
        assert_eq!(raised(|| same(NodeId(1), &before, &before)), None);
        for change in changes {
            let mut now = before.clone();
            change(&mut now);
            assert_eq!(raised(|| same(NodeId(1), &before, &now)), Some(Shelved));
        }
    }
}
