//! Which events of continuation, carry-over and data epochs may follow.

use vec_types::{NodeId, Phase, ViewId};

use super::{Run, apply_effect};
use crate::node::{SEED_0, Stage};
use crate::resume::carried;
use crate::{CorruptRun, Event, Import, ImportEnd, ReviewVerdict};

pub(super) fn check(run: &Run, event: &Event) -> Result<(), CorruptRun> {
    match event {
        Event::Imported { node, import } => imported(run, event, *node, import),
        Event::EpochAdvance { epoch, .. } => epoch_advance(run, *epoch),
        Event::ResumePick {
            node,
            carried: source,
            work,
            ..
        } => {
            let fits = run.node(*source).and_then(carried).map(|(own, _)| own) == Some(work);
            let is_free = run.drawn.is_none() && *node == run.next_node();
            let why = "no such carried-over work, or it was taken up before";
            in_phase(run, event, run.phase == Phase::Search)?;
            holds(
                event,
                *source,
                fits && is_free && !run.works.contains(work),
                why,
            )
        }
        Event::ResumeRefused { node, work, .. } => {
            let fits = run.node(*node).and_then(carried).map(|(own, _)| own) == Some(work);
            let why = "no such carried-over work, or it was decided before";
            holds(event, *node, fits && !run.works.contains(work), why)
        }
        Event::RescoreStart { node } => {
            let stage = run.node(*node).map(|node| &node.stage);
            let waits = matches!(stage, Some(Stage::Waiting { cut: false, .. }));
            in_phase(run, event, run.phase == Phase::Seeding)?;
            holds(event, *node, waits, "it does not wait to be scored again")
        }
        Event::RescoreCut { node, .. } => {
            let is_tried = run.node(*node).is_some_and(|found| !found.is_own());
            let fits = is_tried && run.running.contains(node);
            holds(event, *node, fits, "it is not being scored again")
        }
        _ => Ok(()),
    }
}

fn in_phase(run: &Run, event: &Event, fits: bool) -> Result<(), CorruptRun> {
    if fits {
        return Ok(());
    }
    Err(CorruptRun::WrongPhase {
        kind: event.kind(),
        phase: run.phase,
    })
}

fn holds(event: &Event, node: NodeId, fits: bool, why: &str) -> Result<(), CorruptRun> {
    if fits {
        return Ok(());
    }
    Err(CorruptRun::Import {
        kind: event.kind(),
        node,
        why: why.to_owned(),
    })
}

/// One after another, and nothing is mounted any more once final selection has begun (EPO-03).
fn epoch_advance(run: &Run, found: u32) -> Result<(), CorruptRun> {
    let expected = run.epoch.saturating_add(1);
    if run.phase == Phase::Final {
        return Err(CorruptRun::WrongPhase {
            kind: "epoch_advance".to_owned(),
            phase: run.phase,
        });
    }
    if found == expected {
        return Ok(());
    }
    Err(CorruptRun::Epoch { expected, found })
}

fn imported(run: &Run, event: &Event, node: NodeId, import: &Import) -> Result<(), CorruptRun> {
    let expected = run.next_node();
    let imports = usize::try_from(run.policy.continuation.imports).unwrap_or(usize::MAX);
    in_phase(run, event, run.phase == Phase::Launching)?;
    if node != expected {
        return Err(CorruptRun::NodeOrder {
            kind: event.kind(),
            expected,
            found: node,
        });
    }
    let why = problem(run, import);
    let why = why.or_else(|| {
        let is_full = run.nodes.len() >= imports;
        is_full.then(|| format!("the lock names {imports} imports"))
    });
    holds(
        event,
        node,
        why.is_none(),
        why.as_deref().unwrap_or_default(),
    )
}

fn problem(run: &Run, import: &Import) -> Option<String> {
    let has_parent = |parent| run.node(parent).is_some();
    if import.parent.is_some_and(|parent| !has_parent(parent)) {
        return Some("its parent is not imported before it".to_owned());
    }
    if import.review == Some(ReviewVerdict::Error) {
        return Some("a review that gave an error is no verdict".to_owned());
    }
    let ImportEnd::Scored {
        digests, scores, ..
    } = &import.end
    else {
        return None;
    };
    let missing = |view: &&ViewId| !digests.contains_key(*view);
    if let Some(view) = run.views.iter().find(missing) {
        return Some(format!("no digest of view {view}"));
    }
    if !scores.contains_key(&SEED_0) {
        return Some("no score of seed 0".to_owned());
    }
    let objective = &run.policy.objective;
    scores
        .values()
        .find_map(|score| apply_effect::missing_component(score, objective))
}
