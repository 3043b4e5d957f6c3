//! Decisions: an ordered list of pure rules over the folded state. The first rule that has
//! something to say gives the next batch; the driver applies it and asks again.
//!
//! Order matters and is the policy: ends first, then work in flight, then new work.

mod checks;
mod creation;
mod end;
mod finale;
mod guarding;
pub(crate) mod patience;
mod pipeline;
mod promotion;
pub(crate) mod rescore;
pub(crate) mod reserve;
mod review;
mod search;
pub(crate) mod seeding;

use vec_types::{NodeId, Phase, UnixMs};

use crate::node::Rerun;
use crate::state::Run;
use crate::{Effect, Event};

type Rule = fn(&Run, UnixMs) -> Vec<Event>;

const RULES: [Rule; 13] = [
    launch,
    end::after_answer,
    end::on_request,
    end::at_hard_end,
    checks::advance,
    pipeline::advance,
    promotion::advance,
    seeding::advance,
    review::sweep,
    promotion::sweep,
    reserve::advance,
    search::advance,
    finale::advance,
];

pub(crate) fn decide(run: &Run, at: UnixMs) -> Vec<Event> {
    if run.outcome.is_some() {
        return Vec::new();
    }
    let waits = run.policy.concurrency_nodes == 1 && !run.in_work.is_empty();
    RULES
        .iter()
        .map(|rule| rule(run, at))
        .find(|batch| !(batch.is_empty() || waits && opens_work(run.phase, batch)))
        .unwrap_or_default()
}

/// Bit-equal reruns are promised for one node at a time (architecture §3). Then promotions and
/// reviews do not run beside it either, or the order of results would be the world's. Final
/// selection runs one thing at a time by itself, but for reviews; its deadlines must not wait.
fn opens_work(phase: Phase, batch: &[Event]) -> bool {
    batch.iter().any(|event| match event {
        Event::EffectStarted { effect } => {
            phase != Phase::Final || matches!(effect, Effect::Review { .. })
        }
        Event::NodeCreated { .. } | Event::RescoreStart { .. } | Event::PromotionStart { .. } => {
            phase != Phase::Final
        }
        // A review of the search is over before final selection looks at it.
        Event::FinalStart { .. } => true,
        _ => false,
    })
}

/// Seeding begins once everything is imported that the lock names (CON-01).
fn launch(run: &Run, _: UnixMs) -> Vec<Event> {
    let is_imported =
        run.nodes.len() >= usize::try_from(run.policy.continuation.imports).unwrap_or(0);
    if run.phase == Phase::Launching && is_imported {
        vec![Event::PhaseChange {
            from: Phase::Launching,
            to: Phase::Seeding,
        }]
    } else {
        Vec::new()
    }
}

fn start(effect: Effect) -> Vec<Event> {
    vec![Event::EffectStarted { effect }]
}

/// The first effect that these executions need and that is not in work, while fewer than `limit`
/// of them are.
fn next_rerun(run: &Run, reruns: &[(NodeId, vec_types::ExecName)], limit: usize) -> Option<Effect> {
    let needs: Vec<Effect> = reruns
        .iter()
        .filter_map(|(node, exec)| run.rerun(*node, *exec)?.effect(*node, *exec))
        .collect();
    let busy = needs.iter().filter(|effect| run.is_in_work(effect)).count();
    if busy >= limit {
        return None;
    }
    needs.into_iter().find(|effect| !run.is_in_work(effect))
}

/// The first of these executions that will never give a result, in words.
fn first_failure(run: &Run, reruns: &[(NodeId, vec_types::ExecName)]) -> Option<String> {
    reruns.iter().find_map(|(node, exec)| {
        let failure = run.rerun(*node, *exec).and_then(Rerun::failure)?;
        Some(format!("{exec} of node {node} ended with {failure}"))
    })
}
