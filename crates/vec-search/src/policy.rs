//! Everything of the lock that decisions rest on. It is the payload of `run_start`, so a fold
//! needs no other input.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vec_types::{FamilyId, ProgramSeed, RulerId, SearchSeed, SeedProgramId, SeedState, ViewId};

use crate::Deadlines;

/// The locked rules of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Seed of the operator draw (O-OPR-1).
    pub search_seed: SearchSeed,
    /// Nodes in work at a time, at least 1 (ARC-09).
    pub concurrency_nodes: u32,
    /// Probability of draft, in 0..=1 (OPR-02).
    pub draft_p: f64,
    /// Probability of debug, in 0..=1.
    pub debug_p: f64,
    /// Probability of tune; 0 until the operator exists (TUN-01).
    pub tune_p: f64,
    /// Debug children per failed node (O-OPR-2).
    pub debug_max_attempts: u32,
    /// Parent selection.
    pub select: Select,
    /// Families for drafts, in library order (DRF-08).
    pub families: Vec<FamilyId>,
    /// Seed programs in order of execution.
    pub seed_programs: Vec<SeedProgram>,
    /// Children of an exploration seed before it is blocked (SED-05, O-SED-2).
    pub seed_max_children: u32,
    /// Objective components and their weights, summing to 1 (RUL-01).
    pub objective: BTreeMap<RulerId, f64>,
    /// View that each objective component runs on.
    pub ruler_views: BTreeMap<RulerId, ViewId>,
    /// View on which the answer is made.
    pub final_view: ViewId,
    /// Promotion takes the best `promotion_top_k` (PRO-01).
    pub promotion_top_k: u32,
    /// Program seeds of a promotion, beside seed 0 (PRO-02).
    pub promotion_seeds: Vec<ProgramSeed>,
    /// Candidates of final selection (FIN-05).
    pub final_top_k: u32,
    /// The guard (FIN-07).
    pub guard: Guard,
    /// Which checks promotion and final selection demand.
    pub checks: ChecksMode,
    /// Time and node budget, relative to `run_start`.
    pub budget: Budget,
}

/// A seed program as locked (SED-01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedProgram {
    /// Its directory name.
    pub id: SeedProgramId,
    /// What it may become.
    pub state: SeedState,
    /// Family that it covers; absent for the baseline.
    pub family: Option<FamilyId>,
}

/// Parent selection (SEL).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// FUTS exploration constant, > 0 (O-SEL-1).
    pub c_puct: f64,
    /// Do `gen_*` failures count for streaks (O-SEL-2 overridden: default false).
    pub streak_counts_gen: bool,
}

/// Kind of guard (O-FIN-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardKind {
    /// One candidate, paired fresh seeds, t lower bound > 0 (FIN-07).
    Noninferiority,
}

/// The statistical guard in front of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Kind.
    pub kind: GuardKind,
    /// Fresh seeds; program seed = scoring seed.
    pub fresh_seeds: Vec<ProgramSeed>,
}

/// Which checks must have passed before promotion and final selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksMode {
    /// View check and ablation are recorded `not_run` and accepted; a reason against submission.
    FirstLight,
}

/// Budget in milliseconds relative to `run_start` (BUD, requirements c).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Nodes of this run, seed programs not counted.
    pub max_nodes: u32,
    /// Hard end of the run.
    pub wall_ms: i64,
    /// Time kept for final selection.
    pub final_reserve_ms: i64,
    /// Hand-off is this much before cutoff.
    pub node_tail_ms: i64,
    /// Settling may take this much after cutoff and grace.
    pub settle_extra_ms: i64,
    /// Settling ends at least this much before the hard end.
    pub settle_guard_ms: i64,
    /// TERM to KILL.
    pub term_grace_ms: i64,
    /// Room to place the winner, beside measured run times (FIN-09).
    pub place_room_ms: i64,
}

impl Policy {
    /// Views that objective components run on.
    #[must_use]
    pub fn objective_views(&self) -> BTreeSet<&ViewId> {
        self.objective
            .keys()
            .filter_map(|ruler| self.ruler_views.get(ruler))
            .collect()
    }

    /// What contradicts itself; empty for a policy that a run can follow. `run_start` with problems
    /// is refused.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Deadlines::problems(&self.budget);
        let mut must = |holds: bool, text: String| {
            if !holds {
                problems.push(text);
            }
        };
        must(
            self.concurrency_nodes >= 1,
            "concurrency.nodes must be at least 1".to_owned(),
        );
        must(
            self.select.c_puct.is_finite() && self.select.c_puct > 0.0,
            "select.c_puct must be a number above 0".to_owned(),
        );
        for (key, p) in [("draft.p", self.draft_p), ("debug.p", self.debug_p)] {
            must(
                (0.0..=1.0).contains(&p),
                format!("{key} must be in 0..=1, found {p}"),
            );
        }
        must(
            self.draft_p + self.debug_p <= 1.0,
            "draft.p + debug.p must be at most 1".to_owned(),
        );
        must(
            self.tune_p == 0.0,
            "tune.p must be 0: the operator does not exist yet".to_owned(),
        );
        self.seed_program_problems(&mut must);
        self.scoring_problems(&mut must);
        problems
    }

    fn seed_program_problems(&self, must: &mut impl FnMut(bool, String)) {
        let anchors = self.seed_programs.iter();
        let anchors = anchors
            .filter(|seed| seed.state == SeedState::Anchor)
            .count();
        must(
            anchors == 1,
            format!("exactly one seed program must be the anchor, found {anchors}"),
        );
        let ids: BTreeSet<_> = self.seed_programs.iter().map(|seed| &seed.id).collect();
        must(
            ids.len() == self.seed_programs.len(),
            "seed programs must have different ids".to_owned(),
        );
        let families: BTreeSet<_> = self.families.iter().collect();
        must(
            families.len() == self.families.len(),
            "families must have different ids".to_owned(),
        );
    }

    fn scoring_problems(&self, must: &mut impl FnMut(bool, String)) {
        must(
            !self.objective.is_empty(),
            "at least one ruler must have the role objective".to_owned(),
        );
        for ruler in self.objective.keys() {
            must(
                self.ruler_views.contains_key(ruler),
                format!("ruler {ruler} has no view"),
            );
        }
        let fresh: BTreeSet<_> = self.guard.fresh_seeds.iter().copied().collect();
        must(
            fresh.len() >= 2 && fresh.len() == self.guard.fresh_seeds.len(),
            "guard.fresh_seeds must be at least two different seeds".to_owned(),
        );
        let promotion: BTreeSet<_> = self.promotion_seeds.iter().copied().collect();
        let distinct = promotion.len() == self.promotion_seeds.len();
        must(
            distinct && !promotion.contains(&ProgramSeed(0)),
            "promotion seeds must be different from each other and from 0".to_owned(),
        );
        must(
            fresh.is_disjoint(&promotion) && !fresh.contains(&ProgramSeed(0)),
            "guard.fresh_seeds must not be seed 0 or promotion seeds".to_owned(),
        );
    }
}
