//! Keys of the search policy with their ranges.

use crate::config::written::{
    WrittenDebug, WrittenDraft, WrittenPlateau, WrittenSelect, WrittenTune,
};
use crate::config::{
    DebugOperator, DraftOperator, DraftPolicy, Plateau, SelectConfig, TuneOperator,
};
use crate::load::{Checker, Numbers};

use super::seeds;

const C_PUCT_MAX: f64 = 1_000.0;
const ATTEMPTS_MAX: u32 = 100;
/// Longest streak or window, largest top, most failed drafts.
const COUNT_MAX: u32 = 1_000;
/// One seed measures; more only measure better.
const TUNE_SEEDS_MIN: usize = 1;

pub(super) fn draft(written: Option<WrittenDraft>, check: &mut Checker<'_>) -> DraftOperator {
    let WrittenDraft {
        p,
        policy,
        failed_cap,
        min_explore,
    } = Checker::block(written);
    DraftOperator {
        p: check.number("draft.p", p, Numbers::Probability),
        policy: check
            .required("draft.policy", policy, "`round_robin` or `coverage_bandit`")
            .unwrap_or(DraftPolicy::RoundRobin),
        failed_cap: check.whole("draft.failed_cap", failed_cap, 1..=COUNT_MAX),
        min_explore: check.number("draft.min_explore", min_explore, Numbers::Probability),
    }
}

pub(super) fn debug(written: Option<WrittenDebug>, check: &mut Checker<'_>) -> DebugOperator {
    let WrittenDebug { p, max_attempts } = Checker::block(written);
    DebugOperator {
        p: check.number("debug.p", p, Numbers::Probability),
        max_attempts: check.whole("debug.max_attempts", max_attempts, 1..=ATTEMPTS_MAX),
    }
}

pub(super) fn tune(written: Option<WrittenTune>, check: &mut Checker<'_>) -> TuneOperator {
    let WrittenTune { p, seeds } = Checker::block(written);
    let p = check.number("tune.p", p, Numbers::Probability);
    if p > 0.0 {
        check.refuse("tune.p", "the tune operator does not exist yet; must be 0");
    }
    TuneOperator {
        p,
        seeds: seeds::list("tune.seeds", seeds, TUNE_SEEDS_MIN, check),
    }
}

pub(super) fn select(written: Option<WrittenSelect>, check: &mut Checker<'_>) -> SelectConfig {
    let WrittenSelect {
        c_puct,
        streak_counts_gen,
        streak_len,
        reserve_improve,
        reserve_margin,
    } = Checker::block(written);
    let counts_gen = "select.streak_counts_gen";
    let reserve = "select.reserve_improve";
    let margin = "select.reserve_margin";
    SelectConfig {
        c_puct: check.number("select.c_puct", c_puct, Numbers::PositiveTo(C_PUCT_MAX)),
        streak_counts_gen: is_on(counts_gen, streak_counts_gen, check),
        streak_len: check.whole("select.streak_len", streak_len, 0..=COUNT_MAX),
        reserve_improve: is_on(reserve, reserve_improve, check),
        reserve_margin: check.number(margin, reserve_margin, Numbers::NotNegative),
    }
}

pub(super) fn plateau(written: Option<WrittenPlateau>, check: &mut Checker<'_>) -> Plateau {
    let WrittenPlateau {
        enabled,
        window,
        top_k,
        draft_p,
    } = Checker::block(written);
    Plateau {
        enabled: is_on("plateau.enabled", enabled, check),
        window: check.whole("plateau.window", window, 1..=COUNT_MAX),
        top_k: check.whole("plateau.top_k", top_k, 1..=COUNT_MAX),
        draft_p: check.number("plateau.draft_p", draft_p, Numbers::Probability),
    }
}

fn is_on(key: &str, written: Option<bool>, check: &mut Checker<'_>) -> bool {
    check
        .required(key, written, "true or false")
        .unwrap_or(false)
}
