//! A draft's family: how every family of the library stood.

use std::collections::BTreeSet;

use serde::Serialize;
use vec_search::failure::{self, Coverage};
use vec_search::{Draft as Order, DraftMode, Event, NodeView, Policy, RunState};
use vec_types::{Digest, FamilyId, NodeId, Operator};

/// A choice of a family (DRF).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Draft {
    pub(crate) family: FamilyId,
    pub(crate) mode: DraftMode,
    pub(crate) plateau: bool,
    /// Failed drafts after which coverage passes a family over.
    pub(crate) failed_cap: Option<u32>,
    /// In the order in which drafts go through them.
    pub(crate) families: Vec<FamilyRow>,
}

/// One family of the library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FamilyRow {
    pub(crate) family: FamilyId,
    pub(crate) category: Option<String>,
    /// Drafts that were drawn for it.
    pub(crate) drafts: u32,
    pub(crate) failed: u32,
    pub(crate) scored: u32,
    /// Drafts and seeds that cover it (DRF-04, DRF-11, SED-07).
    pub(crate) covered_by: Vec<NodeId>,
    pub(crate) chosen: bool,
}

impl Draft {
    /// `before` is the state that the choice saw.
    pub(crate) fn of(event: &Event, before: &RunState) -> Option<Self> {
        let Event::DraftPick {
            family,
            mode,
            plateau,
            ..
        } = event
        else {
            return None;
        };
        let policy = before.policy()?;
        let failed_cap = match policy.draft {
            Order::RoundRobin => None,
            Order::CoverageBandit { failed_cap, .. } => Some(failed_cap),
        };
        let order = match policy.draft {
            Order::RoundRobin => policy.families.iter().map(|family| &family.id).collect(),
            Order::CoverageBandit { .. } => before.coverage_order(),
        };
        let seeds = covering_seeds(before, policy);
        let rows = order.into_iter().map(|id| FamilyRow {
            chosen: id == family,
            ..row(id, before, policy, &seeds)
        });
        Some(Self {
            family: family.clone(),
            mode: *mode,
            plateau: *plateau,
            failed_cap,
            families: rows.collect(),
        })
    }
}

fn row(
    family: &FamilyId,
    before: &RunState,
    policy: &Policy,
    seeds: &BTreeSet<(NodeId, &FamilyId)>,
) -> FamilyRow {
    let drafts: Vec<NodeView<'_>> = before
        .nodes()
        .filter(|node| node.operator == Operator::Draft)
        .collect();
    let drawn = || {
        drafts
            .iter()
            .filter(|node| node.drawn_family == Some(family))
    };
    let coverage = |node: &NodeView<'_>| failure::of(node.status).coverage;
    let count = |nodes: usize| u32::try_from(nodes).unwrap_or(u32::MAX);
    let covers = drafts.iter().filter(|node| {
        let is_its = node.drawn_family == Some(family) || node.family == Some(family);
        is_its && coverage(node) == Coverage::Covers
    });
    let seeds = seeds
        .iter()
        .filter(|(_, of)| *of == family)
        .map(|(id, _)| *id);
    let locked = policy.families.iter().find(|locked| locked.id == *family);
    FamilyRow {
        family: family.clone(),
        category: locked.and_then(|locked| locked.category.clone()),
        drafts: count(drawn().count()),
        failed: count(
            drawn()
                .filter(|node| coverage(node) == Coverage::Fails)
                .count(),
        ),
        scored: count(drawn().filter(|node| node.ranking_score.is_some()).count()),
        covered_by: seeds.chain(covers.map(|node| node.id)).collect(),
        chosen: false,
    }
}

/// Scored seeds whose output is not the baseline's (SED-07), with the family that they cover.
fn covering_seeds<'a>(before: &RunState, policy: &'a Policy) -> BTreeSet<(NodeId, &'a FamilyId)> {
    let Some(anchor) = before.baseline().and_then(|id| before.node(id)) else {
        return BTreeSet::new();
    };
    let baseline = output(&anchor, policy);
    let seeds = before
        .nodes()
        .filter(|node| node.operator == Operator::Seed);
    let seeds = seeds.filter(|node| node.ranking_score.is_some());
    let others = seeds.filter(|node| {
        let own = output(node, policy);
        own.is_none() || own != baseline
    });
    others
        .filter_map(|node| {
            let programs = policy.seed_programs.iter();
            let mut own = programs.filter(|seed| Some(&seed.id) == node.seed_program);
            Some((node.id, own.next()?.family.as_ref()?))
        })
        .collect()
}

/// Digests of seed 0 on the objective views; absent unless all are there.
fn output<'a>(node: &NodeView<'a>, policy: &Policy) -> Option<Vec<&'a Digest>> {
    let digests = node.digests?;
    let views = policy.objective_views();
    views.into_iter().map(|view| digests.get(view)).collect()
}
