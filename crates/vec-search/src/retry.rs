//! Pauses before something is tried again that an infrastructure fault has ended: whatever is down
//! has time to come up, and a node is not out after three faults in a second (O-PRO-1, O-VCK-2).
//! They run on the clock of the events, so that replay finds the same ones.

use vec_types::{InfraFault, NodeId, UnixMs};

use crate::state::Run;

/// Pause after the first infrastructure fault, and after every run that was cut for lack of time.
pub const RETRY_FIRST_MS: i64 = 30_000;

/// The longest pause.
pub const RETRY_MOST_MS: i64 = 600_000;

/// Each pause is so many times the one before it.
const GROWTH: i64 = 4;

/// What is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Retry {
    /// A promotion, a view check, a seed program.
    Run,
    Review,
}

/// The pause after this many faults, from 1.
pub(crate) fn pause_ms(faults: u32) -> i64 {
    let growth = GROWTH.saturating_pow(faults.saturating_sub(1));
    RETRY_FIRST_MS.saturating_mul(growth).min(RETRY_MOST_MS)
}

/// Is it nobody's fault but the clock's? Such a run counts for no attempt.
pub(crate) const fn is_cut(fault: InfraFault) -> bool {
    matches!(fault, InfraFault::BudgetCut)
}

impl Run {
    /// Must this node still wait?
    pub(crate) fn is_paused(&self, node: NodeId, what: Retry, at: UnixMs) -> bool {
        self.pauses
            .get(&(node, what))
            .is_some_and(|until| at < *until)
    }

    pub(crate) fn pause(&mut self, node: NodeId, what: Retry, at: UnixMs, faults: u32) {
        let until = at.plus_ms(pause_ms(faults));
        self.pauses.insert((node, what), until);
    }

    /// The first end of a pause after `at`.
    pub(crate) fn next_retry(&self, at: UnixMs) -> Option<UnixMs> {
        self.pauses.values().copied().filter(|end| *end > at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds = |faults| pause_ms(faults) / 1_000;
        let found = [0, 1, 2, 3, 4, u32::MAX].map(seconds);
        assert_eq!(found, [30, 30, 120, 480, 600, 600]);
    }
}
