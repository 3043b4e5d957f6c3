//! The switch for planted bugs, by which the simulator shows that it would notice them. Without the
//! feature `planted` (only the package `vec-search-planted` has it) every question is `false`.

/// One way to break a rule.
#[cfg_attr(
    not(feature = "planted"),
    expect(unreachable_pub, reason = "only the simulator sees it")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Settling keeps a virtual visit.
    VirtualVisitKept,
    /// A shelved child counts a visit.
    ShelvedVisits,
    /// Equal scores rank by age.
    TieByAge,
    /// Busy parents are not avoided.
    BusyIgnored,
    /// Suspension after one failure more than the policy says.
    StreakOffByOne,
    /// A new node elsewhere does not end suspensions.
    SuspensionNeverEnds,
    /// Capped seeds stay parents.
    BlockedSeedIgnored,
    /// Drafts that are owed an improve are forgotten.
    ReserveForgotten,
    /// Families are not rotated by the search seed.
    CoverageRotationWrong,
    /// A failed draft covers its family.
    FailedDraftOccupies,
    /// A promotion reuses seed 0 of an older epoch.
    PromotionOldSeed0,
    /// The plateau's window is one node short.
    PlateauWindowOffByOne,
    /// A promotion starts without a view check.
    PromotionUnchecked,
    /// A view-dependent node stays in the race.
    ViewDependentStays,
    /// A node whose mechanism does nothing is never reviewed.
    IdleUnreviewed,
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    impl Bug {
        /// All of them.
        pub const ALL: [Self; 15] = [
            Self::VirtualVisitKept,
            Self::ShelvedVisits,
            Self::TieByAge,
            Self::BusyIgnored,
            Self::StreakOffByOne,
            Self::SuspensionNeverEnds,
            Self::BlockedSeedIgnored,
            Self::ReserveForgotten,
            Self::CoverageRotationWrong,
            Self::FailedDraftOccupies,
            Self::PromotionOldSeed0,
            Self::PlateauWindowOffByOne,
            Self::PromotionUnchecked,
            Self::ViewDependentStays,
            Self::IdleUnreviewed,
        ];
    }

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread, or takes it out.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn is(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub(crate) use switch::is;
#[cfg(feature = "planted")]
pub use switch::plant;

#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
