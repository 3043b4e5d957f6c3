//! May a daemon that ended be started again? Pure: at most `max` restarts within a sliding window
//! (architecture §2; RSM-03).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vec_config::Restarts;
use vec_types::UnixMs;

const MS_PER_MINUTE: i64 = 60_000;

/// The locked limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimit {
    /// Restarts within the window.
    pub max: u32,
    /// Length of the window in milliseconds.
    pub window_ms: i64,
}

impl From<&Restarts> for RestartLimit {
    fn from(restarts: &Restarts) -> Self {
        Self {
            max: restarts.max,
            window_ms: i64::from(restarts.window_minutes) * MS_PER_MINUTE,
        }
    }
}

/// What to do about a daemon that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartDecision {
    /// Start it again; the restart is counted.
    Restart,
    /// It was restarted too often.
    Exhausted,
}

/// When one daemon of one run was restarted, oldest first. Survives the launcher in `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RestartHistory(VecDeque<UnixMs>);

impl RestartHistory {
    /// Decides at `at` and counts the restart if it may happen. A clock that went backwards never
    /// frees room: only restarts that lie a whole window back are forgotten.
    pub fn decide(&mut self, limit: RestartLimit, at: UnixMs) -> RestartDecision {
        while let Some(oldest) = self.0.front() {
            if at.since_ms(*oldest) < limit.window_ms {
                break;
            }
            self.0.pop_front();
        }
        if self.0.len() >= limit.max as usize {
            return RestartDecision::Exhausted;
        }
        self.0.push_back(at);
        RestartDecision::Restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RestartDecision::{Exhausted, Restart};

    fn decisions(max: u32, minutes: u32, at_minutes: &[i64]) -> Vec<RestartDecision> {
        let limit = RestartLimit::from(&Restarts {
            max,
            window_minutes: minutes,
        });
        let mut history = RestartHistory::default();
        at_minutes
            .iter()
            .map(|minute| history.decide(limit, UnixMs(minute * MS_PER_MINUTE)))
            .collect()
    }

    #[test]
    fn the_window_slides() {
        let cases: [(&str, u32, &[i64], &[RestartDecision]); 6] = [
            (
                "three at once, not four",
                3,
                &[0, 0, 0, 0],
                &[Restart, Restart, Restart, Exhausted],
            ),
            ("the edge is outside", 1, &[0, 30], &[Restart, Restart]),
            ("just inside", 1, &[0, 29], &[Restart, Exhausted]),
            (
                "the oldest leaves alone",
                2,
                &[0, 20, 31, 40],
                &[Restart, Restart, Restart, Exhausted],
            ),
            ("none allowed", 0, &[0], &[Exhausted]),
            (
                "a clock that goes back frees nothing",
                1,
                &[40, 0],
                &[Restart, Exhausted],
            ),
        ];
        for (name, max, at, expected) in cases {
            assert_eq!(decisions(max, 30, at), expected, "{name}");
        }
    }

    #[test]
    fn a_refusal_is_not_counted() {
        // Refused at 10 and 20; at 30 the restart of minute 0 is forgotten.
        assert_eq!(
            decisions(1, 30, &[0, 10, 20, 30]),
            [Restart, Exhausted, Exhausted, Restart]
        );
    }
}
