//! "What is the next node", in the most stupid way: rows and the book in, one answer out. No state, no
//! short cuts, no code shared with `vec_search`. Ranks and U are in `naive/futs`, families of drafts
//! in `naive/families`.

mod families;
mod futs;

use std::collections::BTreeSet;

use vec_search::{DraftMode, Policy, SelectReason};
use vec_types::{FamilyId, NodeId, Operator, SeedState};

use crate::book::{Book, index};
use crate::row::Row;

/// How the next node comes to be, from which parent and why, or in which family and how.
pub(crate) type Next = (
    Operator,
    Option<(NodeId, SelectReason)>,
    Option<(FamilyId, DraftMode)>,
);

/// What the rules see.
#[derive(Debug)]
pub(crate) struct Naive<'a>(pub &'a Policy, pub &'a [Row], pub &'a Book);

impl Naive<'_> {
    /// CAR-13, CAR-14, CAR-22: the carried-over work that is next, and whether it is taken up.
    pub(crate) fn carried(&self) -> Option<(NodeId, bool)> {
        let Self(policy, rows, book) = self;
        let works = book.nodes.iter().map(|entry| entry.work.as_ref());
        let mut open = rows
            .iter()
            .zip(works)
            .filter_map(|(row, work)| Some((row, work?)));
        let (row, _) = open.find(|(_, work)| !book.works.contains(work))?;
        if row
            .parent
            .is_some_and(|parent| rows[index(parent)].is_refused)
        {
            return Some((row.id, false));
        }
        (book.resumed < policy.continuation.max_resume).then_some((row.id, true))
    }

    /// OPR-01, OPR-03, O-STP-2, PLT-02.
    pub(crate) fn next(&self, u: f64) -> Option<Next> {
        let draft = || Some((Operator::Draft, None, Some(self.family()?)));
        let debug = || Some((Operator::Debug, Some(self.debug_target()?), None));
        let improve = || Some((Operator::Improve, Some(self.improve_parent()?), None));
        let mut draft_p = self.0.draft_p;
        if self.2.plateau {
            draft_p = draft_p
                .max(self.0.plateau.draft_p)
                .min(1.0 - self.0.debug_p - self.0.tune_p);
        }
        let drawn = match u {
            u if u < draft_p => draft().or_else(improve),
            u if u < draft_p + self.0.debug_p => debug().or_else(improve),
            _ => improve(),
        };
        drawn.or_else(|| draft().filter(|_| !self.1.iter().any(Row::is_running)))
    }

    /// SEL-05, SEL-06, SEL-08, SEL-10.
    fn improve_parent(&self) -> Option<(NodeId, SelectReason)> {
        let may = self
            .1
            .iter()
            .filter(|row| row.is_scored() && !row.is_refused);
        let may = may.filter(|row| !row.is_view_dependent && !self.is_blocked(row));
        let free = may.clone().filter(|row| !self.is_suspended(row));
        let idle = free
            .clone()
            .filter(|row| !self.children(row).any(Row::is_running));
        let pools: [(Vec<&Row>, SelectReason); 3] = [
            (idle.collect(), SelectReason::ArgmaxU),
            (free.collect(), SelectReason::ArgmaxUBusy),
            (may.collect(), SelectReason::ArgmaxUSuspended),
        ];
        let (pool, reason) = pools.into_iter().find(|(pool, _)| !pool.is_empty())?;
        match self.owed(&pool) {
            Some(owed) => Some((owed, SelectReason::ReserveImprove)),
            None => Some((self.largest_u(pool.iter().map(|row| (*row, *row)))?, reason)),
        }
    }

    /// SEL-10: the first qualified draft of each family, oldest first, while it has no improve.
    fn owed(&self, pool: &[&Row]) -> Option<NodeId> {
        let anchor = self.anchor()?;
        let floor = anchor.seed_0? - self.0.select.reserve_improve?;
        let mut families = BTreeSet::new();
        let is_improve = |row: &Row| row.operator == Operator::Improve && !row.status.is_shelved();
        let firsts = self.1.iter().filter(|row| {
            let is_own = row.output.is_none() || row.output != anchor.output;
            let is_good = row.is_scored() && row.seed_0.is_some_and(|score| score >= floor);
            let qualifies = row.operator == Operator::Draft && is_good && is_own;
            qualifies
                && row
                    .family
                    .as_ref()
                    .is_some_and(|family| families.insert(family))
        });
        let mut unserved = firsts.filter(|row| !self.children(row).any(is_improve));
        let owed = unserved.find(|row| pool.iter().any(|other| other.id == row.id));
        owed.map(|row| row.id)
    }

    fn anchor(&self) -> Option<&Row> {
        let mut newest = self.1.iter().rev();
        newest.find(|row| row.is_own && row.seed == Some(SeedState::Anchor))
    }

    /// SEL-09, SED-05, PLT-02.
    fn is_blocked(&self, row: &Row) -> bool {
        let children = self
            .children(row)
            .filter(|child| !child.status.is_shelved());
        let is_full = children.count() >= self.0.seed_max_children as usize;
        match row.seed {
            Some(SeedState::ReferenceOnly) => true,
            Some(SeedState::Exploration) => is_full && !self.2.plateau,
            Some(SeedState::Anchor) | None => false,
        }
    }

    /// SEL-06, O-SEL-3.
    fn is_suspended(&self, row: &Row) -> bool {
        let len = self.0.select.streak_len as usize;
        let settled = self.2.settled.iter().rev().map(|id| &self.1[index(*id)]);
        let mut settled = settled.filter(|last| !last.status.is_shelved());
        let is_child = |last: &&Row| last.parent == Some(row.id);
        let counts = |last: &&Row| self.0.select.streak_counts_gen || !last.is_gen();
        let children = settled.clone().filter(is_child).filter(counts);
        let streak = children.take_while(|child| !child.is_scored()).count();
        len > 0 && streak >= len && settled.next().is_some_and(|last| is_child(&last))
    }

    /// O-OPR-2.
    fn debug_target(&self) -> Option<(NodeId, SelectReason)> {
        let may = self.1.iter().rev().filter(|row| {
            let repairs = self
                .children(row)
                .filter(|child| child.operator == Operator::Debug);
            let repairs = repairs.filter(|child| !child.status.is_shelved());
            row.status.is_candidate_fault()
                && !row.is_view_dependent
                && row.operator != Operator::Seed
                && !self.children(row).any(Row::is_running)
                && !repairs.clone().any(Row::is_scored)
                && repairs.count() < self.0.debug_max_attempts as usize
        });
        let target = self.largest_u(may.map(|row| (row, self.scored_ancestor(row).unwrap_or(row))));
        Some((target?, SelectReason::DebugTarget))
    }

    fn scored_ancestor(&self, row: &Row) -> Option<&Row> {
        let parent = &self.1[index(row.parent?)];
        if parent.is_scored() {
            Some(parent)
        } else {
            self.scored_ancestor(parent)
        }
    }

    fn children(&self, of: &Row) -> impl Iterator<Item = &Row> + Clone {
        let parent = Some(of.id);
        self.1.iter().filter(move |row| row.parent == parent)
    }
}
