//! Seeding: every seed program becomes a node, is executed and scored; without a scored baseline
//! the run is worthless and stops (SED-04, SED-06).

use vec_types::{Operator, Phase, SeedState, StopReason, UnixMs};

use super::rescore;
use crate::failure::SeedRule;
use crate::node::Node;
use crate::retry::Retry;
use crate::state::Run;
use crate::{Event, SEED_ATTEMPTS_MAX, SeedProgram};

pub(super) fn advance(run: &Run, at: UnixMs) -> Vec<Event> {
    if run.phase != Phase::Seeding {
        return Vec::new();
    }
    let dead = dead_anchor(run, at);
    if dead.is_none()
        && at < run.times.cutoff
        && has_room(run)
        && let Some(seed) = next_seed(run, at)
    {
        return vec![created(run, seed)];
    }
    if dead.is_none()
        && let Some(event) = rescore::next(run, at)
    {
        return vec![event];
    }
    match dead {
        _ if rescore::is_due(run, at) && dead.is_none() => Vec::new(),
        _ if !run.running.is_empty() => Vec::new(),
        // One that is only paused.
        None if at < run.times.cutoff && untried(run).next().is_some() => Vec::new(),
        Some(detail) => super::end::stop(run, StopReason::Infra, detail),
        None => vec![Event::PhaseChange {
            from: Phase::Seeding,
            to: Phase::Search,
        }],
    }
}

pub(super) fn has_room(run: &Run) -> bool {
    let limit = usize::try_from(run.policy.concurrency_nodes).unwrap_or(usize::MAX);
    run.running.len() < limit
}

/// Nodes of a seed program so far.
pub(crate) fn tried(run: &Run, seed: &SeedProgram) -> u32 {
    u32::try_from(attempts(run, seed).count()).unwrap_or(u32::MAX)
}

fn attempts<'a>(run: &'a Run, seed: &'a SeedProgram) -> impl Iterator<Item = &'a Node> {
    run.nodes.iter().filter(move |node| {
        node.is_own() && node.seed.as_ref().is_some_and(|own| own.id == seed.id)
    })
}

/// A seed program without a node, or whose last node was shelved through no fault of its own; a
/// run must not die of one interrupted scoring call.
fn may_be_tried(run: &Run, seed: &SeedProgram) -> bool {
    let last_is_shelved = attempts(run, seed)
        .last()
        .is_none_or(|node| node.settled().is_some() && is_tried_again(node));
    tried(run, seed) < SEED_ATTEMPTS_MAX && last_is_shelved
}

fn is_tried_again(node: &Node) -> bool {
    node.consequence().seed_program == SeedRule::TriedAgain
}

fn untried(run: &Run) -> impl Iterator<Item = &SeedProgram> {
    let seeds = run.policy.seed_programs.iter();
    seeds.filter(|seed| may_be_tried(run, seed))
}

fn next_seed(run: &Run, at: UnixMs) -> Option<&SeedProgram> {
    let is_paused = |node: &Node| run.is_paused(node.id, Retry::Run, at);
    untried(run).find(|seed| !attempts(run, seed).last().is_some_and(is_paused))
}

fn created(run: &Run, seed: &SeedProgram) -> Event {
    Event::NodeCreated {
        node: run.next_node(),
        operator: Operator::Seed,
        parent: None,
        family: seed.family.clone(),
        seed_program: Some(seed.id.clone()),
    }
}

/// Why the baseline will never be scored, once that is certain.
fn dead_anchor(run: &Run, at: UnixMs) -> Option<String> {
    let seeds = &run.policy.seed_programs;
    let seed = seeds.iter().find(|seed| seed.state == SeedState::Anchor)?;
    let may_retry = at < run.times.cutoff && may_be_tried(run, seed);
    let Some(node) = attempts(run, seed).last() else {
        return (!may_retry).then(|| {
            format!(
                "the baseline {} was not executed before the end of search: \
                 a run without baseline is worthless",
                seed.id
            )
        });
    };
    let is_dead = node.settled().is_some() && node.consequence().seed_program != SeedRule::Done;
    (is_dead && !may_retry).then(|| {
        let detail = node.settled().map_or("", |settled| &*settled.detail);
        format!(
            "the baseline {} (node {}) ended as {}: {detail}; a run without baseline is worthless",
            seed.id,
            node.id,
            node.status().as_str()
        )
    })
}
