//! What comes over from earlier runs: imported nodes, re-scoring, carried-over work (CON, CAR).

use std::collections::BTreeMap;

use vec_types::{ExecName, NodeId, NodeStatus, Operator, ScoreReport, Table, UnixMs};

use super::names::Names;
use super::{Drawn, Run, apply_tree};
use crate::identity::{past_rerun, unknown_report};
use crate::inputs::digest_of;
use crate::node::{
    Build, Ending, Facts, Kept, Mean, Node, Past, Review, SEED_0, Scored, Settled, Stage,
};
use crate::{CommitInfo, Event, Import, ImportEnd, SeedProgram};

/// Imported scores belong to the first data epoch: they are comparable, so the data is the same.
const PAST_EPOCH: u32 = 0;

pub(super) fn import(run: &mut Run, at: UnixMs, import: &Import) {
    let id = run.next_node();
    let order = run.index.settled;
    let mut node = blank(id, at, import, &mut run.names);
    node.stage = stage(import, at, order, &mut run.names);
    if let ImportEnd::Scored { scores, mean, .. } = &import.end {
        let further = scores.iter().filter(|(exec, _)| **exec != SEED_0);
        for (exec, score) in further {
            let report = run.names.exec(&unknown_report(Table::new()));
            let rerun = past_rerun(report, run.names.score(score), PAST_EPOCH);
            node.reruns.insert(*exec, rerun);
        }
        if let Some(score) = *mean {
            let epoch = PAST_EPOCH;
            node.promotion.mean = Some(Mean { score, epoch });
        }
    }
    if let ImportEnd::Unscored { .. } = &import.end {
        let flags = (import.no_progress, import.same_as_parent);
        run.unkept = digest_of(&(run.unkept, id, flags));
    }
    run.works.extend(import.resumed.clone());
    apply_tree::enter(run, node);
}

fn blank(id: NodeId, at: UnixMs, import: &Import, names: &mut Names) -> Node {
    let family = names.family(import.family.as_ref());
    let seed = import.seed_program.as_ref();
    let (ranking, carried) = match &import.end {
        ImportEnd::Unscored { ranking, .. } => (Some(*ranking), None),
        ImportEnd::CarriedOver { work, kind } => (None, Some((work.clone(), (**kind).clone()))),
        _ => (None, None),
    };
    let rare = Facts {
        seed: seed.map(|(id, state)| SeedProgram {
            id: id.clone(),
            state: *state,
            family: family.clone(),
        }),
        past: Some(Box::new(Past {
            origin: import.origin.clone(),
            method_auto: import.method_auto,
            view_dependent: import.view_dependent,
            ranking,
            carried,
        })),
        refuted: import.refuted.clone(),
        ..Facts::default()
    };
    Node {
        id,
        operator: import.operator,
        parent: import.parent,
        family,
        drawn_family: names.family(import.drawn_family.as_ref()),
        created_at: at,
        stage: Stage::Plan,
        epoch: PAST_EPOCH,
        is_executed: false,
        longest_view_ms: 0,
        visits: 0,
        virtual_visits: 0,
        children: crate::node::Children::default(),
        review: Review {
            attempts: u32::from(import.review.is_some()),
            verdict: import.review,
        },
        rare: rare.into(),
    }
}

fn stage(import: &Import, at: UnixMs, order: u32, names: &mut Names) -> Stage {
    let past = |status, commit: Option<&CommitInfo>| Ending::Past {
        status,
        kept: Box::new(commit.map_or(Kept::Nothing, |commit| {
            Kept::Commit(Box::new(commit.clone()))
        })),
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
            Some(score) => Ending::Scored(Box::new(Scored {
                build: build(commit),
                exec: names.exec(&unknown_report(digests.clone())),
                score: names.score(score),
            })),
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
            detail: Box::default(),
        },
    }
}

fn seed_0(scores: &BTreeMap<ExecName, ScoreReport>) -> Option<&ScoreReport> {
    scores.get(&SEED_0)
}

fn build(commit: &CommitInfo) -> Build {
    Build::Past(Box::new(commit.clone()))
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
                    kept: Box::new(kept),
                },
                settled: Settled {
                    at: node.created_at,
                    order,
                    no_progress: false,
                    same_as_parent: false,
                    budget_cut: false,
                    detail: Box::default(),
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
