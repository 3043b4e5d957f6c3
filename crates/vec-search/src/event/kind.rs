//! Words for events: fact or decision, node, archive kind, rule.

use vec_types::NodeId;

use super::{Event, PromotionFailure};

impl Event {
    /// Facts come from outside; everything else is a decision that replay re-derives.
    #[must_use]
    pub const fn is_fact(&self) -> bool {
        matches!(
            self,
            Self::RunStart { .. }
                | Self::RunResume { .. }
                | Self::StopRequested { .. }
                | Self::EffectEnded { .. }
                | Self::Imported { .. }
                | Self::EpochAdvance { .. }
        )
    }

    /// The node that it concerns, for the archive's `node` column.
    #[must_use]
    pub const fn node(&self) -> Option<NodeId> {
        match self {
            Self::EffectEnded { effect, .. } | Self::EffectStarted { effect } => {
                Some(effect.node())
            }
            Self::Draw { node, .. }
            | Self::FallbackToImprove { node, .. }
            | Self::FallbackToDraft { node, .. }
            | Self::Select { node, .. }
            | Self::DraftPick { node, .. }
            | Self::Imported { node, .. }
            | Self::ResumePick { node, .. }
            | Self::ResumeRefused { node, .. }
            | Self::RescoreStart { node }
            | Self::RescoreCut { node, .. }
            | Self::NodeCreated { node, .. }
            | Self::NodeSettled { node, .. }
            | Self::RefutedDirection { node, .. }
            | Self::AblationResult { node, .. }
            | Self::ViewCheckResult { node, .. }
            | Self::PromotionStart { node, .. }
            | Self::PromotionDone { node, .. }
            | Self::PromotionFailed { node, .. }
            | Self::CandidateSkipped { node, .. }
            | Self::WinnerChosen { node, .. } => Some(*node),
            Self::GuardStart { candidate, .. } | Self::GuardResult { candidate, .. } => {
                Some(*candidate)
            }
            Self::RunStart { .. }
            | Self::RunResume { .. }
            | Self::StopRequested { .. }
            | Self::PhaseChange { .. }
            | Self::EpochAdvance { .. }
            | Self::Plateau { .. }
            | Self::FinalReserve { .. }
            | Self::FinalStart { .. }
            | Self::FinalGuardRefused { .. }
            | Self::Stop { .. } => None,
        }
    }

    /// The word in the archive's `kind` column (requirements d): `plan_start`, `execute_end`, ….
    #[must_use]
    pub fn kind(&self) -> String {
        let word = match self {
            Self::EffectStarted { effect } => return format!("{}_start", effect.kind()),
            Self::EffectEnded { effect, .. } => return format!("{}_end", effect.kind()),
            Self::RunStart { .. } => "run_start",
            Self::RunResume { .. } => "run_resume",
            Self::StopRequested { .. } => "stop_requested",
            Self::PhaseChange { .. } => "phase_change",
            Self::Draw { .. } => "draw",
            Self::FallbackToImprove { .. } => "fallback_to_improve",
            Self::FallbackToDraft { .. } => "fallback_to_draft",
            Self::Select { .. } => "select",
            Self::DraftPick { .. } => "draft_pick",
            Self::AblationResult { .. } => "ablation_result",
            Self::ViewCheckResult { .. } => "viewcheck_result",
            Self::Imported { .. } => "imported",
            Self::EpochAdvance { .. } => "epoch_advance",
            Self::ResumePick { .. } => "resume_started",
            Self::ResumeRefused { .. } => "resume_refused",
            Self::Plateau { .. } => "plateau",
            Self::RescoreStart { .. } => "rescore_start",
            Self::RescoreCut { .. } => "rescore_cut",
            Self::FinalReserve { .. } => "final_reserve",
            Self::NodeCreated { .. } => "node_created",
            Self::NodeSettled { .. } => "node_settled",
            Self::RefutedDirection { .. } => "refuted_direction",
            Self::PromotionStart { .. } => "promotion_start",
            Self::PromotionDone { .. } => "promotion_done",
            Self::PromotionFailed {
                cause: PromotionFailure::Abandoned,
                ..
            } => "promotion_abandoned",
            Self::PromotionFailed { .. } => "promotion_failed",
            Self::FinalStart { .. } => "final_start",
            Self::CandidateSkipped { .. } => "candidate_skipped",
            Self::GuardStart { .. } => "guard_start",
            Self::GuardResult { .. } => "guard_result",
            Self::FinalGuardRefused { .. } => "final_guard_refused",
            Self::WinnerChosen { .. } => "winner_chosen",
            Self::Stop { .. } => "stop",
        };
        word.to_owned()
    }

    /// The rule behind a decision, with the requirements that it is from: what `verify --replay`
    /// names when a stored decision is not the one that follows. Facts follow from no rule.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::RunStart { .. }
            | Self::RunResume { .. }
            | Self::StopRequested { .. }
            | Self::EffectEnded { .. }
            | Self::Imported { .. }
            | Self::EpochAdvance { .. } => "fact",
            Self::PhaseChange { .. } => "phases of a run (requirements c)",
            Self::Draw { .. } => "operator draw (OPR-01, OPR-02, PLT-02)",
            Self::FallbackToImprove { .. } => "fall-back to improve (OPR-03)",
            Self::FallbackToDraft { .. } => "last draft before the end (O-STP-2)",
            Self::Select { .. } => "parent selection (SEL, O-OPR-2)",
            Self::DraftPick { .. } => "family of a draft (DRF, PLT-02)",
            Self::ResumePick { .. } | Self::ResumeRefused { .. } => "resume queue (CAR-13, CAR-22)",
            Self::Plateau { .. } => "plateau (PLT-01)",
            Self::RescoreStart { .. } | Self::RescoreCut { .. } => "re-scoring of imports (CON-02)",
            Self::FinalReserve { .. } => "measured final reserve (RSV-04)",
            Self::NodeCreated { .. } => "creation of a node (OPR-04, SED-06)",
            Self::EffectStarted { .. } => "start of work (requirements b.2)",
            Self::NodeSettled { .. } => "settlement (requirements b.1, SEL-11, SEL-12)",
            Self::RefutedDirection { .. } => "refuted direction (REF-01)",
            Self::AblationResult { .. } => "result of a control run (ABL-02, O-ABL-1)",
            Self::ViewCheckResult { .. } => "verdict of a view check (VCK-02)",
            Self::PromotionStart { .. } => "promotion queue (PRO-01, PRO-02, EPO-04)",
            Self::PromotionDone { .. } => "ranking score of promoted nodes (PRO-02)",
            Self::PromotionFailed { .. } => "end of a promotion (O-PRO-1, PRO-06)",
            Self::FinalStart { .. } => "candidates of final selection (FIN-05)",
            Self::CandidateSkipped { .. } => "skipped candidate (FIN-05, FIN-06)",
            Self::GuardStart { .. } => "candidate of the guard (FIN-07)",
            Self::GuardResult { .. } => "verdict of the guard (FIN-07)",
            Self::FinalGuardRefused { .. } => "refusal of an answer (FIN-04)",
            Self::WinnerChosen { .. } => "the answer (FIN-11)",
            Self::Stop { .. } => "end of the run (STP-02)",
        }
    }
}
