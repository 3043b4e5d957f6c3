//! Candidate identity (CID): which scored nodes are the same candidate. Three criteria, joined
//! transitively by union-find; the oldest member names the group.

use std::collections::BTreeMap;

use vec_types::{Digest, ExecName, NodeId, ScoreReport, TreeId, ViewId};

use crate::ExecResult;
use crate::node::Node;
use crate::state::Run;

/// Seeds that two nodes must share before equal scores make them one candidate (CID-01 c).
const COMMON_SEEDS_MIN: usize = 2;

/// Groups of equal candidates among the scored nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    parent: BTreeMap<NodeId, NodeId>,
}

impl Groups {
    pub(crate) fn of(run: &Run) -> Self {
        let scored: Vec<&Node> = run.nodes.iter().filter(|node| node.is_scored()).collect();
        let mut groups = Self {
            parent: scored.iter().map(|node| (node.id, node.id)).collect(),
        };
        groups.join_equal_programs(&scored);
        groups.join_equal_outputs(run, &scored);
        groups.join_equal_scores(&scored);
        groups
    }

    /// The oldest member of the node's group; the node itself when it is not scored.
    pub(crate) fn root(&self, node: NodeId) -> NodeId {
        let mut at = node;
        while let Some(next) = self.parent.get(&at).filter(|next| **next != at) {
            at = *next;
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        let (oldest, newest) = (a.min(b), a.max(b));
        self.parent.insert(newest, oldest);
    }

    /// CID-01 a: equal executable trees.
    fn join_equal_programs(&mut self, scored: &[&Node]) {
        let mut first: BTreeMap<&TreeId, NodeId> = BTreeMap::new();
        for node in scored {
            let Some(commit) = node.commit() else {
                continue;
            };
            let known = *first.entry(&commit.runtime_key).or_insert(node.id);
            self.join(known, node.id);
        }
    }

    /// CID-01 b: equal seed-0 predictions on the objective views.
    fn join_equal_outputs(&mut self, run: &Run, scored: &[&Node]) {
        let mut first: BTreeMap<Vec<Digest>, NodeId> = BTreeMap::new();
        for node in scored {
            let Some(output) = objective_output(run, node) else {
                continue;
            };
            let known = *first.entry(output).or_insert(node.id);
            self.join(known, node.id);
        }
    }

    /// CID-01 c: equal scores on at least two common seeds.
    fn join_equal_scores(&mut self, scored: &[&Node]) {
        let several: Vec<(NodeId, BTreeMap<ExecName, &ScoreReport>)> = scored
            .iter()
            .map(|node| (node.id, seed_scores(node)))
            .filter(|(_, scores)| scores.len() >= COMMON_SEEDS_MIN)
            .collect();
        for (index, (id, scores)) in several.iter().enumerate() {
            for (other_id, other) in &several[..index] {
                if agree(scores, other) {
                    self.join(*other_id, *id);
                }
            }
        }
    }
}

/// Digests of seed 0 on the objective views in view order; absent unless all are there.
pub(crate) fn objective_output(run: &Run, node: &Node) -> Option<Vec<Digest>> {
    in_view_order(run, node.digests()?)
}

/// The same for a further execution.
pub(crate) fn rerun_output(run: &Run, node: NodeId, exec: ExecName) -> Option<Vec<Digest>> {
    match &run.rerun(node, exec)?.report()?.result {
        ExecResult::Done { digests } => in_view_order(run, digests),
        ExecResult::Fault { .. } => None,
    }
}

fn in_view_order(run: &Run, digests: &BTreeMap<ViewId, Digest>) -> Option<Vec<Digest>> {
    run.policy
        .objective_views()
        .into_iter()
        .map(|view| digests.get(view).copied())
        .collect()
}

fn seed_scores(node: &Node) -> BTreeMap<ExecName, &ScoreReport> {
    let reruns = node.reruns.iter();
    let further = reruns.filter(|(exec, _)| matches!(exec, ExecName::Seed(_)));
    let further = further.filter_map(|(exec, rerun)| Some((*exec, rerun.score()?)));
    let first = node.score(crate::node::SEED_0);
    let first = first.map(|report| (crate::node::SEED_0, report));
    first.into_iter().chain(further).collect()
}

fn agree(a: &BTreeMap<ExecName, &ScoreReport>, b: &BTreeMap<ExecName, &ScoreReport>) -> bool {
    let mut common = 0;
    for (exec, score) in a {
        let Some(other) = b.get(exec) else { continue };
        if !agree_on_seed(score, other) {
            return false;
        }
        common += 1;
    }
    common >= COMMON_SEEDS_MIN
}

/// Total, components and parts to 4 decimals; this merges outputs that differ by float noise.
fn agree_on_seed(a: &ScoreReport, b: &ScoreReport) -> bool {
    let components = |report: &ScoreReport| -> Vec<_> {
        let pairs = report.components.iter();
        pairs
            .map(|(ruler, score)| (ruler.clone(), score.rounded()))
            .collect()
    };
    let parts = |report: &ScoreReport| -> Vec<_> {
        let rounded = |points: f64| (points * 1e4).round();
        let parts = report.parts.iter();
        parts
            .map(|part| {
                (
                    part.ruler.clone(),
                    part.metric.clone(),
                    rounded(part.points),
                )
            })
            .collect()
    };
    a.total.rounded() == b.total.rounded() && components(a) == components(b) && parts(a) == parts(b)
}
