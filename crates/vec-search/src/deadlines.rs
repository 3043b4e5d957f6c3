//! The run's points in time (requirements c, BUD): fixed by `run_start` and the locked budget, except
//! that a measured reserve moves cutoff earlier (RSV-04) and measured run times the guard's deadline
//! (FIN-09).

use serde::{Deserialize, Serialize};
use vec_types::UnixMs;

use crate::Budget;

/// Absolute deadlines of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// `run_start`.
    pub t0: UnixMs,
    /// No new nodes, Engineer sessions end (BUD-03, O-BUD-2).
    pub handoff: UnixMs,
    /// End of search; executions are ended (BUD-02).
    pub cutoff: UnixMs,
    /// Whatever is not settled by now is cut (BUD-04).
    pub settle_deadline: UnixMs,
    /// Reviews, missing seeds and the guard end here (FIN-09).
    pub guard_deadline: UnixMs,
    /// The winner's run on the final view ends here; afterwards there is only writing out.
    pub place_deadline: UnixMs,
    /// Hard end, never moved (BUD-01).
    pub stop_at: UnixMs,
}

impl Deadlines {
    /// Deadlines before anything is measured.
    #[must_use]
    pub fn new(t0: UnixMs, budget: &Budget) -> Self {
        let stop_at = t0.plus_ms(budget.wall_ms);
        let cutoff = stop_at.plus_ms(-budget.final_reserve_ms);
        let settled = cutoff.plus_ms(budget.term_grace_ms.saturating_add(budget.settle_extra_ms));
        let place = stop_at.plus_ms(-budget.place_room_ms);
        Self {
            t0,
            handoff: cutoff.plus_ms(-budget.node_tail_ms),
            cutoff,
            settle_deadline: settled.min(stop_at.plus_ms(-budget.settle_guard_ms)),
            guard_deadline: place,
            place_deadline: place,
            stop_at,
        }
    }

    /// With a longer final reserve: everything up to the settlement deadline moves earlier, the
    /// hard end stays (RSV-04).
    #[must_use]
    pub(crate) fn with_reserve(&self, budget: &Budget, final_reserve_ms: i64) -> Self {
        let budget = Budget {
            final_reserve_ms,
            ..budget.clone()
        };
        Self::new(self.t0, &budget)
    }

    /// The guard's deadline once run times are known: `longest_ms` is the longest single-view time
    /// of baseline and candidates; the answer's run gets 1.5 times that (FIN-09).
    #[must_use]
    pub(crate) fn with_run_time(mut self, longest_ms: i64) -> Self {
        let run_ms = longest_ms.max(0).saturating_mul(3) / 2;
        self.guard_deadline = self.place_deadline.plus_ms(-run_ms);
        self
    }

    /// The first of them after `at`.
    #[must_use]
    pub fn next_after(&self, at: UnixMs) -> Option<UnixMs> {
        [
            self.handoff,
            self.cutoff,
            self.settle_deadline,
            self.guard_deadline,
            self.place_deadline,
            self.stop_at,
        ]
        .into_iter()
        .filter(|point| *point > at)
        .min()
    }

    /// What is wrong with a budget, naming its keys; empty when t0 < handoff < cutoff ≤
    /// settle_deadline < guard_deadline < stop_at holds.
    #[must_use]
    pub fn problems(budget: &Budget) -> Vec<String> {
        let named = [
            ("wall", budget.wall_ms),
            ("final_reserve", budget.final_reserve_ms),
            ("node_tail", budget.node_tail_ms),
            ("settle_extra", budget.settle_extra_ms),
            ("settle_guard", budget.settle_guard_ms),
            ("term_grace", budget.term_grace_ms),
            ("place_room", budget.place_room_ms),
        ];
        let mut problems: Vec<String> = named
            .into_iter()
            .filter(|(_, ms)| *ms < 0)
            .map(|(key, ms)| format!("budget.{key} must not be negative, found {ms} ms"))
            .collect();
        if problems.is_empty() {
            problems.extend(Self::new(UnixMs(0), budget).order_problems());
        }
        problems
    }

    fn order_problems(&self) -> Vec<String> {
        let must = |holds: bool, text: &str| (!holds).then(|| text.to_owned());
        [
            must(
                self.t0 < self.handoff,
                "budget.wall must be longer than budget.final_reserve + budget.node_tail",
            ),
            must(
                self.handoff < self.cutoff,
                "budget.node_tail must be longer than 0",
            ),
            must(
                self.cutoff <= self.settle_deadline,
                "budget.settle_guard must not be longer than budget.final_reserve",
            ),
            must(
                self.settle_deadline < self.guard_deadline,
                "budget.final_reserve must be longer than execution.term_grace + \
                 budget.settle_extra + final.place_room",
            ),
            must(
                self.guard_deadline < self.stop_at,
                "final.place_room must be longer than 0",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demo() -> Budget {
        Budget {
            max_nodes: 16,
            wall_ms: 720_000,
            final_reserve_ms: 120_000,
            node_tail_ms: 30_000,
            settle_extra_ms: 5_000,
            settle_guard_ms: 5_000,
            term_grace_ms: 2_000,
            place_room_ms: 5_000,
        }
    }

    #[test]
    fn the_demo_budget_gives_the_documented_points() {
        let points = Deadlines::new(UnixMs(1_000), &demo());
        assert_eq!(points.stop_at, UnixMs(721_000));
        assert_eq!(points.cutoff, UnixMs(601_000));
        assert_eq!(points.handoff, UnixMs(571_000));
        assert_eq!(points.settle_deadline, UnixMs(608_000));
        assert_eq!(points.guard_deadline, UnixMs(716_000));
        assert_eq!(points.with_run_time(4_000).guard_deadline, UnixMs(710_000));
        assert!(Deadlines::problems(&demo()).is_empty());
    }

    #[test]
    fn each_broken_order_names_its_keys() {
        type Change = fn(&mut Budget);
        let cases: [(Change, &str); 6] = [
            (|b| b.wall_ms = 100_000, "budget.wall"),
            (|b| b.node_tail_ms = 0, "budget.node_tail"),
            (|b| b.settle_guard_ms = 130_000, "budget.settle_guard"),
            (|b| b.place_room_ms = 119_000, "final.place_room"),
            (|b| b.place_room_ms = 0, "final.place_room must"),
            (|b| b.settle_extra_ms = -1, "budget.settle_extra"),
        ];
        for (change, key) in cases {
            let mut budget = demo();
            change(&mut budget);
            let problems = Deadlines::problems(&budget).join("; ");
            assert!(problems.contains(key), "{key}: {problems}");
        }
    }
}
