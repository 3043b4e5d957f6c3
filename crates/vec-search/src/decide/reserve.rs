//! The measured final reserve (RSV): what final selection would need for the candidates of now. It
//! only moves cutoff earlier, by whole minutes, to at most half the run.

use vec_types::{NodeId, Phase, ProgramSeed, UnixMs};

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

/// The run in disguise and, if its output differs, the confirming one (VCK-02).
pub(super) const CHECK_RUNS: i64 = 2;

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
    let measured = |node: &Node| Measured::of(run, node, reserve);
    let own: i64 = candidates
        .iter()
        .map(|node| {
            let times = measured(node);
            let seeds_ms = missing_seeds(run, node).saturating_mul(times.run_ms);
            let checks_ms = missing_checks(node).saturating_mul(times.check_ms);
            review_ms(run, node)
                .saturating_add(seeds_ms)
                .saturating_add(checks_ms)
        })
        .fold(0, i64::saturating_add);
    let worst = |of: fn(&Measured) -> i64| {
        let each = candidates.iter().map(|node| of(&measured(node)));
        let anchor = run.anchor().map_or(0, |anchor| of(&measured(anchor)));
        each.max().unwrap_or(0).saturating_add(anchor)
    };
    let fresh = i64::try_from(run.policy.guard.fresh_seeds.len()).unwrap_or(i64::MAX);
    let guard = fresh.saturating_mul(worst(|times| times.run_ms));
    own.saturating_add(guard)
        .saturating_add(worst(|times| times.place_ms))
}

fn missing_checks(node: &Node) -> i64 {
    if node.view.is_fit() { 0 } else { CHECK_RUNS }
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

/// Times of one program, each with the wait for a scoring worker, but for the last.
struct Measured {
    /// All objective views one after another.
    run_ms: i64,
    /// All checked views one after another, cold: a view check trains anew (VCK-05).
    check_ms: i64,
    /// A cold run on the final view.
    place_ms: i64,
}

impl Measured {
    fn of(run: &Run, node: &Node, reserve: &Reserve) -> Self {
        let longest = i64::from(node.longest_view_ms);
        let with_queue = |ms: i64| ms.saturating_add(reserve.queue_ms);
        if node.score(SEED_0).is_none() || longest == 0 {
            let cold = reserve.time_limit_ms / COLD_FRACTION;
            return Self {
                run_ms: with_queue(cold),
                check_ms: with_queue(cold),
                place_ms: cold,
            };
        }
        let all = node
            .reports()
            .map(|report| report.wall_ms.values().sum::<i64>());
        let checked = run.policy.view_check.views.iter();
        let checked = checked.map(|view| node.longest_ms(view)).sum();
        Self {
            run_ms: with_queue(all.max().unwrap_or(longest)),
            check_ms: with_queue(cold_ms(checked)),
            place_ms: cold_ms(longest),
        }
    }
}

/// A program that starts cold takes half as much again (RSV-05).
pub(super) const fn cold_ms(measured_ms: i64) -> i64 {
    measured_ms.saturating_mul(3) / 2
}
