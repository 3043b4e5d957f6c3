//! What must hold after every event, written down independently of the crate.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{Effect, Event, NodeView, RunState};
use vec_types::{NodeId, NodeStatus, Operator};

/// Remembers what a fold cannot tell: how often things happened.
#[derive(Default)]
pub(crate) struct Watch {
    settled: BTreeSet<NodeId>,
    started: BTreeMap<String, u32>,
    ended: BTreeSet<String>,
    draws: u64,
    created: u64,
    final_starts: Vec<Effect>,
}

impl Watch {
    pub(crate) fn saw(&mut self, state: &RunState, event: &Event) {
        self.count(state, event);
        let nodes: Vec<NodeView<'_>> = state.nodes().collect();
        check_visits(&nodes);
        check_limits(state, &nodes);
        check_wanted(state);
    }

    fn count(&mut self, state: &RunState, event: &Event) {
        match event {
            Event::NodeSettled { node, .. } => {
                assert!(self.settled.insert(*node), "node {node} settled twice");
            }
            Event::EffectStarted { effect } => {
                let id = effect.id().to_string();
                assert!(!self.ended.contains(&id), "{id} starts after it ended");
                *self.started.entry(id).or_insert(0) += 1;
                if state.phase() == vec_types::Phase::Final {
                    self.final_starts.push(effect.clone());
                }
            }
            Event::EffectEnded { effect, .. } => {
                let id = effect.id().to_string();
                assert!(self.started.contains_key(&id), "{id} ends unstarted");
                assert!(self.ended.insert(id.clone()), "{id} ended twice");
            }
            Event::Draw { index, .. } => {
                assert_eq!(*index, self.draws, "draws are numbered without gaps");
                self.draws += 1;
            }
            Event::NodeCreated { operator, .. } => {
                self.created += u64::from(*operator != Operator::Seed);
                assert_eq!(self.created, self.draws, "one draw per created node");
            }
            Event::GuardStart { baseline, .. } => {
                let place = Effect::Place {
                    node: *baseline,
                    provisional: true,
                };
                assert!(self.ended.contains(&place.id().to_string()), "FIN-03");
            }
            _ => {}
        }
    }

    /// FIN-03: nothing of final selection starts before the baseline is written.
    pub(crate) fn check_final_order(&self) {
        let firsts = self.final_starts.iter().take(2);
        for (effect, kind) in firsts.zip(["execute", "place"]) {
            assert_eq!(effect.kind(), kind, "{:?}", self.final_starts);
        }
    }
}

fn ancestors<'a>(nodes: &'a [NodeView<'a>], node: &NodeView<'a>) -> Vec<NodeId> {
    let mut found = Vec::new();
    let mut at = node.parent;
    while let Some(id) = at {
        found.push(id);
        at = nodes[usize::try_from(id.0).expect("fits")].parent;
    }
    found
}

/// Visits equal the fold of settled nodes; a virtual visit lives exactly as long as its node.
fn check_visits(nodes: &[NodeView<'_>]) {
    let mut visits: BTreeMap<NodeId, (u64, u64)> = BTreeMap::new();
    for node in nodes {
        let (real, virtual_visits) = match node.status {
            NodeStatus::Running => (0, 1),
            status => (u64::from(status.is_in_tree()), 0),
        };
        visits.entry(node.id).or_default().0 += real;
        for ancestor in ancestors(nodes, node) {
            let entry = visits.entry(ancestor).or_default();
            entry.0 += real;
            entry.1 += virtual_visits;
        }
    }
    for node in nodes {
        let found = (node.visits, node.virtual_visits);
        assert_eq!(found, visits[&node.id], "visits of node {}", node.id);
    }
}

fn check_limits(state: &RunState, nodes: &[NodeView<'_>]) {
    let policy = state.policy().expect("started");
    let running = nodes
        .iter()
        .filter(|n| n.status == NodeStatus::Running)
        .count();
    assert!(running <= usize::try_from(policy.concurrency_nodes).expect("fits"));
    let made = nodes
        .iter()
        .filter(|n| n.operator != Operator::Seed)
        .count();
    assert!(made <= usize::try_from(policy.budget.max_nodes).expect("fits"));
    let promoting = nodes.iter().filter(|n| n.promotion == "running").count();
    assert!(promoting <= 1, "one promotion at a time");
    for node in nodes {
        let is_scored = node.status == NodeStatus::Scored;
        assert_eq!(
            node.ranking_score.is_some(),
            is_scored,
            "a failure has no score"
        );
        assert!(is_scored || node.promotion == "none");
    }
}

fn check_wanted(state: &RunState) {
    let wanted = state.wanted();
    assert!(wanted.is_sorted(), "{wanted:?}");
    // One node at a time: one thing at a time, so that the order of results is ours.
    let alone = state
        .policy()
        .is_some_and(|policy| policy.concurrency_nodes == 1);
    assert!(!alone || wanted.len() <= 1, "{wanted:?}");
    let ids: BTreeSet<String> = wanted.iter().map(|e| e.id().to_string()).collect();
    assert_eq!(ids.len(), wanted.len(), "{wanted:?}");
    for effect in &wanted {
        assert!(state.is_wanted(effect));
        assert!(state.effect_deadline(effect).is_some());
    }
}
