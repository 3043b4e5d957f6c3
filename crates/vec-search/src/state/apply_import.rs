//! What comes over from earlier runs: imported nodes, re-scoring, carried-over work (CON, CAR).

use std::collections::BTreeMap;

use vec_types::{ExecName, NodeId, NodeStatus, Operator, ScoreReport, UnixMs};

use super::{Drawn, Run, apply_tree};
use crate::identity::{past_rerun, unknown_report};
use crate::node::{
    Build, Ending, Kept, Mean, Node, Origin, Past, Promotion, Review, SEED_0, Settled, Stage,
};
use crate::{CommitInfo, Event, Import, ImportEnd, SeedProgram};

/// Imported scores belong to the first data epoch: they are comparable, so the data is the same.
const PAST_EPOCH: u32 = 0;

pub(super) fn import(run: &mut Run, at: UnixMs, import: &Import) {
    let id = run.next_node();
    let mut node = blank(id, at, import);
    node.stage = stage(import, at, run.index.settled);
    if let ImportEnd::Scored { scores, mean, .. } = &import.end {
        let further = scores.iter().filter(|(exec, _)| **exec != SEED_0);
        node.reruns = further
            .map(|(exec, score)| (*exec, past_rerun(score.clone(), PAST_EPOCH)))
            .collect();
        node.promotion.mean = mean.map(|score| Mean {
            score,
            epoch: PAST_EPOCH,
        });
    }
    run.works.extend(import.resumed.clone());
    apply_tree::enter(run, node);
}

fn blank(id: NodeId, at: UnixMs, import: &Import) -> Node {
    let seed = import.seed_program.as_ref();
    let (ranking, carried) = match &import.end {
        ImportEnd::Unscored { ranking, .. } => (Some(*ranking), None),
        ImportEnd::CarriedOver { work, kind } => (None, Some((work.clone(), (**kind).clone()))),
        _ => (None, None),
    };
    Node {
        id,
        operator: import.operator,
        parent: import.parent,
        family: import.family.clone(),
        drawn_family: import.drawn_family.clone(),
        seed: seed.map(|(id, state)| SeedProgram {
            id: id.clone(),
            state: *state,
            family: import.family.clone(),
        }),
        past: Some(Box::new(Past {
            origin: import.origin.clone(),
            method_auto: import.method_auto,
            view_dependent: import.view_dependent,
            ranking,
            carried,
        })),
        created_at: at,
        stage: Stage::Plan,
        epoch: PAST_EPOCH,
        is_executed: false,
        visits: 0,
        virtual_visits: 0,
        children: crate::node::Children::default(),
        review: Review {
            attempts: u32::from(import.review.is_some()),
            verdict: import.review,
        },
        promotion: Promotion::default(),
        reruns: BTreeMap::new(),
        refuted: import.refuted.clone(),
    }
}

fn stage(import: &Import, at: UnixMs, order: u32) -> Stage {
    let past = |status, commit: Option<&CommitInfo>| Ending::Past {
        status,
        kept: Kept {
            commit: commit.cloned(),
            ..Kept::default()
        },
    };
    let ending = match &import.end {
        ImportEnd::Unscored { commit, .. } => {
            return Stage::Waiting {
                build: build(commit),
                cut: false,
            };
        }
        ImportEnd::Scored {
            commit,
            digests,
            scores,
            ..
        } => match seed_0(scores) {
            Some(score) => Ending::Scored {
                build: build(commit),
                exec: unknown_report(digests.clone()),
                score: score.clone(),
            },
            None => past(NodeStatus::HistoryOnly, Some(commit)),
        },
        ImportEnd::Faulty { commit, .. } => past(import.end.status(), Some(commit)),
        ImportEnd::GenFailed | ImportEnd::GenEmpty | ImportEnd::CarriedOver { .. } => {
            past(import.end.status(), None)
        }
    };
    Stage::Settled {
        ending,
        settled: Settled {
            at,
            order,
            no_progress: import.no_progress,
            same_as_parent: import.same_as_parent,
            budget_cut: false,
            detail: String::new(),
        },
    }
}

fn seed_0(scores: &BTreeMap<ExecName, ScoreReport>) -> Option<&ScoreReport> {
    scores.get(&SEED_0)
}

fn build(commit: &CommitInfo) -> Build {
    Build {
        origin: Origin::Past,
        commit: commit.clone(),
    }
}

/// Incomparable imports beyond the best `rescore_top_k` become history once all are in (CON-02).
pub(super) fn close_imports(run: &mut Run) {
    let top_k = run.policy.continuation.rescore_top_k;
    for id in crate::decide::rescore::history(&run.nodes, top_k) {
        let order = run.index.settled;
        run.index.settled += 1;
        if let Some(node) = run.node_mut(id) {
            let kept = std::mem::replace(&mut node.stage, Stage::Plan).kept();
            node.stage = Stage::Settled {
                ending: Ending::Past {
                    status: NodeStatus::HistoryOnly,
                    kept,
                },
                settled: Settled {
                    at: node.created_at,
                    order,
                    no_progress: false,
                    same_as_parent: false,
                    budget_cut: false,
                    detail: String::new(),
                },
            };
        }
    }
}

pub(super) fn rescore_start(run: &mut Run, id: NodeId) {
    let Some(node) = run.node_mut(id) else { return };
    if let Stage::Waiting { build, .. } = &node.stage {
        let build = build.clone();
        node.stage = Stage::Execute { build };
        run.running.insert(id);
    }
}

pub(super) fn rescore_cut(run: &mut Run, id: NodeId) {
    let Some(node) = run.node_mut(id) else { return };
    let dropped = node.due_effect();
    if let Some(build) = node.commit().map(build) {
        node.stage = Stage::Waiting { build, cut: true };
    }
    if let Some(effect) = dropped {
        run.in_work.remove(&effect.id());
    }
    run.running.remove(&id);
}

pub(super) fn resume_pick(run: &mut Run, event: &Event) {
    let Event::ResumePick {
        node,
        carried,
        work,
        ..
    } = event
    else {
        return;
    };
    let source = run.node(*carried);
    run.drawn = Some(Drawn {
        node: *node,
        operator: Operator::Resume,
        parent: source.and_then(|source| source.parent),
        family: source.and_then(|source| source.family.clone()),
        carried: Some(*carried),
    });
    run.works.insert(work.clone());
    run.resumes_taken += 1;
}
