//! How often each rule fired, so that nobody believes in coverage that did not happen.

mod fired;

use vec_search::Event;

use crate::words::words;

words! {
    /// Something that a simulation has to reach.
    Rule {
        /// A node settled as scored.
        Scored = "scored",
        /// Settled as `gen_failed`.
        GenFailed = "gen_failed",
        /// Settled as `gen_empty`.
        GenEmpty = "gen_empty",
        /// An executed fault.
        CandidateFault = "candidate_fault",
        /// Shelved.
        Shelved = "shelved",
        /// Shelved while nothing else happened, and the next selection saw the same as before.
        ShelvedAlone = "shelved_alone",
        /// Cut by a deadline of the run.
        BudgetCut = "budget_cut",
        /// Output or program equal to the parent's.
        NoProgress = "no_progress",
        /// A refuted direction.
        Refuted = "refuted",
        /// A draft.
        Draft = "draft",
        /// A debug.
        Debug = "debug",
        /// An improve.
        Improve = "improve",
        /// Draft or debug became improve.
        FallbackToImprove = "fallback_to_improve",
        /// The oldest draft that is owed an improve.
        Reserve = "reserve_improve",
        /// A draft in library order.
        RoundRobin = "round_robin",
        /// A draft of a family that was not covered.
        Coverage = "coverage",
        /// A draft of a family with few drafts.
        Explore = "explore",
        /// A draft of the family that gained most.
        Exploit = "exploit",
        /// A draft that a plateau asked for.
        PlateauDraft = "plateau_draft",
        /// A plateau began.
        PlateauBegins = "plateau_begins",
        /// A plateau ended.
        PlateauEnds = "plateau_ends",
        /// A capped seed was a parent again during a plateau.
        CapLifted = "cap_lifted",
        /// Carried-over work was taken up.
        Resume = "resume",
        /// Carried-over work was refused.
        ResumeRefused = "resume_refused",
        /// A node was imported.
        Imported = "imported",
        /// An import was scored again.
        Rescore = "rescore",
        /// It was not, for lack of time or through a fault of ours.
        RescoreCut = "rescore_cut",
        /// New data was mounted.
        Epoch = "epoch",
        /// A selection over nodes of several epochs.
        SeveralEpochs = "several_epochs",
        /// The measured reserve moved cutoff.
        FinalReserve = "final_reserve",
        /// Parent by largest U.
        ArgmaxU = "argmax_u",
        /// Every free parent was busy.
        Busy = "busy",
        /// Only suspended parents were left.
        SuspensionLifted = "suspension_lifted",
        /// A suspended parent was passed over.
        Suspended = "suspended",
        /// A busy parent was passed over.
        BusyAvoided = "busy_avoided",
        /// Excluded by the view check.
        ViewDependent = "view_dependent",
        /// A control run with another output.
        MechanismActive = "mechanism_active",
        /// A control run with the same output.
        MechanismIdle = "mechanism_idle",
        /// A control run without a comparable result.
        MechanismUnclear = "mechanism_unclear",
        /// The same seed with other results of control runs.
        ControlsPermuted = "controls_permuted",
        /// A view check of a sampled node.
        ViewSampled = "view_sampled",
        /// A view check in front of a promotion.
        ViewBeforePromotion = "view_before_promotion",
        /// A view check of a finalist.
        ViewBeforeFinal = "view_before_final",
        /// The same output in disguise.
        ViewSame = "view_same",
        /// Found to depend on how its view is dressed.
        ViewFound = "view_found",
        /// Another output each time.
        ViewNondeterministic = "view_nondeterministic",
        /// A view check without a result.
        ViewUnknown = "view_unknown",
        /// A view check that final selection stopped waiting for.
        ViewGivenUp = "view_given_up",
        /// A finalist that its view check put out.
        SkippedViewCheck = "skipped_view_check",
        /// A seed at its child cap was passed over.
        Blocked = "blocked",
        /// Equal ranks in one selection.
        Tie = "tie",
        /// A choice of the wrapper with every rule off, equal to the reference's.
        Idle = "idle",
        /// A promotion began.
        PromotionStart = "promotion_start",
        /// A promotion came to a mean.
        PromotionDone = "promotion_done",
        /// A promotion failed by the program's fault.
        PromotionFaulty = "promotion_faulty",
        /// A promotion failed through a fault of ours.
        PromotionLost = "promotion_lost",
        /// A promotion measured a seed again.
        PromotionAgain = "promotion_again",
        /// A promotion was given up for lack of time.
        PromotionAbandoned = "promotion_abandoned",
        /// A node was selected while a promotion ran.
        PromotionBeside = "promotion_beside_selection",
        /// Two nodes were the same candidate at final selection.
        SameCandidate = "same_candidate",
        /// A review that passed.
        ReviewPass = "review_pass",
        /// A review that failed.
        ReviewFail = "review_fail",
        /// A review without verdict.
        ReviewError = "review_error",
        /// A finalist without a review.
        SkippedReview = "skipped_review",
        /// A finalist without its seeds.
        SkippedSeeds = "skipped_seeds",
        /// A finalist out of time.
        SkippedDeadline = "skipped_deadline",
        /// A guard that replaced the baseline.
        GuardReplaces = "guard_replaces",
        /// A complete guard that kept it.
        GuardKeeps = "guard_keeps",
        /// A guard without all pairs.
        GuardIncomplete = "guard_incomplete",
        /// Final selection gave no answer.
        NoAnswer = "no_answer",
        /// The process died between two turns.
        Crash = "crash",
        /// The process died between two batches of one turn.
        CrashInTurn = "crash_in_turn",
        /// A result of an effect that was given up.
        Late = "late",
        /// A second result of an effect.
        Duplicate = "duplicate",
        /// An effect that failed through no fault of the candidate.
        FailedEffect = "failed_effect",
        /// Somebody stopped the run.
        StopRequest = "stop_request",
        /// A stopped run went on.
        Reopened = "reopened",
        /// The clock jumped.
        ClockJump = "clock_jump",
    }
}

/// Counts per rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally(Vec<u64>);

impl Default for Tally {
    fn default() -> Self {
        Self(vec![0; Rule::ALL.len()])
    }
}

impl Tally {
    /// One more.
    pub fn add(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }

    /// How often it fired.
    #[must_use]
    pub fn count(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    /// All counts of another one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Rules that never fired.
    #[must_use]
    pub fn never(&self) -> Vec<Rule> {
        let all = Rule::ALL.iter().copied();
        all.filter(|rule| self.count(*rule) == 0).collect()
    }

    /// Whatever an event shows by itself.
    pub fn event(&mut self, event: &Event) {
        for rule in fired::fired(event) {
            self.add(rule);
        }
    }
}
