//! Further executions of a settled node.

use vec_types::{CandidateFault, ExecName, InfraFault, NodeId, NodeStatus, ScoreReport};

use crate::{Effect, ExecReport};

/// A further execution of a settled node: promotion seeds, fresh seeds, the final view. An entry
/// is never removed, so that no execution and no scoring ends twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rerun {
    Execute,
    Score {
        report: ExecReport,
    },
    Scored {
        report: ExecReport,
        score: ScoreReport,
    },
    /// `final` only: it is placed, not scored.
    Ran {
        report: ExecReport,
    },
    Faulty {
        fault: CandidateFault,
        detail: String,
    },
    Lost {
        fault: InfraFault,
        detail: String,
    },
}

impl Rerun {
    /// The effect that it needs next.
    pub(crate) const fn effect(&self, node: NodeId, exec: ExecName) -> Option<Effect> {
        match self {
            Self::Execute => Some(Effect::Execute { node, exec }),
            Self::Score { .. } => Some(Effect::Score { node, exec }),
            _ => None,
        }
    }

    pub(crate) const fn score(&self) -> Option<&ScoreReport> {
        match self {
            Self::Scored { score, .. } => Some(score),
            _ => None,
        }
    }

    pub(crate) const fn report(&self) -> Option<&ExecReport> {
        match self {
            Self::Score { report } | Self::Scored { report, .. } | Self::Ran { report } => {
                Some(report)
            }
            _ => None,
        }
    }

    /// Why it will never give a result.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Faulty { fault, detail } => {
                Some(format!("{}: {detail}", NodeStatus::from(*fault).as_str()))
            }
            Self::Lost { fault, detail } => {
                Some(format!("{}: {detail}", NodeStatus::from(*fault).as_str()))
            }
            _ => None,
        }
    }
}
