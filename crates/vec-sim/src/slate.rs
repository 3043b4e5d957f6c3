//! Who is promoted, reviewed, a finalist: the ranking written down once more (PRO-01, PRO-05, REV-02,
//! MTH-03, FIN-05), with candidate identity (CID) by comparing every pair.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{NodeView, Policy, REVIEW_ATTEMPTS_MAX, RunState, VIEW_CHECK_ATTEMPTS_MAX};
use vec_types::{Digest, NodeId, NodeStatus, Operator, ProgramSeed, ScoreReport, SeedState};

use crate::book::{Book, Entry};

/// A scored node as the ranking sees it.
#[derive(Debug, Clone)]
struct Candidate {
    id: NodeId,
    score: f64,
    group: usize,
    key: Option<String>,
    output: Option<Vec<Digest>>,
    /// What was measured: seed, and epoch with everything to 4 decimals.
    measured: BTreeSet<(ProgramSeed, String)>,
    mean_epoch: Option<u32>,
    is_seed: bool,
    is_anchor: bool,
    is_failed: bool,
    competes: bool,
    is_gated: bool,
    is_reviewed: bool,
    reviews: u32,
}

/// Scored nodes, best first, with their groups.
#[derive(Debug)]
pub(crate) struct Slate(Vec<Candidate>);

impl Slate {
    pub(crate) fn of(state: &RunState, book: &Book) -> Self {
        let Some(policy) = state.policy() else {
            return Self(Vec::new());
        };
        let nodes = state.nodes().zip(&book.nodes);
        let scored = nodes.filter(|(node, _)| node.status == NodeStatus::Scored);
        let mut all: Vec<Candidate> = scored
            .map(|(node, entry)| candidate(policy, &node, entry))
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        label(&mut all);
        Self(all)
    }

    /// Are two nodes the same candidate?
    pub(crate) fn has_groups(&self) -> bool {
        let groups: BTreeSet<usize> = self.0.iter().map(|one| one.group).collect();
        groups.len() < self.0.len()
    }

    /// PRO-01, PRO-05: the best of each group without the baseline's; a promoted one stands for its
    /// group.
    fn best(&self, top_k: u32, admits: impl Fn(&Candidate) -> bool) -> Vec<&Candidate> {
        let stands = |one: &Candidate| one.competes && admits(one);
        let newest = self
            .0
            .iter()
            .filter(|one| one.is_anchor)
            .max_by_key(|one| one.id);
        let mut taken: BTreeSet<usize> = newest.map(|one| one.group).into_iter().collect();
        let is_promoted = |one: &Candidate| one.mean_epoch.is_some();
        let is_represented = |one: &&Candidate| {
            let mut others = self.0.iter().filter(|other| other.group == one.group);
            !is_promoted(one) && others.any(|other| is_promoted(other) && stands(other))
        };
        let standing = self.0.iter().filter(|one| stands(one));
        let firsts = standing.filter(|one| !is_represented(one));
        let mut best: Vec<&Candidate> = firsts.filter(|one| taken.insert(one.group)).collect();
        best.truncate(usize::try_from(top_k).unwrap_or(usize::MAX));
        best
    }

    /// The next promotion in this epoch.
    pub(crate) fn promotion(
        &self,
        top_k: u32,
        epoch: u32,
        is_paused: &dyn Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let best = self.best(top_k, |one| !one.is_gated);
        let mut open = best
            .into_iter()
            .filter(|one| one.mean_epoch != Some(epoch) && !is_paused(one.id));
        open.next().map(|one| one.id)
    }

    /// Candidates of final selection.
    pub(crate) fn finalists(&self, top_k: u32) -> Vec<NodeId> {
        let admits = |one: &Candidate| one.is_reviewed || one.reviews < REVIEW_ATTEMPTS_MAX;
        self.best(top_k, admits)
            .into_iter()
            .map(|one| one.id)
            .collect()
    }

    /// Nodes that a review is due for: high ones above every seed, and gated ones.
    pub(crate) fn reviews(&self, top_k: u32) -> BTreeSet<NodeId> {
        let eligible: Vec<&Candidate> = self.0.iter().filter(|one| !one.is_failed).collect();
        let seeds = eligible
            .iter()
            .filter(|one| one.is_seed)
            .map(|one| one.score);
        let best_seed = seeds.fold(f64::NEG_INFINITY, f64::max);
        let high = eligible.iter().take(eligible.len().div_ceil(10)).copied();
        let high = high.filter(|one| one.score > best_seed);
        let gated = self
            .best(top_k, |_| true)
            .into_iter()
            .filter(|one| one.is_gated);
        let open = |one: &&Candidate| !one.is_reviewed && one.reviews < REVIEW_ATTEMPTS_MAX;
        high.chain(gated).filter(open).map(|one| one.id).collect()
    }
}

fn candidate(policy: &Policy, node: &NodeView<'_>, entry: &Entry) -> Candidate {
    let views = policy.objective_views().into_iter();
    let is_ranked = |exec: &vec_types::ExecName| exec.to_string().starts_with("seed");
    let scores = node.scores.iter().filter(|(exec, _)| is_ranked(exec));
    let measured = scores.filter_map(|(exec, report)| {
        let epoch = entry.epochs.get(exec)?;
        Some((exec.program_seed(), rounded(*epoch, report)))
    });
    let is_passed = node.review == "pass";
    let may = node
        .seed_state
        .is_none_or(|seed| seed == SeedState::Exploration);
    Candidate {
        id: node.id,
        score: node.ranking_score.map_or(f64::NEG_INFINITY, f64::from),
        group: 0,
        key: node.commit.map(|commit| commit.runtime_key.to_string()),
        output: node
            .digests
            .and_then(|digests| views.map(|view| digests.get(view).copied()).collect()),
        measured: measured.collect(),
        mean_epoch: entry.mean.map(|(_, epoch)| epoch),
        is_seed: node.operator == Operator::Seed,
        is_anchor: node.origin.is_none() && node.seed_state == Some(SeedState::Anchor),
        is_failed: node.review == "fail",
        competes: may
            && !node.no_progress
            && node.review != "fail"
            && !node.view_dependent
            && !entry.is_view_dependent()
            && entry.view_attempts < VIEW_CHECK_ATTEMPTS_MAX
            && node.promotion != "failed",
        is_gated: node.is_method_auto && !is_passed,
        is_reviewed: node.operator == Operator::Seed || is_passed,
        reviews: node.review_attempts,
    }
}

/// Total, components and parts to 4 decimals.
fn rounded(epoch: u32, report: &ScoreReport) -> String {
    let number = |value: f64| (value * 1e4).round() + 0.0;
    let components = report.components.iter();
    let components: Vec<_> = components
        .map(|(ruler, score)| (ruler, number(score.get())))
        .collect();
    let parts = report.parts.iter();
    let parts: Vec<_> = parts
        .map(|part| (part.ruler, part.metric, number(part.points)))
        .collect();
    format!(
        "{epoch} {} {components:?} {parts:?}",
        number(report.total.get())
    )
}

/// CID-01: equal programs, equal outputs, or equal scores on two seeds.
fn is_same(a: &Candidate, b: &Candidate) -> bool {
    let seeds = a.measured.intersection(&b.measured).map(|(seed, _)| seed);
    let seeds: BTreeSet<&ProgramSeed> = seeds.collect();
    let key = a.key.is_some() && a.key == b.key;
    key || (a.output.is_some() && a.output == b.output) || seeds.len() >= 2
}

/// CID-02: groups by relabelling pairs until nothing changes.
fn label(all: &mut [Candidate]) {
    let pairs: Vec<(usize, usize)> = (0..all.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .filter(|(a, b)| is_same(&all[*a], &all[*b]))
        .collect();
    let mut labels: BTreeMap<usize, usize> = (0..all.len()).map(|at| (at, at)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (a, b) in &pairs {
            let least = labels[a].min(labels[b]);
            changed |= labels.insert(*a, least) != Some(least);
            changed |= labels.insert(*b, least) != Some(least);
        }
    }
    for (at, one) in all.iter_mut().enumerate() {
        one.group = labels[&at];
    }
}
