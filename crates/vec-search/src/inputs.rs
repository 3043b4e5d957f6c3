//! `inputs_digest` of decision events: what a decision saw, hashed, so that a changed score, visit
//! or status shows at replay even where the decision itself would be the same.

use serde::Serialize;
use vec_types::{Digest, ExecName, Hasher, NodeId, Score, canonical_json};

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
        row.extend(number.to_le_bytes());
    }
    row.extend(run.draws.to_le_bytes());
    row.push(u8::from(run.plateau));
    row.extend(run.unkept.as_bytes());
    row.extend(run.reserve_ms.to_le_bytes());
    for text in &run.epoch_data {
        text_to(row, text);
    }
    for work in &run.works {
        text_to(row, &work.to_string());
    }
}

/// About 100 bytes; every field has a fixed width or its length in front.
fn node_row(run: &Run, node: &Node, row: &mut Vec<u8>) {
    let score = |score: Option<Score>| score.map_or(u64::MAX, |score| score.get().to_bits());
    let seed_0 = node.score(SEED_0).map(|score| score.total);
    let settled = node.settled();
    let parent = node.parent.map_or(u32::MAX, |id| id.0);
    let order = settled.map_or(u32::MAX, |settled| settled.order);
    for number in [node.id.0, parent, node.rank_epoch(), node.epoch, order] {
        row.extend(number.to_le_bytes());
    }
    for number in [
        score(node.ranking_score()),
        score(seed_0),
        node.visits.into(),
        node.virtual_visits.into(),
    ] {
        row.extend(number.to_le_bytes());
    }
    let (running, ended) = (node.children.running, node.children.ended);
    let counts = [
        running.all,
        running.improves,
        running.debugs,
        ended.all,
        ended.improves,
    ];
    for number in counts
        .into_iter()
        .chain([ended.debugs, node.children.streak])
    {
        row.extend(number.to_le_bytes());
    }
    row.extend(node.promotion.generation.to_le_bytes());
    row.extend(node.view.attempts.to_le_bytes());
    row.extend(node.view.cuts.to_le_bytes());
    let flags = [
        node.children.debug_scored,
        run.suspended.contains(&node.id),
        settled.is_some_and(|settled| settled.no_progress),
        settled.is_some_and(|settled| settled.same_as_parent),
        node.is_method_auto(),
        node.is_view_dependent(),
        node.view.is_fit(),
        node.refuted.is_some(),
    ];
    row.extend(flags.map(u8::from));
    let words = [
        node.status().as_str(),
        node.operator.as_str(),
        review_word(node),
        promotion_word(node, run.epoch),
    ];
    for word in words {
        text_to(row, word);
    }
    for family in [&node.family, &node.drawn_family] {
        text_to(row, family.as_ref().map_or("", |family| family.as_str()));
    }
}

// The length in front keeps neighbours apart; names have at most 96 bytes (`vec_types` ids).
fn text_to(row: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    row.extend(length.to_le_bytes());
    row.extend(text.as_bytes());
}

/// Everything that the run knows but for times, complete with rules, origins and parts: what
/// `stop` rests on, so that no stored result can change unnoticed. Times differ between two equal
/// runs, and reruns at one node promise equal bytes (architecture §3).
pub(crate) fn run_digest(run: &Run) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(tree_digest(run).as_bytes());
    hasher.update(digest_of(&run.policy).as_bytes());
    for node in &run.nodes {
        hasher.update(node_digest(node).as_bytes());
    }
    if let Some(finale) = &run.finale {
        let placed: Vec<_> = finale.placed.iter().collect();
        hasher.update(digest_of(&placed).as_bytes());
    }
    hasher.finish()
}

fn node_digest(node: &Node) -> Digest {
    let reruns: Vec<_> = node
        .reruns
        .iter()
        .map(|(exec, rerun)| {
            let result = rerun.report().map(|report| &report.result);
            (exec, rerun.epoch, result, rerun.score(), rerun.failure())
        })
        .collect();
    let result = node.seed_0_report().map(|report| &report.result);
    // A commit's own id has its time in it.
    let trees = node
        .commit()
        .map(|commit| (&commit.tree, &commit.runtime_key));
    let session = node.session();
    let session = session.map(|session| {
        let (end, has_run_py) = (session.end, session.has_run_py);
        (end, &session.method, has_run_py, session.queries_used)
    });
    digest_of(&(
        (trees, node.plan(), session),
        (result, node.score(SEED_0)),
        node.stage.ending().map(|ending| ending.detail()),
        (node.review.attempts, &node.refuted),
        (reruns, &node.seed, past(node)),
        (node.ablation, node.view.outcome()),
    ))
}

/// What an import brought along.
fn past(node: &Node) -> impl Serialize + '_ {
    let past = node.past.as_ref();
    past.map(|past| (&past.origin, past.ranking, &past.carried))
}

/// What the settlement of a node rests on: its own result and its parent's.
pub(crate) fn settlement_digest(run: &Run, node: &Node) -> Digest {
    let parent = node.parent.and_then(|parent| run.node(parent));
    let key = |node: &Node| node.commit().map(|commit| commit.runtime_key.clone());
    digest_of(&(
        node.stage.word(),
        node.stage.ending().map(|ending| ending.status().as_str()),
        (node.epoch, node.score(SEED_0)),
        (node.digests(), key(node)),
        parent.map(|parent| (parent.digests(), key(parent))),
    ))
}

/// Some executions of a node: scores complete with components and parts, outputs, epochs.
pub(crate) fn scores_digest(node: &Node, execs: impl IntoIterator<Item = ExecName>) -> Digest {
    let scores: Vec<_> = execs
        .into_iter()
        .map(|exec| {
            let rerun = node.reruns.get(&exec);
            let result = rerun.and_then(|rerun| Some(&rerun.report()?.result));
            let epoch = rerun.and_then(|rerun| rerun.epoch);
            (exec, epoch, node.score(exec), result)
        })
        .collect();
    digest_of(&(node.id, node.epoch, scores))
}

/// Everything that a check of the node rests on: seed 0 and the executions of its checks.
pub(crate) fn checks_digest(node: &Node) -> Digest {
    let is_check = |exec: &ExecName| {
        matches!(
            exec,
            ExecName::Ablate | ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. }
        )
    };
    let execs = node.reruns.keys().copied().filter(is_check);
    digest_of(&(node.digests(), scores_digest(node, execs)))
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
