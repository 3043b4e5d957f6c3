//! Blocks of plain numbers with their ranges. The ranges are there to refuse slips of the pen
//! (a unit too large, a zero), not to forbid sizes that a workstation could carry.

use vec_types::SearchSeed;

use crate::config::written::{
    WrittenAblation, WrittenBudget, WrittenConcurrency, WrittenEngineer, WrittenEngineerStall,
    WrittenExecution, WrittenFinal, WrittenGpu, WrittenPlaybook, WrittenRestarts, WrittenScoring,
    WrittenSeedStates, WrittenViewCheck,
};
use crate::config::{
    Ablation, Budget, Concurrency, Engineer, EngineerStall, Execution, Final, Gpu, PlaybookTuning,
    Restarts, Scoring, SeedStates, ViewCheck,
};
use crate::load::{Checker, Numbers};

const NODES_AT_A_TIME_MAX: u32 = 64;
const WALL_HOURS_MAX: f64 = 24.0 * 28.0;
const MINUTES_MAX: f64 = 24.0 * 60.0 * 28.0;
const DAY_S: u32 = 24 * 60 * 60;
const NODES_MAX: u32 = 100_000;
const MEMORY_GB_MAX: f64 = 1_024.0;
const COST_USD_MAX: f64 = 1_000_000.0;
const QUERIES_MAX: u32 = 10_000;

pub(super) fn search_seed(written: Option<u32>, check: &mut Checker<'_>) -> SearchSeed {
    SearchSeed(check.whole("search_seed", written, 0..=u32::MAX))
}

pub(super) fn concurrency(
    written: Option<WrittenConcurrency>,
    check: &mut Checker<'_>,
) -> Concurrency {
    let WrittenConcurrency { nodes } = Checker::block(written);
    Concurrency {
        nodes: check.whole("concurrency.nodes", nodes, 1..=NODES_AT_A_TIME_MAX),
    }
}

pub(super) fn seed_states(
    written: Option<WrittenSeedStates>,
    check: &mut Checker<'_>,
) -> SeedStates {
    let WrittenSeedStates { max_children } = Checker::block(written);
    SeedStates {
        max_children: check.whole("seed_states.max_children", max_children, 0..=NODES_MAX),
    }
}

pub(super) fn budget(written: Option<WrittenBudget>, check: &mut Checker<'_>) -> Budget {
    let WrittenBudget {
        wall_hours,
        max_nodes,
        node_tail_minutes,
        final_reserve_minutes,
        settle_extra_s,
        settle_guard_s,
        max_cost_usd,
    } = Checker::block(written);
    let minutes = Numbers::UpTo(MINUTES_MAX);
    Budget {
        wall_hours: check.number(
            "budget.wall_hours",
            wall_hours,
            Numbers::PositiveTo(WALL_HOURS_MAX),
        ),
        max_nodes: check.whole("budget.max_nodes", max_nodes, 1..=NODES_MAX),
        node_tail_minutes: check.number("budget.node_tail_minutes", node_tail_minutes, minutes),
        final_reserve_minutes: check.number(
            "budget.final_reserve_minutes",
            final_reserve_minutes,
            minutes,
        ),
        settle_extra_s: check.whole("budget.settle_extra_s", settle_extra_s, 0..=DAY_S),
        settle_guard_s: check.whole("budget.settle_guard_s", settle_guard_s, 0..=DAY_S),
        max_cost_usd: max_cost_usd.map(|cap| {
            check.number(
                "budget.max_cost_usd",
                Some(cap),
                Numbers::PositiveTo(COST_USD_MAX),
            )
        }),
    }
}

pub(super) fn final_selection(written: Option<WrittenFinal>, check: &mut Checker<'_>) -> Final {
    let WrittenFinal {
        top_k,
        place_room_s,
        reserve_margin_s,
    } = Checker::block(written);
    Final {
        top_k: check.whole("final.top_k", top_k, 1..=1_000),
        place_room_s: check.whole("final.place_room_s", place_room_s, 0..=DAY_S),
        reserve_margin_s: check.whole("final.reserve_margin_s", reserve_margin_s, 0..=DAY_S),
    }
}

pub(super) fn scoring(written: Option<WrittenScoring>, check: &mut Checker<'_>) -> Scoring {
    let WrittenScoring {
        workers,
        worker_memory_gb,
        queue_estimate_s,
        settle_wait_s,
        client_quota,
    } = Checker::block(written);
    Scoring {
        workers: check.whole("scoring.workers", workers, 1..=64),
        worker_memory_gb: check.number(
            "scoring.worker_memory_gb",
            worker_memory_gb,
            Numbers::PositiveTo(MEMORY_GB_MAX),
        ),
        queue_estimate_s: check.whole("scoring.queue_estimate_s", queue_estimate_s, 0..=DAY_S),
        // The scorer's own bound on the wait of one call (SCO-08).
        settle_wait_s: check.whole("scoring.settle_wait_s", settle_wait_s, 1..=90),
        client_quota: check.whole("scoring.client_quota", client_quota, 0..=QUERIES_MAX),
    }
}

pub(super) fn execution(written: Option<WrittenExecution>, check: &mut Checker<'_>) -> Execution {
    let WrittenExecution {
        term_grace_s,
        threads,
        output_max_gb,
        time_limit_s,
    } = Checker::block(written);
    Execution {
        term_grace_s: check.whole("execution.term_grace_s", term_grace_s, 0..=3_600),
        threads: check.whole("execution.threads", threads, 1..=1_024),
        output_max_gb: check.number(
            "execution.output_max_gb",
            output_max_gb,
            Numbers::PositiveTo(MEMORY_GB_MAX),
        ),
        time_limit_s: time_limit_s
            .map(|limit| check.whole("execution.time_limit_s", Some(limit), 1..=7 * DAY_S)),
    }
}

pub(super) fn viewcheck(written: Option<WrittenViewCheck>, check: &mut Checker<'_>) -> ViewCheck {
    let WrittenViewCheck {
        sample,
        lock_wait_s,
    } = Checker::block(written);
    ViewCheck {
        sample: check.number("viewcheck.sample", sample, Numbers::UpTo(1.0)),
        lock_wait_s: check.whole("viewcheck.lock_wait_s", lock_wait_s, 0..=DAY_S),
    }
}

pub(super) fn ablation(written: Option<WrittenAblation>) -> Ablation {
    let WrittenAblation { enabled } = Checker::block(written);
    Ablation {
        enabled: enabled.unwrap_or_default(),
    }
}

pub(super) fn gpu(written: Option<WrittenGpu>, check: &mut Checker<'_>) -> Gpu {
    let WrittenGpu { slots } = Checker::block(written);
    let slots = check.whole("gpu.slots", slots, 0..=64);
    if slots > 0 {
        check.refuse(
            "gpu.slots",
            "GPU slots need the broker, which does not exist yet; must be 0",
        );
    }
    Gpu { slots }
}

pub(super) fn engineer(written: Option<WrittenEngineer>, check: &mut Checker<'_>) -> Engineer {
    let WrittenEngineer {
        minutes,
        memory_gb,
        work_gb,
    } = Checker::block(written);
    Engineer {
        minutes: minutes.map(|minutes| {
            check.number(
                "engineer.minutes",
                Some(minutes),
                Numbers::PositiveTo(MINUTES_MAX),
            )
        }),
        memory_gb: check.number(
            "engineer.memory_gb",
            memory_gb,
            Numbers::PositiveTo(MEMORY_GB_MAX),
        ),
        work_gb: check.number(
            "engineer.work_gb",
            work_gb,
            Numbers::PositiveTo(MEMORY_GB_MAX),
        ),
    }
}

pub(super) fn engineer_stall(
    written: Option<WrittenEngineerStall>,
    check: &mut Checker<'_>,
) -> EngineerStall {
    let WrittenEngineerStall { seconds, strikes } = Checker::block(written);
    EngineerStall {
        seconds: check.whole("engineer_stall.seconds", seconds, 1..=DAY_S),
        strikes: check.whole("engineer_stall.strikes", strikes, 1..=1_000),
    }
}

pub(super) fn playbook(
    written: Option<WrittenPlaybook>,
    check: &mut Checker<'_>,
) -> PlaybookTuning {
    let WrittenPlaybook { trials } = Checker::block(written);
    PlaybookTuning {
        trials: check.whole("playbook.trials", trials, 1..=QUERIES_MAX),
    }
}

pub(super) fn restarts(written: Option<WrittenRestarts>, check: &mut Checker<'_>) -> Restarts {
    let WrittenRestarts {
        max,
        window_minutes,
    } = Checker::block(written);
    Restarts {
        max: check.whole("restarts.max", max, 0..=1_000),
        window_minutes: check.whole("restarts.window_minutes", window_minutes, 1..=24 * 60),
    }
}
