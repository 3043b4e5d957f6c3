//! `inputs_digest` of decision events: what a decision saw, hashed, so that a changed score, visit
//! or status shows at replay even where the decision itself would be the same.

use serde::Serialize;
use vec_types::{Digest, ExecName, Hasher, NodeId, canonical_json};

use crate::node::{Node, PromotionState, SEED_0};
use crate::state::Run;

/// Digest of any inputs. Inputs are plain data below 2^53, so they always have a JSON form.
pub(crate) fn digest_of<T: Serialize + ?Sized>(inputs: &T) -> Digest {
    canonical_json(inputs).map_or(Digest::ZERO, |bytes| Digest::of(&bytes))
}

/// Everything that parent selection, draws, drafts and rankings look at. Fixed-width fields, so
/// that 100,000 nodes cost milliseconds.
pub(crate) fn tree_digest(run: &Run) -> Digest {
    let mut row = Vec::with_capacity(256);
    let mut hasher = Hasher::default();
    run_row(run, &mut row);
    for node in &run.nodes {
        node_row(run, node, &mut row);
        hasher.update(&row);
        row.clear();
    }
    hasher.update(&row);
    hasher.finish()
}

fn run_row(run: &Run, row: &mut Vec<u8>) {
    for number in [run.epoch, run.bandit_picks, run.resumes, run.resumes_taken] {
        number_to(row, u64::from(number));
    }
    number_to(row, run.draws);
    number_to(row, u64::from(run.plateau));
    number_to(row, run.times.cutoff.0.unsigned_abs());
    run.epoch_data.iter().for_each(|id| text_to(row, id));
    run.works
        .iter()
        .for_each(|work| text_to(row, &work.to_string()));
}

fn node_row(run: &Run, node: &Node, row: &mut Vec<u8>) {
    number_to(row, u64::from(node.id.0));
    text_to(row, node.status().as_str());
    text_to(row, node.operator.as_str());
    number_to(row, node.parent.map_or(u64::MAX, |id| u64::from(id.0)));
    number_to(
        row,
        node.ranking_score()
            .map_or(u64::MAX, |score| score.get().to_bits()),
    );
    let seed_0 = node.score(SEED_0).map(|score| score.total);
    number_to(row, seed_0.map_or(u64::MAX, |score| score.get().to_bits()));
    number_to(
        row,
        u64::from(node.rank_epoch()) << 32 | u64::from(node.epoch),
    );
    number_to(row, node.visits);
    number_to(row, node.virtual_visits);
    let children = &node.children;
    for counts in [children.running, children.ended] {
        number_to(row, u64::from(counts.all));
        number_to(
            row,
            u64::from(counts.improves) << 32 | u64::from(counts.debugs),
        );
    }
    number_to(
        row,
        u64::from(children.streak) << 1 | u64::from(children.debug_scored),
    );
    text_to(row, review_word(node));
    text_to(row, promotion_word(node, run.epoch));
    number_to(row, u64::from(node.promotion.generation));
    let settled = node.settled();
    let flags = [
        run.suspended.contains(&node.id),
        settled.is_some_and(|settled| settled.no_progress),
        settled.is_some_and(|settled| settled.same_as_parent),
        node.is_method_auto(),
        node.is_view_dependent(),
        node.refuted.is_some(),
    ];
    row.extend(flags.map(u8::from));
    number_to(
        row,
        settled.map_or(u64::MAX, |settled| u64::from(settled.order)),
    );
    for family in [&node.family, &node.drawn_family] {
        text_to(row, family.as_ref().map_or("", |family| family.as_str()));
    }
}

fn number_to(row: &mut Vec<u8>, number: u64) {
    row.extend(number.to_le_bytes());
}

// The length in front keeps neighbours apart.
fn text_to(row: &mut Vec<u8>, text: &str) {
    number_to(row, text.len() as u64);
    row.extend(text.as_bytes());
}

/// Everything that the run knows, complete with components, parts, digests and run times: what
/// `stop` rests on, so that no stored result can change unnoticed.
pub(crate) fn run_digest(run: &Run) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(tree_digest(run).as_bytes());
    for node in &run.nodes {
        hasher.update(node_digest(node).as_bytes());
    }
    hasher.finish()
}

fn node_digest(node: &Node) -> Digest {
    let reruns: Vec<_> = node
        .reruns
        .iter()
        .map(|(exec, rerun)| {
            (
                exec,
                rerun.epoch,
                rerun.report(),
                rerun.score(),
                rerun.failure(),
            )
        })
        .collect();
    let detail = node
        .settled()
        .map(|settled| (settled.at, settled.detail.as_str()));
    digest_of(&(
        (node.commit(), node.plan(), node.session()),
        (node.seed_0_report(), node.score(SEED_0)),
        (node.stage.ending().map(|ending| ending.detail()), detail),
        (node.created_at, node.review.attempts, &node.refuted),
        reruns,
    ))
}

/// What the settlement of a node rests on: its own result and its parent's.
pub(crate) fn settlement_digest(run: &Run, node: &Node) -> Digest {
    let parent = node.parent.and_then(|parent| run.node(parent));
    let key = |node: &Node| node.commit().map(|commit| commit.runtime_key.clone());
    digest_of(&(
        node.stage.word(),
        node.stage.ending().map(|ending| ending.status().as_str()),
        (node.epoch, node.score(SEED_0), node.seed_0_report()),
        (node.digests(), key(node)),
        parent.map(|parent| (parent.digests(), key(parent))),
    ))
}

/// Some executions of a node: scores complete with components and parts, run times, epochs.
pub(crate) fn scores_digest(node: &Node, execs: impl IntoIterator<Item = ExecName>) -> Digest {
    let scores: Vec<_> = execs
        .into_iter()
        .map(|exec| {
            let rerun = node.reruns.get(&exec);
            let report = rerun.and_then(|rerun| rerun.report());
            (
                exec,
                rerun.and_then(|rerun| rerun.epoch),
                node.score(exec),
                report,
            )
        })
        .collect();
    digest_of(&(node.id, node.epoch, scores))
}

/// Everything that a promotion of the node can rest on.
pub(crate) fn promotion_digest(node: &Node) -> Digest {
    let execs = node.reruns.keys().copied().filter(|exec| exec.is_ranked());
    scores_digest(node, [SEED_0].into_iter().chain(execs))
}

/// Digest of everything that the guard's verdict rests on.
pub(crate) fn sides_digest(run: &Run, sides: [NodeId; 2], execs: &[ExecName]) -> Digest {
    let digest = |node: &Node| scores_digest(node, execs.iter().copied().chain([SEED_0]));
    digest_of(&sides.map(|id| run.node(id).map(digest)))
}

pub(crate) const fn review_word(node: &Node) -> &'static str {
    match node.review.verdict {
        Some(crate::ReviewVerdict::Pass) => "pass",
        Some(crate::ReviewVerdict::Fail) => "fail",
        Some(crate::ReviewVerdict::Error) | None => "none",
    }
}

/// State of the promotion as of a data epoch.
pub(crate) fn promotion_word(node: &Node, epoch: u32) -> &'static str {
    let promotion = &node.promotion;
    match promotion.state {
        PromotionState::Running { .. } => "running",
        PromotionState::Failed { epoch: failed, .. } if failed == epoch => "failed",
        _ if promotion.mean.is_some() => "done",
        _ => "none",
    }
}
