//! Seed lists: distinct, bounded, and long enough for what they are for.

use vec_search::GuardKind;
use vec_types::ProgramSeed;

use crate::config::written::{WrittenGuard, WrittenPromotion};
use crate::config::{GuardConfig, Promotion};
use crate::load::Checker;

/// Largest program seed: a positive C int, because programs parse it as they like.
const SEED_MAX: u32 = i32::MAX as u32;
/// Longest seed list.
const SEEDS_MAX: usize = 64;
/// A t bound needs a standard deviation.
const GUARD_SEEDS_MIN: usize = 2;

pub(super) fn promotion(written: Option<WrittenPromotion>, check: &mut Checker<'_>) -> Promotion {
    let WrittenPromotion { top_k, seeds } = Checker::block(written);
    let seeds = list("promotion.seeds", seeds, 1, check);
    if seeds.contains(&ProgramSeed(0)) {
        check.refuse("promotion.seeds", "seed 0 is the search seed; leave it out");
    }
    Promotion {
        top_k: check.whole("promotion.top_k", top_k, 0..=1_000),
        seeds,
    }
}

pub(super) fn guard(written: Option<WrittenGuard>, check: &mut Checker<'_>) -> GuardConfig {
    let WrittenGuard { kind, fresh_seeds } = Checker::block(written);
    GuardConfig {
        kind: check
            .required("guard.kind", kind, "`noninferiority`")
            .unwrap_or(GuardKind::Noninferiority),
        fresh_seeds: list("guard.fresh_seeds", fresh_seeds, GUARD_SEEDS_MIN, check),
    }
}

pub(super) fn list(
    key: &str,
    written: Option<Vec<u32>>,
    shortest: usize,
    check: &mut Checker<'_>,
) -> Vec<ProgramSeed> {
    let written = written.unwrap_or_default();
    if written.len() < shortest || written.len() > SEEDS_MAX {
        check.refuse(
            key,
            format!("{} seeds; give {shortest} to {SEEDS_MAX}", written.len()),
        );
    }
    let mut seeds = Vec::new();
    for seed in written {
        if seed > SEED_MAX {
            check.refuse(key, format!("{seed} is above {SEED_MAX}"));
        } else if seeds.contains(&ProgramSeed(seed)) {
            check.refuse(key, format!("seed {seed} is given twice"));
        } else {
            seeds.push(ProgramSeed(seed));
        }
    }
    seeds
}
