//! What contradicts itself in a policy. The loader refuses the same with file and key; this is the
//! last line, in front of `run_start`.

use std::collections::BTreeSet;

use vec_types::{ProgramSeed, SeedState};

use super::{Draft, Policy};
use crate::Deadlines;

pub(super) fn problems(policy: &Policy) -> Vec<String> {
    let mut problems = Problems(Deadlines::problems(&policy.budget));
    problems.must(
        policy.concurrency_nodes >= 1,
        "concurrency.nodes must be at least 1",
    );
    operators(policy, &mut problems);
    selection(policy, &mut problems);
    library(policy, &mut problems);
    seed_programs(policy, &mut problems);
    scoring(policy, &mut problems);
    checks(policy, &mut problems);
    problems.0
}

struct Problems(Vec<String>);

impl Problems {
    fn must(&mut self, holds: bool, text: impl Into<String>) {
        if !holds {
            self.0.push(text.into());
        }
    }
}

fn checks(policy: &Policy, problems: &mut Problems) {
    let (sample, views) = (policy.view_check.sample, &policy.view_check.views);
    problems.must(
        (0.0..=1.0).contains(&sample),
        format!("viewcheck.sample must be in 0..=1, found {sample}"),
    );
    let wait = policy.view_check.lock_wait_ms;
    problems.must(
        wait >= 0,
        format!("viewcheck.lock_wait must not be negative, found {wait} ms"),
    );
    problems.must(!views.is_empty(), "view_check_views names no view");
    let objective = policy.objective_views();
    for view in views {
        problems.must(
            objective.contains(view),
            format!("view_check_views: {view} is no objective view"),
        );
    }
}

fn operators(policy: &Policy, problems: &mut Problems) {
    let shares = [
        ("draft.p", policy.draft_p),
        ("debug.p", policy.debug_p),
        ("tune.p", policy.tune_p),
        ("plateau.draft_p", policy.plateau.draft_p),
    ];
    for (key, p) in shares {
        problems.must(
            (0.0..=1.0).contains(&p),
            format!("{key} must be in 0..=1, found {p}"),
        );
    }
    problems.must(
        policy.draft_p + policy.debug_p + policy.tune_p <= 1.0,
        "draft.p + debug.p + tune.p must be at most 1",
    );
    problems.must(
        policy.tune_p == 0.0,
        "tune.p must be 0: the operator does not exist yet",
    );
    problems.must(
        policy.plateau.window >= 1 && policy.plateau.top_k >= 1,
        "plateau.window and plateau.top_k must be at least 1",
    );
}

fn selection(policy: &Policy, problems: &mut Problems) {
    let c_puct = policy.select.c_puct;
    problems.must(
        c_puct.is_finite() && c_puct > 0.0,
        "select.c_puct must be a number above 0",
    );
    let margin = policy.select.reserve_improve.unwrap_or(0.0);
    problems.must(
        margin.is_finite() && margin >= 0.0,
        "select.reserve_margin must be a number of at least 0",
    );
}

fn library(policy: &Policy, problems: &mut Problems) {
    let ids: BTreeSet<_> = policy.families.iter().map(|family| &family.id).collect();
    problems.must(
        ids.len() == policy.families.len(),
        "families must have different ids",
    );
    if let Draft::CoverageBandit {
        failed_cap,
        min_explore,
    } = policy.draft
    {
        problems.must(failed_cap >= 1, "draft.failed_cap must be at least 1");
        problems.must(
            (0.0..=1.0).contains(&min_explore),
            format!("draft.min_explore must be in 0..=1, found {min_explore}"),
        );
    }
}

fn seed_programs(policy: &Policy, problems: &mut Problems) {
    let anchors = policy.seed_programs.iter();
    let anchors = anchors
        .filter(|seed| seed.state == SeedState::Anchor)
        .count();
    problems.must(
        anchors == 1,
        format!("exactly one seed program must be the anchor, found {anchors}"),
    );
    let ids: BTreeSet<_> = policy.seed_programs.iter().map(|seed| &seed.id).collect();
    problems.must(
        ids.len() == policy.seed_programs.len(),
        "seed programs must have different ids",
    );
}

fn scoring(policy: &Policy, problems: &mut Problems) {
    problems.must(
        !policy.objective.is_empty(),
        "at least one ruler must have the role objective",
    );
    for ruler in policy.objective.keys() {
        problems.must(
            policy.ruler_views.contains_key(ruler),
            format!("ruler {ruler} has no view"),
        );
    }
    let fresh: BTreeSet<_> = policy.guard.fresh_seeds.iter().copied().collect();
    problems.must(
        fresh.len() >= 2 && fresh.len() == policy.guard.fresh_seeds.len(),
        "guard.fresh_seeds must be at least two different seeds",
    );
    let promotion: BTreeSet<_> = policy.promotion_seeds.iter().copied().collect();
    problems.must(
        promotion.len() == policy.promotion_seeds.len() && !promotion.contains(&ProgramSeed(0)),
        "promotion seeds must be different from each other and from 0",
    );
    problems.must(
        fresh.is_disjoint(&promotion) && !fresh.contains(&ProgramSeed(0)),
        "guard.fresh_seeds must not be seed 0 or promotion seeds",
    );
}
