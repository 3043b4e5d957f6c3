//! Nodes enter and leave the tree: creation, settlement, visits, failure streaks (SEL).

use std::collections::BTreeMap;

use vec_types::{InfraFault, NodeId, NodeStatus, Operator, UnixMs};

use super::Run;
use crate::Event;
use crate::node::{Children, Ending, Node, Promotion, Review, Settled, Stage};

/// Children that must fail in a row before their parent is suspended (SEL-06).
const STREAK_LEN: u32 = 2;

pub(super) fn create(run: &mut Run, at: UnixMs, event: &Event) {
    let Event::NodeCreated {
        node,
        operator,
        parent,
        family,
        seed_program,
    } = event
    else {
        return;
    };
    let seed = run.policy.seed_programs.iter();
    let seed = seed
        .clone()
        .find(|seed| Some(&seed.id) == seed_program.as_ref());
    let created = Node {
        id: *node,
        operator: *operator,
        parent: *parent,
        family: family.clone(),
        seed: seed.cloned(),
        created_at: at,
        stage: match operator {
            Operator::Seed => Stage::Import,
            Operator::Draft | Operator::Debug | Operator::Improve => Stage::Plan,
        },
        visits: 0,
        virtual_visits: 0,
        children: Children::default(),
        review: Review::default(),
        promotion: Promotion::None { generation: 0 },
        reruns: BTreeMap::new(),
        refuted: None,
    };
    run.nodes.push(created);
    run.running.insert(*node);
    run.drawn = None;
    if *operator != Operator::Seed {
        run.created += 1;
    }
    if let (Operator::Draft, Some(family)) = (operator, family) {
        *run.drafts.entry(family.clone()).or_insert(0) += 1;
    }
    if let Some(parent) = parent.and_then(|parent| run.node_mut(parent)) {
        parent.children.running += 1;
        parent.children.live += 1;
        parent.children.debugs += u32::from(*operator == Operator::Debug);
    }
    for_ancestors(run, *parent, |node| node.virtual_visits += 1);
}

fn for_ancestors(run: &mut Run, first: Option<NodeId>, change: impl Fn(&mut Node)) {
    let mut at = first;
    while let Some(node) = at.and_then(|id| run.node_mut(id)) {
        change(node);
        at = node.parent;
    }
}

pub(super) fn settle(run: &mut Run, at: UnixMs, event: &Event) {
    let Event::NodeSettled {
        node: id,
        status,
        no_progress,
        same_as_parent,
        budget_cut,
        detail,
        ..
    } = event
    else {
        return;
    };
    let settled = Settled {
        at,
        no_progress: *no_progress,
        same_as_parent: *same_as_parent,
        budget_cut: *budget_cut,
        detail: detail.clone(),
    };
    let Some(node) = run.node_mut(*id) else {
        return;
    };
    let (parent, operator) = (node.parent, node.operator);
    let dropped = node.due_effect();
    node.stage = match std::mem::replace(&mut node.stage, Stage::Plan) {
        Stage::Analyze { ending } | Stage::Ending { ending } => Stage::Settled { ending, settled },
        stage => Stage::Settled {
            ending: Ending::Shelved {
                fault: if *budget_cut {
                    InfraFault::BudgetCut
                } else {
                    InfraFault::Interrupted
                },
                detail: detail.clone(),
                kept: stage.kept(),
            },
            settled,
        },
    };
    if let Some(effect) = dropped {
        run.in_work.remove(&effect.id());
    }
    run.running.remove(id);
    settle_visits(run, *id, parent, *status);
    if let Some(parent) = parent {
        settle_child(run, parent, operator, *status);
    }
    if !status.is_shelved() {
        suspend(run, parent);
    }
}

/// Virtual visits become real ones, or vanish for a shelved node (SEL-04, O-SEL-6).
fn settle_visits(run: &mut Run, id: NodeId, parent: Option<NodeId>, status: NodeStatus) {
    let real = u64::from(status.is_in_tree());
    for_ancestors(run, parent, |node| {
        node.virtual_visits = node.virtual_visits.saturating_sub(1);
        node.visits += real;
    });
    if let Some(node) = run.node_mut(id) {
        node.visits = real;
    }
}

fn settle_child(run: &mut Run, parent: NodeId, operator: Operator, status: NodeStatus) {
    let counts_gen = run.policy.select.streak_counts_gen;
    let Some(parent) = run.node_mut(parent) else {
        return;
    };
    let children = &mut parent.children;
    children.running = children.running.saturating_sub(1);
    if status.is_shelved() {
        children.live = children.live.saturating_sub(1);
        children.debugs -= u32::from(operator == Operator::Debug).min(children.debugs);
    }
    let is_gen = matches!(status, NodeStatus::GenFailed | NodeStatus::GenEmpty);
    if status.is_candidate_fault() || (is_gen && counts_gen) {
        children.streak += 1;
    } else if status == NodeStatus::Scored {
        children.streak = 0;
        children.debug_scored |= operator == Operator::Debug;
    }
}

/// A new node elsewhere ends every suspension; its own parent is judged anew (SEL-06, O-SEL-3).
fn suspend(run: &mut Run, parent: Option<NodeId>) {
    run.suspended.retain(|node| Some(*node) == parent);
    let Some(parent) = parent.and_then(|id| run.node(id)) else {
        return;
    };
    let (id, is_failing) = (parent.id, parent.children.streak >= STREAK_LEN);
    if is_failing {
        run.suspended.insert(id);
    } else {
        run.suspended.remove(&id);
    }
}
