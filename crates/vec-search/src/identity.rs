//! Candidate identity (CID): which scored nodes are the same candidate. Three criteria, joined
//! transitively; the oldest member names the group. Kept up to date as scores come in, so that a
//! question costs the size of one group.

mod firsts;

use std::collections::BTreeMap;

use vec_types::{Digest, Hasher, NodeId, ProgramSeed, ScoreReport, Table, ViewId};

use firsts::Firsts;

use crate::node::{Node, Rerun, RerunStage, SEED_0};
use crate::state::Run;
use crate::{ExecReport, ExecResult};

/// Groups of equal candidates among the scored nodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Groups {
    /// Group of every node that is not alone.
    slots: BTreeMap<NodeId, usize>,
    groups: Vec<Group>,
    /// The first node seen with a key of each criterion.
    first: Firsts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    oldest: NodeId,
    members: Vec<NodeId>,
}

impl Groups {
    /// The oldest member of the node's group; the node itself when it is alone.
    pub(crate) fn root(&self, node: NodeId) -> NodeId {
        self.group(node).map_or(node, |group| group.oldest)
    }

    /// The other members of its group.
    pub(crate) fn others(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let members = self.group(node).map_or(&[][..], |group| &group.members);
        members.iter().copied().filter(move |other| *other != node)
    }

    fn group(&self, node: NodeId) -> Option<&Group> {
        self.groups.get(*self.slots.get(&node)?)
    }

    /// Takes in a node that has just been scored.
    pub(crate) fn add(&mut self, node: &Node, views: &[ViewId]) {
        if let Some(commit) = node.commit() {
            let key = keyed("program", |hasher| {
                hasher.update(commit.runtime_key.as_bytes());
            });
            self.claim(key, node.id);
        }
        if let Some(output) = objective_output(node, views) {
            let key = keyed("output", |hasher| {
                output
                    .iter()
                    .for_each(|digest| hasher.update(digest.as_bytes()));
            });
            self.claim(key, node.id);
        }
        self.add_scores(node);
    }

    /// CID-01 c: every pair of seeds on which the scores agree to 4 decimals. One seed alone never
    /// merges, and a seed agrees only with itself in the same data epoch.
    pub(crate) fn add_scores(&mut self, node: &Node) {
        let scores = measurements(node);
        for (index, (seed, first)) in scores.iter().enumerate() {
            for (other, second) in &scores[..index] {
                if seed == other {
                    continue;
                }
                let (low, high) = if seed < other {
                    (first, second)
                } else {
                    (second, first)
                };
                let key = keyed("scores", |hasher| {
                    hasher.update(low);
                    hasher.update(high);
                });
                self.claim(key, node.id);
            }
        }
    }

    fn claim(&mut self, key: Digest, node: NodeId) {
        let first = self.first.claim(&key, node);
        if first != node {
            self.join(first, node);
        }
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let slots = (self.slots.get(&a).copied(), self.slots.get(&b).copied());
        match slots {
            (Some(a), Some(b)) if a == b => {}
            (Some(slot), None) => self.enter(slot, &[b]),
            (None, Some(slot)) => self.enter(slot, &[a]),
            (None, None) => {
                self.groups.push(Group {
                    oldest: a,
                    members: Vec::new(),
                });
                self.enter(self.groups.len() - 1, &[a, b]);
            }
            (Some(a), Some(b)) => {
                let size = |slot: usize| self.groups[slot].members.len();
                let (large, small) = if size(a) < size(b) { (b, a) } else { (a, b) };
                let moved = std::mem::take(&mut self.groups[small].members);
                self.enter(large, &moved);
            }
        }
    }

    fn enter(&mut self, slot: usize, nodes: &[NodeId]) {
        for node in nodes {
            self.slots.insert(*node, slot);
            let group = &mut self.groups[slot];
            group.members.push(*node);
            group.oldest = group.oldest.min(*node);
        }
    }
}

fn keyed(criterion: &str, write: impl FnOnce(&mut Hasher)) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(criterion.as_bytes());
    write(&mut hasher);
    hasher.finish()
}

/// Digests of seed 0 on the objective views in view order; absent unless all are there.
pub(crate) fn objective_output<'a>(node: &'a Node, views: &[ViewId]) -> Option<Vec<&'a Digest>> {
    let digests = node.digests()?;
    views.iter().map(|view| digests.get(view)).collect()
}

/// Do two nodes give the same seed-0 predictions on every objective view? False when one has none.
pub(crate) fn has_same_output(run: &Run, a: &Node, b: &Node) -> bool {
    let output = |node| objective_output(node, &run.views);
    let (a, b) = (output(a), output(b));
    a.is_some() && a == b
}

/// Digests of a further execution on the objective views.
pub(crate) fn rerun_output<'a>(rerun: &'a Rerun, views: &[ViewId]) -> Option<Vec<&'a Digest>> {
    match &rerun.report()?.result {
        ExecResult::Done { digests } => views.iter().map(|view| digests.get(view)).collect(),
        ExecResult::Fault { .. } => None,
    }
}

/// Every ranked score of a node by seed, as the bytes that criterion c compares.
fn measurements(node: &Node) -> Vec<(ProgramSeed, Vec<u8>)> {
    let first = node.score(SEED_0).map(|score| (SEED_0, node.epoch, score));
    let further = node.reruns.iter().filter_map(|(exec, rerun)| {
        let score = rerun.score().filter(|_| exec.is_ranked())?;
        Some((*exec, rerun.epoch?, score))
    });
    let all = first.into_iter().chain(further);
    all.map(|(exec, epoch, score)| {
        let seed = exec.program_seed();
        (seed, comparable(seed, epoch, score))
    })
    .collect()
}

/// Total, components and parts to 4 decimals; this merges outputs that differ by float noise.
fn comparable(seed: ProgramSeed, epoch: u32, score: &ScoreReport) -> Vec<u8> {
    let mut bytes = Vec::new();
    let number = |bytes: &mut Vec<u8>, value: f64| bytes.extend(value.to_bits().to_le_bytes());
    bytes.extend(seed.0.to_le_bytes());
    bytes.extend(epoch.to_le_bytes());
    number(&mut bytes, score.total.rounded());
    for (ruler, component) in &score.components {
        bytes.extend(ruler.as_str().as_bytes());
        bytes.push(0);
        number(&mut bytes, component.rounded());
    }
    for part in score.parts.iter() {
        bytes.extend(part.ruler.as_str().as_bytes());
        bytes.push(0);
        bytes.extend(part.metric.as_bytes());
        bytes.push(0);
        number(&mut bytes, (part.points * 1e4).round() + 0.0);
    }
    bytes
}

/// A report for scores whose execution is not known here.
pub(crate) fn unknown_report(digests: Table<ViewId, Digest>) -> ExecReport {
    ExecReport {
        result: ExecResult::Done { digests },
        wall_ms: Table::new(),
        max_rss_kib: None,
        harness_ms: 0,
    }
}

/// A further execution of an import, with its score.
pub(crate) const fn past_rerun(report: ExecReport, score: ScoreReport, epoch: u32) -> Rerun {
    Rerun {
        stage: RerunStage::Scored { report, score },
        epoch: Some(epoch),
    }
}
