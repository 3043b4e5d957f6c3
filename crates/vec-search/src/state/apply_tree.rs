//! Nodes enter and leave the tree: creation, settlement, visits, failure streaks (SEL). What an
//! outcome changes stands in the failure table ([`crate::failure`]); this applies it.

use vec_types::{InfraFault, NodeId, NodeStatus, Operator, UnixMs};

use super::Run;
use crate::Event;
use crate::decide::seeding;
use crate::failure::{Consequence, SeedRule, Streak};
use crate::node::{
    Build, Children, Ended, Ending, Engineered, Facts, Node, PackedPlan, Review, Settled, Stage,
};
use crate::planted::{self, Bug};
use crate::retry::Retry;
use crate::{CarriedKind, MethodState};

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
    let mut seeds = run.policy.seed_programs.iter();
    let seed = seeds.find(|seed| Some(&seed.id) == seed_program.as_ref());
    let rare = Facts {
        seed: seed.cloned(),
        ..Facts::default()
    };
    let family = run.names.family(family.as_ref());
    let created = Node {
        id: *node,
        operator: *operator,
        parent: *parent,
        drawn_family: family.clone().filter(|_| *operator == Operator::Draft),
        family,
        created_at: at,
        stage: first_stage(run, *operator),
        epoch: run.epoch,
        is_executed: false,
        longest_view_ms: 0,
        visits: 0,
        virtual_visits: 0,
        children: Children::default(),
        review: Review::default(),
        rare: rare.into(),
    };
    run.running.insert(*node);
    run.drawn = None;
    run.created += u32::from(*operator != Operator::Seed);
    enter(run, created);
    if let Some(parent) = parent.and_then(|parent| run.node_mut(parent)) {
        parent.children.running.add(*operator);
    }
    for_ancestors(run, *parent, |node| node.virtual_visits += 1);
}

/// Carried-over work goes on where it stopped (CAR-19, CAR-21); everything else begins.
fn first_stage(run: &Run, operator: Operator) -> Stage {
    let carried = run.drawn.as_ref().and_then(|drawn| drawn.carried);
    let past = carried.and_then(|id| run.node(id)?.past.as_ref()?.carried.as_ref());
    match past.map(|(_, kind)| kind) {
        _ if operator == Operator::Seed => Stage::Import,
        Some(CarriedKind::Engineer { plan }) => Stage::Engineer {
            plan: PackedPlan::new(plan),
        },
        Some(CarriedKind::Execution { plan, session }) => match &session.commit {
            Some(_) if session.method != MethodState::Missing => Stage::Execute {
                build: Build::Engineered(Box::new(Engineered {
                    plan: PackedPlan::new(plan),
                    session: session.clone(),
                })),
            },
            _ => Stage::Engineer {
                plan: PackedPlan::new(plan),
            },
        },
        None => Stage::Plan,
    }
}

/// Puts a node in the list; one that is settled already, an import, takes effect at once.
pub(super) fn enter(run: &mut Run, node: Node) {
    let (id, is_settled) = (node.id, node.settled().is_some());
    run.index.created(&node);
    make_room(&mut run.nodes);
    run.nodes.push(node);
    if is_settled {
        take_effect(run, id);
    }
}

/// An eighth at a time: doubling would leave up to half of the room unused.
fn make_room(nodes: &mut Vec<Node>) {
    if nodes.len() == nodes.capacity() {
        nodes.reserve_exact(nodes.len() / 8 + 16);
    }
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
        no_progress,
        same_as_parent,
        budget_cut,
        epoch,
        detail,
        ..
    } = event
    else {
        return;
    };
    let settled = Settled {
        at,
        order: run.index.settled,
        no_progress: *no_progress,
        same_as_parent: *same_as_parent,
        budget_cut: *budget_cut,
        detail: detail.as_str().into(),
    };
    let Some(node) = run.node_mut(*id) else {
        return;
    };
    node.epoch = *epoch;
    let dropped = node.due_effect();
    node.stage = match std::mem::replace(&mut node.stage, Stage::Plan) {
        Stage::Analyze { ending } | Stage::Ending { ending } => Stage::Settled { ending, settled },
        stage => Stage::Settled {
            ending: cut(stage, *budget_cut, detail),
            settled,
        },
    };
    if let Some(effect) = dropped {
        run.in_work.remove(&effect.id());
    }
    run.running.remove(id);
    leave_work(run, *id);
    take_effect(run, *id);
    pause_seed(run, *id, at);
}

/// A seed program that was shelved is tried again, but not at once.
fn pause_seed(run: &mut Run, id: NodeId, at: UnixMs) {
    let Some(node) = run.node(id) else { return };
    if node.consequence().seed_program != SeedRule::TriedAgain {
        return;
    }
    if let Some(seed) = &node.seed {
        let tried = seeding::tried(run, seed);
        run.pause(id, Retry::Run, at, tried);
    }
}

fn cut(stage: Stage, budget_cut: bool, detail: &str) -> Ending {
    Ending::Shelved {
        fault: if budget_cut {
            InfraFault::BudgetCut
        } else {
            InfraFault::Interrupted
        },
        ended: Box::new(Ended {
            detail: detail.to_owned(),
            kept: stage.kept(),
        }),
    }
}

/// The virtual visits of a node in work vanish (SEL-04). Re-scored imports never had any.
fn leave_work(run: &mut Run, id: NodeId) {
    let Some(node) = run.node(id).filter(|node| node.is_own()) else {
        return;
    };
    let (parent, operator) = (node.parent, node.operator);
    if let Some(parent) = parent.and_then(|parent| run.node_mut(parent)) {
        parent.children.running.remove(operator);
    }
    if !planted::is(Bug::VirtualVisitKept) {
        for_ancestors(run, parent, |node| {
            node.virtual_visits = node.virtual_visits.saturating_sub(1);
        });
    }
}

/// What the failure table says about the outcome of a settled node.
fn take_effect(run: &mut Run, id: NodeId) {
    run.index.settled += 1;
    let Some(node) = run.node(id) else { return };
    let (parent, operator, row) = (node.parent, node.operator, node.consequence());
    if row.visit || planted::is(Bug::ShelvedVisits) {
        for_ancestors(run, Some(id), |node| node.visits += 1);
    }
    if let Some(parent) = parent {
        end_child(run, parent, operator, row);
    }
    if row.competes {
        let Run {
            nodes,
            index,
            views,
            ..
        } = run;
        let position = usize::try_from(id.0).ok();
        if let Some(node) = position.and_then(|position| nodes.get(position)) {
            index.scored(node, views);
        }
    }
    if row.lifts_suspensions {
        suspend(run, parent);
    }
}

fn end_child(run: &mut Run, parent: NodeId, operator: Operator, row: Consequence) {
    let counts_gen = run.policy.select.streak_counts_gen;
    let Some(parent) = run.node_mut(parent) else {
        return;
    };
    let children = &mut parent.children;
    children.ended.all += u32::from(row.child_cap);
    children.ended.improves += u32::from(row.serves_reserve && operator == Operator::Improve);
    children.ended.debugs += u32::from(row.debug_attempt && operator == Operator::Debug);
    if row.extends_streak(counts_gen) {
        children.streak += 1;
    } else if row.streak == Streak::Resets {
        children.streak = 0;
        children.debug_scored |= operator == Operator::Debug;
    }
}

/// A new node elsewhere ends every suspension; its own parent is judged anew (SEL-06, O-SEL-3).
fn suspend(run: &mut Run, parent: Option<NodeId>) {
    if !planted::is(Bug::SuspensionNeverEnds) {
        run.suspended.retain(|node| Some(*node) == parent);
    }
    let mut len = run.policy.select.streak_len;
    if planted::is(Bug::StreakOffByOne) {
        len += 1;
    }
    let Some(parent) = parent.and_then(|id| run.node(id)) else {
        return;
    };
    let (id, is_failing) = (parent.id, len > 0 && parent.children.streak >= len);
    if is_failing {
        run.suspended.insert(id);
    } else {
        run.suspended.remove(&id);
    }
}

/// The status that a settlement must carry.
pub(super) fn expected_status(node: &Node) -> NodeStatus {
    match &node.stage {
        Stage::Analyze { ending } | Stage::Ending { ending } => ending.status(),
        _ => NodeStatus::Interrupted,
    }
}
