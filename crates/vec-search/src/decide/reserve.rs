//! The measured final reserve (RSV): what final selection would need for the candidates of now. It
//! only moves cutoff earlier, by whole minutes, to at most half the run.

use vec_types::{ExecName, NodeId, Phase, ProgramSeed, UnixMs};

use crate::inputs::tree_digest;
use crate::node::{Node, SEED_0};
use crate::ranking::{final_candidates, is_reviewed};
use crate::state::Run;
use crate::{Event, Reserve};

/// The reserve grows in steps of this length: it is not announced all the time, and two equal runs
/// whose measured times differ a little announce the same.
pub const RESERVE_STEP_MS: i64 = 60_000;

/// A review that was never measured (O-RSV-2).
const REVIEW_MS: i64 = 10 * 60_000;

/// Share of the time limit that stands for an execution that was never measured (RSV-05).
const COLD_FRACTION: i64 = 4;

pub(super) fn advance(run: &Run, _: UnixMs) -> Vec<Event> {
    let Some(reserve) = &run.policy.reserve else {
        return Vec::new();
    };
    if !matches!(run.phase, Phase::Search | Phase::Settling) {
        return Vec::new();
    }
    let wanted = estimate(run, reserve).saturating_add(reserve.margin_ms);
    let steps = wanted.saturating_add(RESERVE_STEP_MS - 1) / RESERVE_STEP_MS;
    let most = run.policy.budget.wall_ms / 2;
    let reserve_ms = steps.saturating_mul(RESERVE_STEP_MS).min(most);
    if reserve_ms <= run.reserve_ms {
        return Vec::new();
    }
    vec![Event::FinalReserve {
        reserve_ms,
        inputs_digest: tree_digest(run),
    }]
}

/// Serial sum over the candidates and the guard (RSV-02, RSV-03).
fn estimate(run: &Run, reserve: &Reserve) -> i64 {
    let ids: Vec<NodeId> = final_candidates(run);
    let candidates: Vec<&Node> = ids.iter().filter_map(|id| run.node(*id)).collect();
    if candidates.is_empty() {
        return 0;
    }
    let run_ms = |node: &Node| {
        Measured::of(node, reserve)
            .run_ms
            .saturating_add(reserve.queue_ms)
    };
    let place_ms = |node: &Node| Measured::of(node, reserve).place_ms;
    let checks: i64 = candidates
        .iter()
        .map(|node| {
            let runs = missing_seeds(run, node) + i64::from(!node.view.is_fit());
            review_ms(run, node) + runs * run_ms(node)
        })
        .sum();
    let worst_run = candidates
        .iter()
        .map(|node| run_ms(node))
        .max()
        .unwrap_or(0);
    let worst_place = candidates
        .iter()
        .map(|node| place_ms(node))
        .max()
        .unwrap_or(0);
    let anchor = run.anchor();
    let fresh = i64::try_from(run.policy.guard.fresh_seeds.len()).unwrap_or(i64::MAX);
    let guard = fresh.saturating_mul(worst_run.saturating_add(anchor.map_or(0, run_ms)));
    let places = worst_place.saturating_add(anchor.map_or(0, place_ms));
    checks.saturating_add(guard).saturating_add(places)
}

fn review_ms(run: &Run, node: &Node) -> i64 {
    if is_reviewed(node) {
        return 0;
    }
    run.longest_review_ms.unwrap_or(REVIEW_MS)
}

/// Seeds of the ranking score that are not measured in the current epoch.
fn missing_seeds(run: &Run, node: &Node) -> i64 {
    let seeds = [ProgramSeed(0)]
        .into_iter()
        .chain(run.policy.promotion_seeds.iter().copied());
    let missing = seeds.filter(|seed| node.measured(*seed, run.epoch).is_none());
    i64::try_from(missing.count()).unwrap_or(i64::MAX)
}

/// Times of one program: all objective views one after another, and a cold run on the final view.
struct Measured {
    run_ms: i64,
    place_ms: i64,
}

impl Measured {
    fn of(node: &Node, reserve: &Reserve) -> Self {
        // A control run is evidence only (ABL-05).
        let reruns = node
            .reruns
            .iter()
            .filter(|(exec, _)| **exec != ExecName::Ablate);
        let report = reruns.filter_map(|(_, rerun)| rerun.report());
        let reports = node.seed_0_report().into_iter().chain(report);
        let all = reports.map(|report| report.wall_ms.values().sum::<i64>());
        let longest = i64::from(node.longest_view_ms);
        if node.score(SEED_0).is_none() || longest == 0 {
            let cold = reserve.time_limit_ms / COLD_FRACTION;
            return Self {
                run_ms: cold,
                place_ms: cold,
            };
        }
        Self {
            run_ms: all.max().unwrap_or(longest),
            place_ms: longest.saturating_mul(3) / 2,
        }
    }
}
