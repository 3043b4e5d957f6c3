//! Which family a draft is for (DRF): round robin, or coverage of every family and then a bandit;
//! during a plateau, families without success first (DRF-10).
//!
//! A draft counts for the family that it was drawn for. It *covers* that family and the one that
//! its plan names (DRF-11): else a Researcher that always answers `other` would make coverage draw
//! one family for ever.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use vec_types::{FamilyId, Operator, Score};

use crate::failure::Coverage;
use crate::identity::has_same_output;
use crate::node::Node;
use crate::planted::{self, Bug};
use crate::state::Run;
use crate::{Draft, DraftMode, Family, Policy};

/// Drafts of one family so far, imports included.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    attempts: u32,
    failed: u32,
    scored: u32,
    is_covered: bool,
}

struct Library<'a> {
    /// In coverage order, or library order for round robin.
    order: Vec<&'a FamilyId>,
    tallies: BTreeMap<&'a FamilyId, Tally>,
}

/// The family of the next draft; absent when the library is empty.
pub(crate) fn next_family(run: &Run, plateau: bool) -> Option<(FamilyId, DraftMode)> {
    let library = Library::of(run);
    let (family, mode) = match run.policy.draft {
        Draft::RoundRobin if plateau => (library.fewest(|tally| tally.scored), DraftMode::Plateau),
        Draft::RoundRobin => (
            library.fewest(|tally| tally.attempts),
            DraftMode::RoundRobin,
        ),
        Draft::CoverageBandit {
            failed_cap,
            min_explore,
        } => {
            let without_success = plateau.then(|| library.without_success()).flatten();
            let first = || (library.uncovered(run, failed_cap), DraftMode::Coverage);
            match without_success {
                Some(family) => (Some(family), DraftMode::Plateau),
                None => match first() {
                    (None, _) => library.bandit(run, min_explore),
                    found => found,
                },
            }
        }
    };
    Some((family?.clone(), mode))
}

impl<'a> Library<'a> {
    fn of(run: &'a Run) -> Self {
        let mut tallies: BTreeMap<&FamilyId, Tally> = BTreeMap::new();
        for node in run.nodes.iter().filter(|n| n.operator == Operator::Draft) {
            count(&mut tallies, node);
        }
        Self {
            order: order(&run.policy),
            tallies,
        }
    }

    fn tally(&self, family: &FamilyId) -> Tally {
        self.tallies.get(family).copied().unwrap_or_default()
    }

    /// `min_by_key` takes the first among equals.
    fn fewest(&self, of: impl Fn(Tally) -> u32) -> Option<&'a FamilyId> {
        let order = self.order.iter().copied();
        order.min_by_key(|family| of(self.tally(family)))
    }

    /// DRF-10: no scored draft yet, fewest failures first.
    fn without_success(&self) -> Option<&'a FamilyId> {
        let order = self.order.iter().copied();
        order
            .filter(|family| self.tally(family).scored == 0)
            .min_by_key(|family| self.tally(family).failed)
    }

    /// DRF-03, DRF-04: the first that neither a draft nor a seed covers.
    fn uncovered(&self, run: &Run, failed_cap: u32) -> Option<&'a FamilyId> {
        let seeded = families_of_seeds(run);
        self.order.iter().copied().find(|family| {
            let tally = self.tally(family);
            !tally.is_covered && tally.failed < failed_cap && !seeded.contains(*family)
        })
    }

    /// DRF-05: a fixed share explores, the rest goes where promoted nodes gained most.
    fn bandit(&self, run: &Run, min_explore: f64) -> (Option<&'a FamilyId>, DraftMode) {
        let explored = |picks: u32| (f64::from(picks) * min_explore).floor();
        let picks = run.bandit_picks;
        let best = if explored(picks + 1) > explored(picks) {
            None
        } else {
            self.best_gain(run)
        };
        match best {
            Some(family) => (Some(family), DraftMode::Exploit),
            None => (self.fewest(|tally| tally.attempts), DraftMode::Explore),
        }
    }

    /// The family whose promoted nodes are most above the baseline, if any is above it.
    fn best_gain(&self, run: &Run) -> Option<&'a FamilyId> {
        let baseline = run.anchor()?.ranking_score()?.get();
        let mut sums: BTreeMap<&FamilyId, (f64, f64)> = BTreeMap::new();
        for node in run.nodes.iter().filter(|node| node.is_scored()) {
            if let (Some(family), Some(mean)) = (&node.family, node.promotion.mean) {
                let (sum, n) = sums.entry(family).or_default();
                *sum += mean.score.get() - baseline;
                *n += 1.0;
            }
        }
        let gain = |family: &&FamilyId| {
            let (sum, n) = sums.get(*family)?;
            Score::new(sum / n).ok().filter(|gain| gain.get() > 0.0)
        };
        let order = self.order.iter().copied().enumerate();
        let gains = order.filter_map(|(place, family)| Some((gain(&family)?, place, family)));
        let best = gains.max_by_key(|(gain, place, _)| (*gain, Reverse(*place)));
        best.map(|(_, _, family)| family)
    }
}

fn count<'a>(tallies: &mut BTreeMap<&'a FamilyId, Tally>, node: &'a Node) {
    let mut coverage = node.consequence().coverage;
    if planted::is(Bug::FailedDraftOccupies) && coverage == Coverage::Fails {
        coverage = Coverage::Covers;
    }
    let covers = coverage == Coverage::Covers;
    if let Some(drawn) = &node.drawn_family {
        let tally = tallies.entry(drawn).or_default();
        tally.attempts += 1;
        tally.failed += u32::from(coverage == Coverage::Fails);
        tally.scored += u32::from(node.is_scored());
        tally.is_covered |= covers;
    }
    if let Some(family) = &node.family {
        tallies.entry(family).or_default().is_covered |= covers;
    }
}

/// SED-07: a seed covers its family once it is scored and its output is not the baseline's.
fn families_of_seeds(run: &Run) -> BTreeSet<&FamilyId> {
    let Some(anchor) = run.anchor() else {
        return BTreeSet::new();
    };
    let seeds = run.nodes.iter();
    let seeds = seeds.filter(|node| node.operator == Operator::Seed && node.is_scored());
    seeds
        .filter(|seed| !has_same_output(run, seed, anchor))
        .filter_map(|seed| seed.seed.as_ref()?.family.as_ref())
        .collect()
}

fn order(policy: &Policy) -> Vec<&FamilyId> {
    match policy.draft {
        Draft::RoundRobin => policy.families.iter().map(|family| &family.id).collect(),
        Draft::CoverageBandit { .. } => coverage_order(&policy.families, policy.search_seed.0),
    }
}

/// DRF-02: categories rotated left by the search seed, the families of each too, then one of each
/// category in turn; a category that is used up is passed over (O-DRF-4).
pub(crate) fn coverage_order(families: &[Family], search_seed: u32) -> Vec<&FamilyId> {
    let mut categories: Vec<(Option<&str>, Vec<&FamilyId>)> = Vec::new();
    for family in families {
        let category = family.category.as_deref();
        match categories.iter_mut().find(|(name, _)| *name == category) {
            Some((_, members)) => members.push(&family.id),
            None => categories.push((category, vec![&family.id])),
        }
    }
    rotate(&mut categories, search_seed);
    for (_, members) in &mut categories {
        rotate(members, search_seed);
    }
    let longest = categories.iter().map(|(_, members)| members.len()).max();
    (0..longest.unwrap_or(0))
        .flat_map(|row| {
            categories
                .iter()
                .filter_map(move |(_, m)| m.get(row).copied())
        })
        .collect()
}

fn rotate<T>(list: &mut [T], search_seed: u32) {
    if !list.is_empty() && !planted::is(Bug::CoverageRotationWrong) {
        let by = usize::try_from(search_seed).unwrap_or(0) % list.len();
        list.rotate_left(by);
    }
}
