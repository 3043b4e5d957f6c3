//! Which rules an event shows by itself.

use vec_search::{
    DraftMode, Effect, Event, MechanismActive, Outcome, PromotionFailure, ReviewVerdict,
    SelectReason, SkipReason, ViewTrigger, ViewVerdict,
};
use vec_types::{ExecName, NodeStatus, Operator};

use super::Rule;

pub(super) fn fired(event: &Event) -> Vec<Rule> {
    match event {
        Event::EffectEnded { effect, end } => effect_rule(effect, end).into_iter().collect(),
        Event::NodeSettled {
            status,
            no_progress,
            budget_cut,
            ..
        } => [
            Some(status_rule(*status)),
            no_progress.then_some(Rule::NoProgress),
            budget_cut.then_some(Rule::BudgetCut),
        ]
        .into_iter()
        .flatten()
        .collect(),
        Event::PromotionStart { execs, .. } => {
            let is_again = |exec: &ExecName| matches!(exec, ExecName::Again { .. });
            let again = execs.iter().any(is_again).then_some(Rule::PromotionAgain);
            [Rule::PromotionStart].into_iter().chain(again).collect()
        }
        Event::ViewCheckResult {
            verdict, trigger, ..
        } => vec![trigger_rule(*trigger), verdict_rule(*verdict)],
        other => single(other).into_iter().collect(),
    }
}

const fn trigger_rule(trigger: ViewTrigger) -> Rule {
    match trigger {
        ViewTrigger::Sample => Rule::ViewSampled,
        ViewTrigger::Promotion => Rule::ViewBeforePromotion,
        ViewTrigger::Final => Rule::ViewBeforeFinal,
    }
}

const fn verdict_rule(verdict: ViewVerdict) -> Rule {
    match verdict {
        ViewVerdict::Same => Rule::ViewSame,
        ViewVerdict::ViewDependent => Rule::ViewFound,
        ViewVerdict::Nondeterministic => Rule::ViewNondeterministic,
        ViewVerdict::Unknown => Rule::ViewUnknown,
    }
}

fn single(event: &Event) -> Option<Rule> {
    Some(match event {
        Event::NodeCreated { operator, .. } => match operator {
            Operator::Draft => Rule::Draft,
            Operator::Debug => Rule::Debug,
            Operator::Improve => Rule::Improve,
            Operator::Resume => Rule::Resume,
            Operator::Seed | Operator::Tune => return None,
        },
        Event::Select { reason, .. } => match reason {
            SelectReason::ReserveImprove => Rule::Reserve,
            SelectReason::ArgmaxU => Rule::ArgmaxU,
            SelectReason::ArgmaxUBusy => Rule::Busy,
            SelectReason::ArgmaxUSuspended => Rule::SuspensionLifted,
            SelectReason::DebugTarget => return None,
        },
        Event::RefutedDirection { .. } => Rule::Refuted,
        Event::AblationResult {
            mechanism_active, ..
        } => match mechanism_active {
            MechanismActive::Yes => Rule::MechanismActive,
            MechanismActive::No => Rule::MechanismIdle,
            MechanismActive::Unclear => Rule::MechanismUnclear,
        },
        Event::FallbackToImprove { .. } => Rule::FallbackToImprove,
        Event::PromotionDone { .. } => Rule::PromotionDone,
        Event::PromotionFailed { cause, .. } => match cause {
            PromotionFailure::Faulty => Rule::PromotionFaulty,
            PromotionFailure::Lost => Rule::PromotionLost,
            PromotionFailure::Abandoned => Rule::PromotionAbandoned,
        },
        Event::DraftPick { mode, .. } => match mode {
            DraftMode::RoundRobin => Rule::RoundRobin,
            DraftMode::Coverage => Rule::Coverage,
            DraftMode::Explore => Rule::Explore,
            DraftMode::Exploit => Rule::Exploit,
            DraftMode::Plateau => Rule::PlateauDraft,
        },
        Event::Plateau { active: true, .. } => Rule::PlateauBegins,
        Event::Plateau { active: false, .. } => Rule::PlateauEnds,
        Event::ResumeRefused { .. } => Rule::ResumeRefused,
        Event::Imported { .. } => Rule::Imported,
        Event::RescoreStart { .. } => Rule::Rescore,
        Event::RescoreCut { .. } => Rule::RescoreCut,
        Event::EpochAdvance { .. } => Rule::Epoch,
        Event::FinalReserve { .. } => Rule::FinalReserve,
        Event::CandidateSkipped { why, .. } => match why {
            SkipReason::Review => Rule::SkippedReview,
            SkipReason::ViewCheck => Rule::SkippedViewCheck,
            SkipReason::Seeds => Rule::SkippedSeeds,
            SkipReason::Deadline => Rule::SkippedDeadline,
        },
        Event::GuardResult { replace: true, .. } => Rule::GuardReplaces,
        Event::GuardResult { complete: true, .. } => Rule::GuardKeeps,
        Event::GuardResult { .. } => Rule::GuardIncomplete,
        Event::FinalGuardRefused { .. } => Rule::NoAnswer,
        Event::StopRequested { .. } => Rule::StopRequest,
        _ => return None,
    })
}

fn effect_rule(effect: &Effect, end: &Outcome) -> Option<Rule> {
    match (effect, end) {
        (_, Outcome::Interrupted { .. }) => Some(Rule::FailedEffect),
        (Effect::Review { .. }, Outcome::Reviewed { verdict }) => Some(match verdict {
            ReviewVerdict::Pass => Rule::ReviewPass,
            ReviewVerdict::Fail => Rule::ReviewFail,
            ReviewVerdict::Error => Rule::ReviewError,
        }),
        _ => None,
    }
}

fn status_rule(status: NodeStatus) -> Rule {
    match status {
        NodeStatus::Scored => Rule::Scored,
        NodeStatus::GenFailed => Rule::GenFailed,
        NodeStatus::GenEmpty => Rule::GenEmpty,
        status if status.is_candidate_fault() => Rule::CandidateFault,
        _ => Rule::Shelved,
    }
}
