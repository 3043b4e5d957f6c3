//! Pauses after infrastructure faults (O-PRO-1, O-VCK-2): three quick ones must not put a node out,
//! and a run that is only cut for lack of time counts for no attempt.

use vec_search::{Effect, Event, Outcome, Policy, PromotionFailure, RETRY_FIRST_MS, RETRY_MOST_MS};
use vec_types::{ExecName, InfraFault, NodeId, Operator, ProgramSeed, UnixMs};

use crate::driver::{Driver, replay};
use crate::fixture::policy;
use crate::world::Script;

const NODE: NodeId = NodeId(1);

/// The baseline and one improve of it.
fn one_node() -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.budget.max_nodes = 1;
    policy
}

fn ended_with(fault: InfraFault, effects: &[&str]) -> Script {
    let outcome = Outcome::Interrupted {
        fault,
        detail: "a daemon died".to_owned(),
    };
    let script = Script::default().score(1, 60.0);
    let with = |script: Script, effect: &&str| script.with(effect, outcome.clone());
    effects.iter().fold(script, with)
}

fn run(script: Script, policy: &Policy) -> Driver<Script> {
    let mut driver = script.start(policy);
    driver.run_to_end();
    assert_eq!(replay(&driver.stored), Ok(()));
    driver
}

/// Milliseconds from the end of each effect of this kind of name to the start of the next.
fn pauses(driver: &Driver<Script>, is_it: impl Fn(&Effect) -> bool) -> Vec<i64> {
    let mut ended: Option<UnixMs> = None;
    let mut pauses = Vec::new();
    for (at, batch) in &driver.stored {
        for event in batch {
            match event {
                Event::EffectEnded { effect, .. } if is_it(effect) => ended = Some(*at),
                Event::EffectStarted { effect } if is_it(effect) => {
                    pauses.extend(ended.map(|ended| at.since_ms(ended)));
                }
                _ => {}
            }
        }
    }
    pauses
}

fn is_check(effect: &Effect) -> bool {
    let Effect::Execute { exec, .. } = effect else {
        return false;
    };
    matches!(exec, ExecName::ViewCheck { .. })
}

fn is_seed_1(effect: &Effect) -> bool {
    let Effect::Execute { exec, .. } = effect else {
        return false;
    };
    exec.is_ranked() && exec.program_seed() == ProgramSeed(1)
}

fn is_guarded(driver: &Driver<Script>) -> bool {
    let verdict = driver.state.guard_verdict();
    verdict.is_some_and(|verdict| verdict.candidate == NODE)
}

const CHECKS: [&str; 4] = [
    "execute-1-viewcheck",
    "execute-1-viewcheckg1",
    "execute-1-viewcheckg2",
    "execute-1-viewcheckg3",
];

const PROMOTIONS: [&str; 4] = [
    "execute-1-seed1",
    "execute-1-seed1g1",
    "execute-1-seed1g2",
    "execute-1-seed1g3",
];

const GROWING: [i64; 2] = [RETRY_FIRST_MS, 4 * RETRY_FIRST_MS];

#[test]
fn view_checks_are_tried_again_after_a_pause_that_grows() {
    let outage = run(ended_with(InfraFault::InfraOom, &CHECKS[..3]), &one_node());
    assert_eq!(pauses(&outage, is_check), GROWING);
    assert!(!is_guarded(&outage), "three faults put it out");
    let short = run(
        ended_with(InfraFault::Interrupted, &CHECKS[..2]),
        &one_node(),
    );
    assert_eq!(pauses(&short, is_check), GROWING);
    assert!(is_guarded(&short));
}

#[test]
fn promotions_are_tried_again_after_a_pause_that_grows() {
    let outage = run(
        ended_with(InfraFault::ScoreError, &PROMOTIONS[..3]),
        &one_node(),
    );
    assert_eq!(pauses(&outage, is_seed_1), GROWING);
    assert!(!is_guarded(&outage));
    let short = run(
        ended_with(InfraFault::Interrupted, &PROMOTIONS[..2]),
        &one_node(),
    );
    assert_eq!(pauses(&short, is_seed_1), GROWING);
    assert!(is_guarded(&short));
}

#[test]
fn a_cut_for_lack_of_time_counts_for_no_attempt() {
    let checks = run(ended_with(InfraFault::BudgetCut, &CHECKS), &one_node());
    assert_eq!(pauses(&checks, is_check), [RETRY_FIRST_MS; 4]);
    assert!(is_guarded(&checks));
    let runs = run(ended_with(InfraFault::BudgetCut, &PROMOTIONS), &one_node());
    assert_eq!(pauses(&runs, is_seed_1), [RETRY_FIRST_MS; 4]);
    assert!(is_guarded(&runs));
    let causes = runs.events().filter_map(|event| match event {
        Event::PromotionFailed { cause, .. } => Some(*cause),
        _ => None,
    });
    let causes: Vec<PromotionFailure> = causes.collect();
    assert_eq!(causes, [PromotionFailure::Abandoned; 4]);
}

#[test]
fn reviews_and_seed_programs_wait_as_well() {
    let script = ended_with(
        InfraFault::Interrupted,
        &["review-1-0", "execute-0-seed0", "execute-1-seed0"],
    );
    let driver = run(script, &one_node());
    // The baseline is node 2 at last, its improve node 3.
    let seeds = driver.stored.iter().flat_map(|(at, batch)| {
        let seeds = batch.iter().filter(|event| {
            matches!(
                event,
                Event::NodeCreated {
                    operator: Operator::Seed,
                    ..
                }
            )
        });
        seeds.map(|_| *at)
    });
    let seeds: Vec<UnixMs> = seeds.collect();
    let [first, second, third] = seeds[..] else {
        panic!("{seeds:?}");
    };
    // Beside the pauses: a commit and an execution of 100 ms each.
    let found = [second.since_ms(first), third.since_ms(second)];
    assert_eq!(found, GROWING.map(|pause| pause + 200));

    let script = ended_with(InfraFault::Interrupted, &["review-1-0"]);
    let driver = run(script, &one_node());
    let is_review = |effect: &Effect| matches!(effect, Effect::Review { .. });
    assert_eq!(pauses(&driver, is_review), [RETRY_FIRST_MS]);
    assert!(is_guarded(&driver));
}

#[test]
fn a_paused_candidate_does_not_hold_up_the_next() {
    let mut policy = one_node();
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = 2;
    let script = ended_with(InfraFault::Interrupted, &CHECKS[..1]);
    let driver = run(script, &policy);
    let order = driver.world.ended.iter();
    let order: Vec<&String> = order.filter(|id| id.contains("viewcheck")).collect();
    assert_eq!(
        order,
        [
            "execute-1-viewcheck",
            "execute-2-viewcheck",
            "execute-1-viewcheckg1"
        ]
    );
    assert!(RETRY_FIRST_MS < RETRY_MOST_MS && is_guarded(&driver));
}
