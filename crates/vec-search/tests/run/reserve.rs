//! The measured final reserve (RSV).

use vec_search::{Event, Policy, RESERVE_STEP_MS, Reserve};
use vec_types::{ExecName, Phase, ProgramSeed};

use crate::fixture::{done, policy};
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

/// RSV-02, term by term: a wait of 1 s, 10 s beside, a baseline of 1 s per view, 10 minutes for the
/// review that is missing. In minutes: 10 reserved at first, 30 at most.
#[test]
fn every_term_has_its_time() {
    let run_ms = |w: i64, views: i64| w * views + 1_000;
    let sum = |w: i64, views: i64, checks: i64| {
        let check_ms = w * views * 3 / 2 + 1_000;
        let guard_ms = 5 * (run_ms(w, views) + run_ms(1_000, views));
        let place_ms = (w + 1_000) * 3 / 2;
        600_000 + checks * check_ms + 2 * run_ms(w, views) + guard_ms + place_ms + 10_000
    };
    // Time per view in seconds, views, sampled, runs of the check that are missing, minutes.
    for (w_s, views, sample, checks, minutes) in [
        (1, 1, 0.0, 2, 11),
        (20, 1, 0.0, 2, 15),
        (20, 1, 1.0, 0, 14),
        (60, 1, 0.0, 2, 23),
        (60, 1, 1.0, 0, 19),
        (20, 2, 0.0, 2, 18),
        (20, 2, 1.0, 0, 16),
        (200, 1, 0.0, 2, 30),
    ] {
        let mut policy = measured();
        policy.view_check.sample = sample;
        if views == 2 {
            let side = |text: &str| text.parse().expect("ruler");
            policy.objective.insert(side("side"), 0.5);
            policy
                .ruler_views
                .insert(side("side"), "side".parse().expect("view"));
            policy
                .view_check
                .views
                .insert("side".parse().expect("view"));
        }
        let exec = ExecName::Seed(ProgramSeed(0));
        let seed_0 = done(&policy, exec, "1/seed0", w_s * 1_000);
        let script = Script::default().score(1, 60.0);
        let (reserves, _) = reserves(script.with("execute-1-seed0", seed_0), &policy);
        let due = (sum(w_s * 1_000, views, checks) + RESERVE_STEP_MS - 1) / RESERVE_STEP_MS;
        assert_eq!(due.min(30), minutes, "the table at {w_s} s, {views} views");
        let first = reserves.first().map(|ms| ms / RESERVE_STEP_MS);
        assert_eq!(first, Some(minutes), "{w_s} s, {views} views, {sample}");
    }
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
