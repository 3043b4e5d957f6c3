//! `inputs_digest` of decision events: what a decision saw, hashed, so that a changed score, visit
//! or status shows at replay even where the decision itself would be the same.

use serde::Serialize;
use vec_types::{Digest, ExecName, NodeId, canonical_json};

use crate::node::{Node, Promotion};
use crate::state::Run;

/// Digest of any inputs. Inputs are plain data below 2^53, so they always have a JSON form.
pub(crate) fn digest_of<T: Serialize + ?Sized>(inputs: &T) -> Digest {
    canonical_json(inputs).map_or(Digest::ZERO, |bytes| Digest::of(&bytes))
}

#[derive(Serialize)]
struct TreeRow<'a> {
    node: NodeId,
    status: &'static str,
    score: Option<f64>,
    visits: [u64; 2],
    children: [u32; 3],
    suspended: bool,
    review: &'static str,
    promotion: &'static str,
    family: Option<&'a str>,
}

/// Everything that parent selection, draws and rankings look at.
pub(crate) fn tree_digest(run: &Run) -> Digest {
    let rows: Vec<TreeRow<'_>> = run
        .nodes
        .iter()
        .map(|node| TreeRow {
            node: node.id,
            status: node.status().as_str(),
            score: node.ranking_score().map(f64::from),
            visits: [node.visits, node.virtual_visits],
            children: [
                node.children.running,
                node.children.live,
                node.children.debugs,
            ],
            suspended: run.suspended.contains(&node.id),
            review: review_word(node),
            promotion: promotion_word(node),
            family: node.family.as_ref().map(vec_types::FamilyId::as_str),
        })
        .collect();
    digest_of(&rows)
}

/// What the settlement of a node rests on: its own result and its parent's.
pub(crate) fn settlement_digest(run: &Run, node: &Node) -> Digest {
    let parent = node.parent.and_then(|parent| run.node(parent));
    let key = |node: &Node| node.commit().map(|commit| commit.runtime_key.clone());
    digest_of(&(
        node.stage.word(),
        node.stage.ending().map(|ending| ending.status().as_str()),
        node.score(crate::node::SEED_0),
        (node.digests(), key(node)),
        parent.map(|parent| (parent.digests(), key(parent))),
    ))
}

/// Scores of some executions of a node, complete with components and parts.
pub(crate) fn scores_digest(node: &Node, execs: impl IntoIterator<Item = ExecName>) -> Digest {
    let scores: Vec<_> = execs
        .into_iter()
        .map(|exec| (exec, node.score(exec)))
        .collect();
    digest_of(&(node.id, scores))
}

pub(crate) const fn review_word(node: &Node) -> &'static str {
    match node.review.verdict {
        Some(crate::ReviewVerdict::Pass) => "pass",
        Some(crate::ReviewVerdict::Fail) => "fail",
        Some(crate::ReviewVerdict::Error) | None => "none",
    }
}

pub(crate) const fn promotion_word(node: &Node) -> &'static str {
    match node.promotion {
        Promotion::None { .. } => "none",
        Promotion::Running { .. } => "running",
        Promotion::Done { .. } => "done",
        Promotion::Failed { .. } => "failed",
    }
}
