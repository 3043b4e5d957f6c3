//! Further executions of a settled node.

use vec_types::{CandidateFault, ExecName, InfraFault, NodeId, NodeStatus, ScoreReport};

use crate::{Effect, ExecReport};

/// A further execution of a settled node: promotion seeds, fresh seeds, the final view. An entry
/// is never removed, so that no execution and no scoring ends twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rerun {
    pub stage: RerunStage,
    /// Data epoch in which it was executed; absent until it starts (EPO-02).
    pub epoch: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RerunStage {
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
    /// One that nobody has started.
    pub(crate) const fn new() -> Self {
        Self {
            stage: RerunStage::Execute,
            epoch: None,
        }
    }

    /// Can it still give a score that was measured in this epoch?
    pub(crate) fn is_open_in(&self, epoch: u32) -> bool {
        let is_open = matches!(self.stage, RerunStage::Execute | RerunStage::Score { .. });
        is_open && self.epoch.is_none_or(|own| own == epoch)
    }

    /// The effect that it needs next.
    pub(crate) const fn effect(&self, node: NodeId, exec: ExecName) -> Option<Effect> {
        match &self.stage {
            RerunStage::Execute => Some(Effect::Execute { node, exec }),
            RerunStage::Score { .. } => Some(Effect::Score { node, exec }),
            _ => None,
        }
    }

    pub(crate) const fn score(&self) -> Option<&ScoreReport> {
        match &self.stage {
            RerunStage::Scored { score, .. } => Some(score),
            _ => None,
        }
    }

    pub(crate) const fn report(&self) -> Option<&ExecReport> {
        match &self.stage {
            RerunStage::Score { report }
            | RerunStage::Scored { report, .. }
            | RerunStage::Ran { report } => Some(report),
            _ => None,
        }
    }

    /// The fault of ours that it ended with.
    pub(crate) const fn lost(&self) -> Option<InfraFault> {
        match &self.stage {
            RerunStage::Lost { fault, .. } => Some(*fault),
            _ => None,
        }
    }

    /// Why it will never give a result.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.stage {
            RerunStage::Faulty { fault, detail } => {
                Some(format!("{}: {detail}", NodeStatus::from(*fault).as_str()))
            }
            RerunStage::Lost { fault, detail } => {
                Some(format!("{}: {detail}", NodeStatus::from(*fault).as_str()))
            }
            _ => None,
        }
    }
}
