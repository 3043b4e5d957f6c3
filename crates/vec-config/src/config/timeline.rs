//! The deadlines of a run as far as the configuration alone fixes them (requirements c).

use super::{Budget, Execution, Final};

/// Milliseconds after the start of the run, before anything has been measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// Engineer sessions end, no new nodes.
    pub handoff_ms: i64,
    /// End of search.
    pub cutoff_ms: i64,
    /// Everything in flight has settled.
    pub settle_deadline_ms: i64,
    /// Missing seeds and the guard have ended.
    pub guard_deadline_ms: i64,
    /// Hard end.
    pub stop_ms: i64,
}

const MS_PER_HOUR: f64 = 3_600_000.0;
const MS_PER_MINUTE: f64 = 60_000.0;

// Bounded by the loader (at most weeks), so the cast is exact.
fn to_ms(value: f64, unit_ms: f64) -> i64 {
    (value * unit_ms).round() as i64
}

impl Budget {
    /// `wall_hours` in milliseconds.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        to_ms(self.wall_hours, MS_PER_HOUR)
    }

    /// `node_tail_minutes` in milliseconds.
    #[must_use]
    pub fn node_tail_ms(&self) -> i64 {
        to_ms(self.node_tail_minutes, MS_PER_MINUTE)
    }

    /// `final_reserve_minutes` in milliseconds.
    #[must_use]
    pub fn final_reserve_ms(&self) -> i64 {
        to_ms(self.final_reserve_minutes, MS_PER_MINUTE)
    }
}

impl Timeline {
    /// The deadlines of a configuration.
    #[must_use]
    pub fn new(budget: &Budget, execution: &Execution, final_selection: &Final) -> Self {
        let seconds = |s: u32| i64::from(s) * 1_000;
        let stop_ms = budget.wall_ms();
        let cutoff_ms = stop_ms - budget.final_reserve_ms();
        let settled_ms =
            cutoff_ms + seconds(execution.term_grace_s) + seconds(budget.settle_extra_s);
        Self {
            handoff_ms: cutoff_ms - budget.node_tail_ms(),
            cutoff_ms,
            settle_deadline_ms: settled_ms.min(stop_ms - seconds(budget.settle_guard_s)),
            guard_deadline_ms: stop_ms - seconds(final_selection.place_room_s),
            stop_ms,
        }
    }

    /// The rule that is broken, with the keys that fix both sides; `None` when
    /// 0 < handoff < cutoff ≤ settle_deadline < guard_deadline < stop_at.
    #[must_use]
    pub fn broken_rule(&self) -> Option<(&'static str, String)> {
        let Self {
            handoff_ms,
            cutoff_ms,
            settle_deadline_ms,
            guard_deadline_ms,
            stop_ms,
        } = *self;
        let wall = "budget.wall_hours";
        let tail = "budget.node_tail_minutes";
        let reserve = "budget.final_reserve_minutes";
        let settle = "budget.settle_extra_s, budget.settle_guard_s, execution.term_grace_s";
        let room = "final.place_room_s";
        let broken = |key, left, right, keys: &[&str]| {
            Some((
                key,
                format!(
                    "{left} must be before {right}; change one of {}",
                    keys.join(", ")
                ),
            ))
        };
        let at = |name: &str, ms: i64| format!("{name} ({} s)", ms as f64 / 1_000.0);
        let (handoff, cutoff) = (at("handoff", handoff_ms), at("cutoff", cutoff_ms));
        let deadline = at("settle_deadline", settle_deadline_ms);
        let guard = at("guard_deadline", guard_deadline_ms);
        if handoff_ms <= 0 {
            let start = "the start of the run".to_owned();
            broken(wall, start, handoff, &[wall, reserve, tail])
        } else if handoff_ms >= cutoff_ms {
            broken(tail, handoff, cutoff, &[tail])
        } else if cutoff_ms > settle_deadline_ms {
            broken(reserve, cutoff, deadline, &[reserve, settle])
        } else if settle_deadline_ms >= guard_deadline_ms {
            broken(reserve, deadline, guard, &[reserve, settle, room])
        } else if guard_deadline_ms >= stop_ms {
            broken(room, guard, at("stop_at", stop_ms), &[room])
        } else {
            None
        }
    }
}
