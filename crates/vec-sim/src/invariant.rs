//! What must hold, by name, and how a breach is raised: a panic whose text begins with the name, so
//! that a simulation can stop anywhere and a test prints it as it is.

use crate::words::words;

words! {
    /// Something that must hold after every event, at crashes, or at the end of a run.
    Invariant {
        /// Virtual visits of a node are those of its running descendants.
        VirtualVisits = "virtual_visits",
        /// Visits are the fold of settled nodes.
        Visits = "visits",
        /// A shelved node changes nothing.
        Shelved = "shelved",
        /// A node is settled once, and has the status of its settlement.
        SettledOnce = "settled_once",
        /// An effect ends once, after its start, and never starts again after its end.
        Effects = "effects",
        /// At most one review is open per node.
        Reviews = "reviews",
        /// Concurrency, number of nodes, attempts, one promotion at a time.
        Limits = "limits",
        /// One draw per created node, none for seeds and resumed work.
        Draws = "draws",
        /// No failure has a score, and none ranks above a success.
        Outranks = "outranks",
        /// Better scores rank higher, equal scores rank equally, U falls out of rank and visits.
        Standings = "standings",
        /// With every rule off the wrapper is the reference.
        Idle = "idle",
        /// The next node is the one that the rules in their most stupid form give.
        Naive = "naive",
        /// Promotions, reviews and finalists are those of an independent ranking.
        Slate = "slate",
        /// A plateau is announced when, and only when, the nodes say so.
        Plateau = "plateau",
        /// Families are covered in the documented order.
        Coverage = "coverage",
        /// A promotion measures every seed in its epoch and takes the mean of exactly those.
        Promotion = "promotion",
        /// Control runs and view checks say what their outputs say; what is promoted or guarded has
        /// passed its view check.
        Checks = "checks",
        /// Checks find what the program is like.
        Nature = "nature",
        /// Results of control runs change no decision.
        Ablation = "ablation",
        /// No deadline moves later, and the hard end never moves.
        Deadlines = "deadlines",
        /// What is wanted is sorted, unique, has a deadline; one thing at a time with one node.
        Wanted = "wanted",
        /// A retry after an infrastructure fault waits for the end of its pause.
        Retries = "retries",
        /// Final selection writes the baseline first and replaces it only on a complete guard.
        Final = "final",
        /// A run ends, with every node settled and nothing wanted.
        Ends = "ends",
        /// `decide` gives the same batch twice, has no facts in it, and comes to an end.
        Decides = "decides",
        /// An event survives storage.
        Storage = "storage",
        /// A stored event or a wanted result is accepted; anything else is refused.
        Accepts = "accepts",
        /// The fold of a prefix is the state at that time.
        Fold = "fold",
        /// Replay finds the same bytes.
        Replay = "replay",
    }
}

/// How the text of a breach begins.
const HEAD: &str = "broken invariant ";

/// Raises a breach unless `holds`.
///
/// # Panics
/// With the invariant's name and `what` when it does not hold.
#[track_caller]
pub fn must(holds: bool, invariant: Invariant, what: impl FnOnce() -> String) {
    if !holds {
        panic!("{HEAD}{}: {}", invariant.as_str(), what());
    }
}

/// Name and text of a breach; absent for the text of any other panic.
#[must_use]
pub fn breach(text: &str) -> Option<(Invariant, &str)> {
    let (name, what) = text.strip_prefix(HEAD)?.split_once(": ")?;
    let mut all = Invariant::ALL.iter();
    Some((*all.find(|known| known.as_str() == name)?, what))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The invariant that `work` breaks, if it breaks one.
    pub(crate) fn raised(work: impl FnOnce()) -> Option<Invariant> {
        let raised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).err()?;
        let text = raised.downcast_ref::<String>()?;
        breach(text).map(|(invariant, _)| invariant)
    }

    #[test]
    fn a_breach_tells_its_name_and_other_panics_do_not() {
        for invariant in Invariant::ALL {
            let raised = std::panic::catch_unwind(|| must(false, *invariant, || "a: b".to_owned()));
            let payload = raised.expect_err("raised");
            let text = payload.downcast_ref::<String>().expect("text");
            assert_eq!(breach(text), Some((*invariant, "a: b")));
        }
        must(true, Invariant::Ends, || unreachable!());
        assert_eq!(breach("index out of bounds: the len is 3"), None);
    }
}
