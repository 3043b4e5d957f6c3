//! The measured final reserve (RSV).

use vec_search::{Event, Policy, RESERVE_STEP_MS, Reserve};
use vec_types::Phase;

use crate::fixture::policy;
use crate::world::Script;

/// One hour, ten minutes reserved, one improve.
fn measured() -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = 2;
    policy.reserve = Some(Reserve {
        margin_ms: 10_000,
        queue_ms: 1_000,
        time_limit_ms: 600_000,
    });
    policy
}

fn reserves(script: Script, policy: &Policy) -> (Vec<i64>, i64) {
    let mut driver = script.start(policy);
    while driver.state.phase() != Phase::Final && driver.step() {}
    let reserves = driver.events().filter_map(|event| match event {
        Event::FinalReserve { reserve_ms, .. } => Some(*reserve_ms),
        _ => None,
    });
    let times = driver.state.deadlines().expect("started");
    (reserves.collect(), times.stop_at.since_ms(times.cutoff))
}

#[test]
fn an_unreviewed_candidate_moves_cutoff_earlier_once_and_never_back() {
    let (reserves, reserve) = reserves(Script::default().score(1, 60.0), &measured());
    // A review that was never measured counts ten minutes, beside runs of a second.
    assert_eq!(reserves, [11 * RESERVE_STEP_MS]);
    assert_eq!(reserve, 11 * RESERVE_STEP_MS);
}

#[test]
fn the_reserve_is_at_most_half_the_run_and_off_without_the_key() {
    let mut policy = measured();
    policy.budget.wall_ms = 1_260_000;
    let (_, reserve) = reserves(Script::default().score(1, 60.0), &policy);
    assert_eq!(reserve, 630_000);
    policy.reserve = None;
    let (none, reserve) = reserves(Script::default().score(1, 60.0), &policy);
    assert_eq!(
        (none, reserve),
        (Vec::new(), policy.budget.final_reserve_ms)
    );
}
