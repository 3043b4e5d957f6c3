//! Seeded policies: every rule on and off, budgets that bite, one to four nodes at a time.

use vec_search::{Continuation, Draft, Plateau, Policy, Reserve};
use vec_types::{SearchSeed, SeedState};

use crate::fixture::{self, family, seed_program};
use crate::random::Random;

/// A policy in which every rule may be on.
#[must_use]
pub(crate) fn any(random: &mut Random) -> Policy {
    let mut policy = fixture::policy();
    policy.search_seed = SearchSeed(random.small(1 << 30));
    policy.concurrency_nodes = 1 + random.small(4);
    let is_large = random.hits(10);
    policy.budget.max_nodes = random.small(if is_large { 160 } else { 50 });
    policy.draft_p = f64::from(random.small(50)) / 100.0;
    policy.debug_p = f64::from(random.small(50)) / 100.0;
    policy.seed_max_children = 1 + random.small(3);
    policy.promotion_top_k = random.small(7);
    select(&mut policy, random);
    library(&mut policy, random);
    policy.plateau = Plateau {
        enabled: random.hits(60),
        window: 1 + random.small(6),
        top_k: 1 + random.small(5),
        draft_p: f64::from(random.small(101)) / 100.0,
    };
    if random.hits(30) {
        policy.budget.wall_ms = 900_000;
    }
    policy.reserve = random.hits(30).then(|| Reserve {
        margin_ms: random.ms(120_000),
        queue_ms: random.ms(30_000),
        time_limit_ms: random.ms(600_000),
    });
    if random.hits(40) {
        let reference = seed_program("ref", SeedState::ReferenceOnly);
        policy.seed_programs.push(reference);
    }
    if random.hits(30) {
        second_view(&mut policy);
    }
    if random.hits(40) {
        policy.continuation = Continuation {
            imports: random.small(20),
            rescore_top_k: random.small(4),
            max_resume: random.small(4),
        };
    }
    policy.ablation = random.hits(50);
    policy.view_check.sample = f64::from(random.small(40)) / 100.0;
    policy.view_check.lock_wait_ms = random.ms(60_000);
    policy.guard.fresh_seeds.truncate(2 + random.index(4));
    policy.promotion_seeds.truncate(random.index(3));
    policy
}

fn select(policy: &mut Policy, random: &mut Random) {
    policy.select.c_puct = 0.1 + random.unit() * 2.0;
    policy.select.streak_counts_gen = random.hits(30);
    policy.select.streak_len = random.small(4);
    let margin = f64::from(random.small(40)) / 10.0;
    policy.select.reserve_improve = random.hits(60).then_some(margin);
}

fn library(policy: &mut Policy, random: &mut Random) {
    let categories = [Some("a"), Some("b"), Some("c"), None];
    let kinds = 1 + random.index(categories.len());
    policy.families = (0..random.index(10))
        .map(|place| {
            let id = [
                "linear", "trees", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9",
            ][place];
            family(id, categories[random.index(kinds)])
        })
        .collect();
    if random.hits(60) {
        policy.draft = Draft::CoverageBandit {
            failed_cap: 1 + random.small(3),
            min_explore: f64::from(random.small(101)) / 100.0,
        };
    }
}

fn second_view(policy: &mut Policy) {
    let (Ok(ruler), Ok(view)) = ("side".parse(), "side".parse()) else {
        return;
    };
    policy.ruler_views.insert(ruler, view);
    if let Ok(ruler) = "side".parse() {
        policy.objective.insert(ruler, 0.5);
    }
}

/// A policy whose wrapper has nothing to do: one node at a time, only improves, one seed, no rule.
#[must_use]
pub(crate) fn idle(random: &mut Random) -> Policy {
    let mut policy = fixture::policy();
    policy.search_seed = SearchSeed(random.small(1 << 30));
    policy.select.c_puct = 0.1 + random.unit() * 3.0;
    policy.select.streak_len = 0;
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = 5 + random.small(35);
    policy.budget.wall_ms = 24 * 3_600_000;
    policy
}
