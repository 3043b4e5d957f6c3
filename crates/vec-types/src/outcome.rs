//! How things end. Candidate faults count against a parent, infrastructure faults never do;
//! the two are separate types so that they cannot be mixed (architecture §3, EXE-05).

use serde::{Deserialize, Serialize};

/// The program's own fault: counts in its parent's failure streak (SEL-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateFault {
    /// Non-zero exit, or killed by its own signal.
    Crash,
    /// Its own memory limit.
    Oom,
    /// Its own time limit.
    Timeout,
    /// No activity (health monitor).
    Hung,
    /// Exit 0, but the output fails the format check.
    InvalidFormat,
}

/// A fault of ours: the node is shelved, nothing counts against its parent (SEL-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InfraFault {
    /// The scorer failed on a well-formed prediction.
    ScoreError,
    /// Memory pressure that the program did not cause.
    InfraOom,
    /// Cut short: a daemon died, a provider failed.
    Interrupted,
    /// Cut short by a deadline of the run (`interrupted` + `budget_cut`).
    BudgetCut,
}

/// What an execution did about weights that are trained per view (EXE-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightsMode {
    /// The program declares none.
    None,
    /// Trained, and registered where the execution succeeded.
    Train,
    /// Registered weights were used.
    Replay,
    /// Trained, neither replayed nor registered (PVW-10).
    Fresh,
}

/// Where a node stands (requirements b.1). `Running` is the only status that is not final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// In work.
    Running,
    /// Executed and scored.
    Scored,
    /// No usable program came out of planning or the session.
    GenFailed,
    /// The session changed nothing that runs.
    GenEmpty,
    /// See [`CandidateFault::Crash`].
    Crash,
    /// See [`CandidateFault::Oom`].
    Oom,
    /// See [`CandidateFault::Timeout`].
    Timeout,
    /// See [`CandidateFault::Hung`].
    Hung,
    /// See [`CandidateFault::InvalidFormat`].
    InvalidFormat,
    /// Shelved: see [`InfraFault::ScoreError`].
    ScoreError,
    /// Shelved: see [`InfraFault::InfraOom`].
    InfraOom,
    /// Shelved: see [`InfraFault::Interrupted`] and [`InfraFault::BudgetCut`].
    Interrupted,
    /// Shelved: sealed at the hand-off for a later run to take up (CAR-10).
    CarriedOver,
    /// Imported from a run whose scores cannot be compared; waits to be scored again (CON-02).
    ImportedUnscored,
    /// Imported for its history only (CON-02).
    HistoryOnly,
}

impl NodeStatus {
    /// Every status, in the order of the failure table.
    pub const ALL: [Self; 15] = [
        Self::Running,
        Self::Scored,
        Self::GenFailed,
        Self::GenEmpty,
        Self::Crash,
        Self::Oom,
        Self::Timeout,
        Self::Hung,
        Self::InvalidFormat,
        Self::ScoreError,
        Self::InfraOom,
        Self::Interrupted,
        Self::CarriedOver,
        Self::ImportedUnscored,
        Self::HistoryOnly,
    ];

    /// The word used in SQL, logs and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Scored => "scored",
            Self::GenFailed => "gen_failed",
            Self::GenEmpty => "gen_empty",
            Self::Crash => "crash",
            Self::Oom => "oom",
            Self::Timeout => "timeout",
            Self::Hung => "hung",
            Self::InvalidFormat => "invalid_format",
            Self::ScoreError => "score_error",
            Self::InfraOom => "infra_oom",
            Self::Interrupted => "interrupted",
            Self::CarriedOver => "carried_over",
            Self::ImportedUnscored => "imported_unscored",
            Self::HistoryOnly => "history_only",
        }
    }

    /// Without effect on the tree: no visit, no rank (SEL-12, SEL-15, CON-02).
    #[must_use]
    pub const fn is_shelved(self) -> bool {
        matches!(
            self,
            Self::ScoreError
                | Self::InfraOom
                | Self::Interrupted
                | Self::CarriedOver
                | Self::ImportedUnscored
                | Self::HistoryOnly
        )
    }

    /// In the FUTS tree: scored, or failed with score −∞ (SEL-02).
    #[must_use]
    pub const fn is_in_tree(self) -> bool {
        !matches!(self, Self::Running) && !self.is_shelved()
    }

    /// One of the five executed faults, which count for failure streaks (O-SEL-2 overridden).
    #[must_use]
    pub const fn is_candidate_fault(self) -> bool {
        matches!(
            self,
            Self::Crash | Self::Oom | Self::Timeout | Self::Hung | Self::InvalidFormat
        )
    }
}

impl From<CandidateFault> for NodeStatus {
    fn from(fault: CandidateFault) -> Self {
        match fault {
            CandidateFault::Crash => Self::Crash,
            CandidateFault::Oom => Self::Oom,
            CandidateFault::Timeout => Self::Timeout,
            CandidateFault::Hung => Self::Hung,
            CandidateFault::InvalidFormat => Self::InvalidFormat,
        }
    }
}

impl From<InfraFault> for NodeStatus {
    fn from(fault: InfraFault) -> Self {
        match fault {
            InfraFault::ScoreError => Self::ScoreError,
            InfraFault::InfraOom => Self::InfraOom,
            InfraFault::Interrupted | InfraFault::BudgetCut => Self::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_serde_words() {
        for status in NodeStatus::ALL {
            let json = serde_json::to_value(status).expect("encodes");
            assert_eq!(json, status.as_str());
        }
    }

    #[test]
    fn classes_do_not_overlap() {
        for status in NodeStatus::ALL {
            assert!(!(status.is_shelved() && status.is_in_tree()), "{status:?}");
            assert!(
                !status.is_candidate_fault() || status.is_in_tree(),
                "{status:?}"
            );
        }
    }
}
