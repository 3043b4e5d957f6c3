//! Search: announce a plateau, create nodes while there is room, see when search is over, and settle
//! what is left.

use vec_types::{Phase, UnixMs};

use super::creation;
use super::seeding::has_room;
use crate::Event;
use crate::inputs::tree_digest;
use crate::plateau;
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
        let active = plateau::is_active(run);
        if active != run.plateau {
            return vec![Event::Plateau {
                active,
                inputs_digest: tree_digest(run),
            }];
        }
        let batch = creation::new_node(run);
        if !batch.is_empty() {
            return batch;
        }
    }
    if run.running.is_empty() {
        return phase(Phase::Search, Phase::Settling);
    }
    Vec::new()
}
