//! Lock → the rules that `vec-search` decides by. Total: every lock that parses has a policy, and
//! `run_start` holds exactly this one.

use vec_search::{
    Budget, Continuation, Draft, Family, Guard, Plateau, Policy, Reserve, SeedProgram, Select,
    ViewCheck,
};

use crate::{
    Board, BoardFamily, Config, DraftOperator, DraftPolicy, Lock, RulerRole, SelectConfig, config,
    effective_limits,
};

/// The policy of a locked run.
#[must_use]
pub fn policy(lock: &Lock) -> Policy {
    policy_of(&lock.config, &lock.board_definition)
}

/// The policy of a configuration on a board.
#[must_use]
pub fn policy_of(config: &Config, board: &Board) -> Policy {
    let seconds = |s: u32| i64::from(s) * 1_000;
    let objective = board.objective();
    Policy {
        search_seed: config.search_seed,
        concurrency_nodes: config.concurrency.nodes,
        draft_p: config.draft.p,
        debug_p: config.debug.p,
        tune_p: config.tune.p,
        debug_max_attempts: config.debug.max_attempts,
        select: select_of(&config.select),
        draft: draft_of(&config.draft),
        plateau: plateau_of(&config.plateau),
        families: board.families.iter().map(family_of).collect(),
        seed_programs: board
            .seed_programs
            .iter()
            .map(|entry| SeedProgram {
                id: entry.id.clone(),
                state: entry.state,
                family: entry.family.clone(),
            })
            .collect(),
        seed_max_children: config.seed_states.max_children,
        ruler_views: board
            .rulers
            .iter()
            .filter(|(_, ruler)| ruler.role == RulerRole::Objective)
            .map(|(id, ruler)| (id.clone(), ruler.view.clone()))
            .collect(),
        objective,
        final_view: board.final_view.clone(),
        promotion_top_k: config.promotion.top_k,
        promotion_seeds: config.promotion.seeds.clone(),
        final_top_k: config.final_selection.top_k,
        guard: Guard {
            kind: config.guard.kind,
            fresh_seeds: config.guard.fresh_seeds.clone(),
        },
        ablation: config.ablation.enabled,
        view_check: ViewCheck {
            sample: config.viewcheck.sample,
            lock_wait_ms: seconds(config.viewcheck.lock_wait_s),
            // Every ruler that selection rests on.
            views: board
                .rulers
                .values()
                .filter(|ruler| ruler.role == RulerRole::Objective)
                .map(|ruler| ruler.view.clone())
                .collect(),
        },
        budget: Budget {
            max_nodes: config.budget.max_nodes,
            wall_ms: config.budget.wall_ms(),
            final_reserve_ms: config.budget.final_reserve_ms(),
            node_tail_ms: config.budget.node_tail_ms(),
            settle_extra_ms: seconds(config.budget.settle_extra_s),
            settle_guard_ms: seconds(config.budget.settle_guard_s),
            term_grace_ms: seconds(config.execution.term_grace_s),
            place_room_ms: seconds(config.final_selection.place_room_s),
        },
        reserve: Some(Reserve {
            margin_ms: seconds(config.final_selection.reserve_margin_s),
            queue_ms: seconds(config.scoring.queue_estimate_s),
            time_limit_ms: seconds(effective_limits(config, &board.limits).time_limit_s),
        }),
        continuation: Continuation::default(),
    }
}

fn select_of(select: &SelectConfig) -> Select {
    let SelectConfig {
        c_puct,
        streak_counts_gen,
        streak_len,
        reserve_improve,
        reserve_margin,
    } = *select;
    Select {
        c_puct,
        streak_counts_gen,
        streak_len,
        reserve_improve: reserve_improve.then_some(reserve_margin),
    }
}

fn draft_of(draft: &DraftOperator) -> Draft {
    match draft.policy {
        DraftPolicy::RoundRobin => Draft::RoundRobin,
        DraftPolicy::CoverageBandit => Draft::CoverageBandit {
            failed_cap: draft.failed_cap,
            min_explore: draft.min_explore,
        },
    }
}

fn plateau_of(plateau: &config::Plateau) -> Plateau {
    let config::Plateau {
        enabled,
        window,
        top_k,
        draft_p,
    } = *plateau;
    Plateau {
        enabled,
        window,
        top_k,
        draft_p,
    }
}

fn family_of(family: &BoardFamily) -> Family {
    Family {
        id: family.id.clone(),
        category: family.category.as_ref().map(ToString::to_string),
    }
}
