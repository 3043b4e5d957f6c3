//! The family of a draft (DRF) and the plateau (PLT), by counting.

use vec_search::{Draft, DraftMode};
use vec_types::{FamilyId, Operator};

use super::Naive;
use crate::coverage::order;
use crate::row::Row;

impl Naive<'_> {
    /// DRF-03..06, DRF-08, DRF-10.
    pub(super) fn family(&self) -> Option<(FamilyId, DraftMode)> {
        let Draft::CoverageBandit {
            failed_cap,
            min_explore,
        } = self.0.draft
        else {
            let library: Vec<FamilyId> = self.0.families.iter().map(|f| f.id.clone()).collect();
            return if self.2.plateau {
                let scored =
                    |family: &FamilyId| self.drafts(family).filter(|d| d.is_scored()).count();
                Some((fewest(&library, scored)?, DraftMode::Plateau))
            } else {
                let all = |family: &FamilyId| self.drafts(family).count();
                Some((fewest(&library, all)?, DraftMode::RoundRobin))
            };
        };
        let order = order(&self.0.families, self.0.search_seed.0);
        let failed = |family: &FamilyId| self.drafts(family).filter(|d| d.is_failed()).count();
        if self.2.plateau {
            let unscored: Vec<FamilyId> = order
                .iter()
                .filter(|family| !self.drafts(family).any(Row::is_scored))
                .cloned()
                .collect();
            if let Some(family) = fewest(&unscored, failed) {
                return Some((family, DraftMode::Plateau));
            }
        }
        let open =
            |family: &&FamilyId| !self.is_covered(family) && failed(family) < failed_cap as usize;
        if let Some(family) = order.iter().find(open) {
            return Some((family.clone(), DraftMode::Coverage));
        }
        let k = f64::from(self.2.bandit_picks);
        let explores = ((k + 1.0) * min_explore).floor() > (k * min_explore).floor();
        if let Some(family) = self.best_gain(&order).filter(|_| !explores) {
            return Some((family, DraftMode::Exploit));
        }
        let all = |family: &FamilyId| self.drafts(family).count();
        Some((fewest(&order, all)?, DraftMode::Explore))
    }

    fn drafts(&self, family: &FamilyId) -> impl Iterator<Item = &Row> {
        let drafts = self.1.iter().filter(|row| row.operator == Operator::Draft);
        drafts.filter(move |row| row.drawn_family.as_ref() == Some(family))
    }

    /// By a draft that runs or was scored, drawn for it or planned in it; or by a seed (SED-07).
    fn is_covered(&self, family: &FamilyId) -> bool {
        let baseline = self.anchor();
        self.1.iter().any(|row| match row.operator {
            Operator::Draft => {
                let is_of = row.drawn_family.as_ref() == Some(family)
                    || row.family.as_ref() == Some(family);
                is_of && (row.is_running() || row.is_scored())
            }
            Operator::Seed => {
                let is_same =
                    baseline.is_some_and(|b| b.output.is_some() && b.output == row.output);
                row.family.as_ref() == Some(family) && row.is_scored() && !is_same
            }
            _ => false,
        })
    }

    /// DRF-05: the largest mean gain of promoted nodes over the baseline, above 0.
    fn best_gain(&self, order: &[FamilyId]) -> Option<FamilyId> {
        let baseline = self.anchor().filter(|anchor| anchor.is_scored())?.score;
        let gain = |family: &FamilyId| {
            let of_family = self
                .1
                .iter()
                .filter(|row| row.is_scored() && row.family.as_ref() == Some(family));
            let means: Vec<f64> = of_family
                .filter_map(|row| Some(row.mean? - baseline))
                .collect();
            means.iter().fold(0.0, |sum, gain| sum + gain) / means.len() as f64
        };
        let gains = order
            .iter()
            .map(|family| (gain(family), family))
            .filter(|(gain, _)| *gain > 0.0);
        let best = gains.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, family)| family.clone())
    }

    /// PLT-01, PLT-03, PLT-06, O-PLT-2.
    pub(crate) fn is_plateau(&self) -> bool {
        let plateau = &self.0.plateau;
        let own = self
            .1
            .iter()
            .filter(|row| row.is_own && row.is_scored() && row.operator != Operator::Seed);
        let mut own: Vec<&Row> = own.collect();
        own.sort_by_key(|row| std::cmp::Reverse(row.order));
        own.truncate(plateau.window as usize);
        plateau.enabled
            && own.len() == plateau.window as usize
            && !own.iter().any(|row| self.refreshes(row))
    }

    fn refreshes(&self, row: &Row) -> bool {
        let before = self
            .1
            .iter()
            .filter(|other| other.is_scored() && other.order < row.order);
        let before = before.filter(|other| other.epoch == row.seed_0_epoch);
        let mut scores: Vec<f64> = before.map(|other| other.score).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let last = scores.get(self.0.plateau.top_k as usize - 1);
        last.is_none_or(|last| row.seed_0.is_some_and(|own| own > *last))
    }
}

/// The first of the families with the fewest.
fn fewest(families: &[FamilyId], of: impl Fn(&FamilyId) -> usize) -> Option<FamilyId> {
    families.iter().min_by_key(|family| of(family)).cloned()
}
