//! Search: draw an operator, find its parent or family, create the node (OPR, SEL, DRF-08); see
//! when search is over, and settle what is left.

use vec_types::{FamilyId, NodeId, Operator, Phase, UnixMs};

use super::seeding::has_room;
use crate::Event;
use crate::inputs::tree_digest;
use crate::select::{Choice, debug_target, improve_parent};
use crate::state::Run;

pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    match run.phase {
        Phase::Search => search(run, at),
        Phase::Settling if run.running.is_empty() && run.promoting.is_none() => {
            phase(Phase::Settling, Phase::Final)
        }
        _ => Vec::new(),
    }
}

fn phase(from: Phase, to: Phase) -> Vec<Event> {
    vec![Event::PhaseChange { from, to }]
}

fn search(run: &Run, at: UnixMs) -> Vec<Event> {
    if at >= run.times.cutoff {
        return phase(Phase::Search, Phase::Settling);
    }
    let may_create = at < run.times.handoff && run.created < run.policy.budget.max_nodes;
    if may_create && has_room(run) {
        let batch = new_node(run);
        if !batch.is_empty() {
            return batch;
        }
    }
    if run.running.is_empty() {
        return phase(Phase::Search, Phase::Settling);
    }
    Vec::new()
}

/// What a draw came to.
enum Origin {
    Child(Choice),
    Draft(FamilyId),
}

/// One batch per node: the draw, its fall-backs, the choice, the node. Empty while nothing can
/// be created; then no random number is used up (OPR-01).
fn new_node(run: &Run) -> Vec<Event> {
    let (node, digest) = (run.next_node(), tree_digest(run));
    let policy = &run.policy;
    let u = run.rng.clone().random();
    let operator = drawn_operator(u, policy.draft_p, policy.debug_p);
    let mut batch = vec![Event::Draw {
        node,
        index: run.draws,
        u,
        draft_p: policy.draft_p,
        debug_p: policy.debug_p,
        tune_p: policy.tune_p,
        operator,
        inputs_digest: digest,
    }];
    let Some((operator, origin)) = origin(run, node, operator, &mut batch) else {
        return Vec::new();
    };
    let (parent, family) = match &origin {
        Origin::Child(choice) => {
            let parent = run.node(choice.parent);
            (Some(choice.parent), parent.and_then(|p| p.family.clone()))
        }
        Origin::Draft(family) => (None, Some(family.clone())),
    };
    batch.push(match origin {
        Origin::Child(choice) => Event::Select {
            node,
            parent: choice.parent,
            reason: choice.reason,
            standings: choice.standings,
            inputs_digest: digest,
        },
        Origin::Draft(family) => Event::DraftPick {
            node,
            family,
            inputs_digest: digest,
        },
    });
    batch.push(Event::NodeCreated {
        node,
        operator,
        parent,
        family,
        seed_program: None,
    });
    batch
}

/// Intervals in the order draft, debug, (tune: empty), improve (OPR-01).
fn drawn_operator(u: f64, draft_p: f64, debug_p: f64) -> Operator {
    if u < draft_p {
        Operator::Draft
    } else if u < draft_p + debug_p {
        Operator::Debug
    } else {
        Operator::Improve
    }
}

/// Draft and debug fall back to improve (OPR-03); improve falls back to a draft only when nothing
/// runs that could bring a parent (O-STP-2).
fn origin(
    run: &Run,
    node: NodeId,
    drawn: Operator,
    batch: &mut Vec<Event>,
) -> Option<(Operator, Origin)> {
    let (found, why) = match drawn {
        Operator::Draft => (
            next_family(run).map(Origin::Draft),
            "the idea library has no family",
        ),
        Operator::Debug => (
            debug_target(run).map(Origin::Child),
            "no failed node can be repaired",
        ),
        Operator::Improve | Operator::Seed => (None, ""),
    };
    if let Some(origin) = found {
        return Some((drawn, origin));
    }
    if drawn != Operator::Improve {
        batch.push(Event::FallbackToImprove {
            node,
            from: drawn,
            why: why.to_owned(),
        });
    }
    if let Some(choice) = improve_parent(run) {
        return Some((Operator::Improve, Origin::Child(choice)));
    }
    if !run.running.is_empty() {
        return None;
    }
    batch.push(Event::FallbackToDraft {
        node,
        from: Operator::Improve,
        why: "no node can be improved and nothing is in work".to_owned(),
    });
    next_family(run).map(|family| (Operator::Draft, Origin::Draft(family)))
}

/// Round robin: the family with the fewest drafts, all attempts counted (DRF-06, DRF-08).
fn next_family(run: &Run) -> Option<FamilyId> {
    let drafts = |family: &FamilyId| run.drafts.get(family).copied().unwrap_or(0);
    // `min_by_key` takes the first among equals: library order.
    let families = run.policy.families.iter();
    families.min_by_key(|family| drafts(family)).cloned()
}
