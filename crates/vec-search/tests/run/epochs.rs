//! Data epochs (EPO): ranks inside each epoch, promotions measured in the current one, promotions
//! that are lost or overtaken.

use vec_search::{CorruptRun, Event, Outcome, Policy, PromotionFailure};
use vec_types::{CandidateFault, ExecName, InfraFault, NodeId, Phase, ProgramSeed};

use crate::driver::Driver;
use crate::fixture::{fault, policy};
use crate::world::Script;

fn improves(max_nodes: u32) -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.promotion_top_k = 1;
    policy.budget.max_nodes = max_nodes;
    policy
}

fn advance(epoch: u32) -> Event {
    Event::EpochAdvance {
        epoch,
        added: vec![format!("set-{epoch}")],
    }
}

fn until(driver: &mut Driver<Script>, what: impl Fn(&Event) -> bool) {
    while driver.position(&what).is_none() && driver.step() {}
    assert!(driver.position(&what).is_some(), "it never happened");
}

fn settled(node: u32) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::NodeSettled { node: n, .. } if n.0 == node)
}

fn promotions(driver: &Driver<Script>, node: u32) -> Vec<(u32, u32, Vec<String>)> {
    driver
        .events()
        .filter_map(|event| match event {
            Event::PromotionStart {
                node: n,
                generation,
                epoch,
                execs,
                ..
            } if n.0 == node => {
                let execs = execs.iter().map(ToString::to_string).collect();
                Some((*generation, *epoch, execs))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn ranks_are_taken_inside_each_epoch() {
    let mut policy = improves(4);
    policy.promotion_top_k = 0;
    // 0 and 1 belong to epoch 0, 2 and 3 to epoch 1.
    let script = Script::default()
        .score(0, 50.0)
        .score(1, 60.0)
        .score(2, 10.0)
        .score(3, 20.0);
    let mut driver = script.start(&policy);
    until(&mut driver, settled(1));
    driver.turn(Some(advance(1)));
    // Node 2 was created in epoch 0 but is executed in epoch 1 (EPO-02).
    until(
        &mut driver,
        |event| matches!(event, Event::NodeCreated { node, .. } if node.0 == 4),
    );
    let epochs: Vec<u32> = driver
        .state
        .nodes()
        .take(4)
        .map(|node| node.epoch)
        .collect();
    assert_eq!(epochs, [0, 0, 1, 1]);
    let standings = driver.events().filter_map(|event| match event {
        Event::Select { standings, .. } => Some(standings.clone()),
        _ => None,
    });
    let ranks: Vec<f64> = standings
        .last()
        .expect("four")
        .iter()
        .map(|s| s.rank)
        .collect();
    assert_eq!(ranks, [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn epochs_follow_each_other_and_end_with_search() {
    let mut driver = Script::default().start(&improves(1));
    let refused = driver.state.check(driver.now, &advance(2));
    let expected = CorruptRun::Epoch {
        expected: 1,
        found: 2,
    };
    assert_eq!(refused, Err(expected));
    driver.turn(Some(advance(1)));
    assert_eq!(driver.state.epoch(), 1);
    while driver.state.phase() != Phase::Final && driver.step() {}
    let late = driver.state.check(driver.now, &advance(2));
    assert!(
        matches!(late, Err(CorruptRun::WrongPhase { .. })),
        "EPO-03: {late:?}"
    );
}

#[test]
fn a_new_epoch_measures_every_seed_again() {
    // Node 1 is promoted in epoch 0; node 2, worse, is there to give time.
    let script = Script::default()
        .score(0, 40.0)
        .score(1, 60.0)
        .score(2, 41.0);
    let mut driver = script.start(&improves(2));
    until(&mut driver, |event| {
        matches!(event, Event::PromotionDone { .. })
    });
    driver.turn(Some(advance(1)));
    driver.run_to_end();
    assert_eq!(
        promotions(&driver, 1),
        [
            (0, 0, vec!["seed1".to_owned(), "seed2".to_owned()]),
            (
                1,
                1,
                vec![
                    "seed0g1".to_owned(),
                    "seed1g1".to_owned(),
                    "seed2g1".to_owned()
                ]
            ),
        ]
    );
    let node = driver.state.node(NodeId(1)).expect("exists");
    assert_eq!(
        (node.epoch, node.seed_0_epoch, node.promotion),
        (1, 0, "done")
    );
    let start = driver.events().find_map(|event| match event {
        Event::FinalStart { epoch, .. } => Some(*epoch),
        _ => None,
    });
    assert_eq!(start, Some(1), "EPO-07");
}

#[test]
fn final_selection_measures_old_candidates_again() {
    // Search promotes nobody, so that final selection has all seeds to measure. Node 1 was executed
    // in epoch 0, and the data moved on while node 2 was in work.
    let mut policy = improves(2);
    policy.promotion_top_k = 0;
    let script = Script::default()
        .score(0, 40.0)
        .score(1, 60.0)
        .score(2, 41.0);
    let mut driver = script.start(&policy);
    until(&mut driver, settled(1));
    driver.turn(Some(advance(1)));
    driver.run_to_end();
    let execs = ["seed0g0", "seed1", "seed2"].map(str::to_owned).to_vec();
    assert_eq!(promotions(&driver, 1), [(0, 1, execs)]);
    let is_final = |event: &Event| matches!(event, Event::FinalStart { epoch: 1, .. });
    let of_node =
        |event: &Event| matches!(event, Event::PromotionStart { node, .. } if node.0 == 1);
    assert!(
        driver.position(is_final).is_some() && driver.position(is_final) < driver.position(of_node)
    );
}

#[test]
fn new_data_in_the_middle_starts_the_promotion_over() {
    let script = Script::default()
        .score(0, 40.0)
        .score(1, 60.0)
        .score(2, 41.0)
        .lasting("score-1-seed1", 5_000);
    let mut driver = script.start(&improves(2));
    until(&mut driver, |event| {
        matches!(event, Event::PromotionStart { .. })
    });
    driver.turn(Some(advance(1)));
    driver.run_to_end();
    let causes: Vec<PromotionFailure> = driver
        .events()
        .filter_map(|event| match event {
            Event::PromotionFailed { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [PromotionFailure::Abandoned]);
    let epochs: Vec<u32> = promotions(&driver, 1)
        .into_iter()
        .map(|(_, epoch, _)| epoch)
        .collect();
    assert_eq!(epochs, [0, 1]);
}

fn lost() -> Outcome {
    Outcome::Interrupted {
        fault: InfraFault::ScoreError,
        detail: "the scorer died".to_owned(),
    }
}

#[test]
fn a_lost_seed_is_run_again_under_a_name_of_its_own() {
    let script = Script::default()
        .score(0, 40.0)
        .score(1, 60.0)
        .with("score-1-seed2", lost());
    let mut driver = script.start(&improves(1));
    driver.run_to_end();
    assert_eq!(
        promotions(&driver, 1),
        [
            (0, 0, vec!["seed1".to_owned(), "seed2".to_owned()]),
            (1, 0, vec!["seed2g1".to_owned()]),
        ],
        "seed 1 is measured already"
    );
    assert_eq!(
        driver.state.node(NodeId(1)).expect("exists").promotion,
        "done"
    );
}

#[test]
fn lost_promotions_are_bounded_and_faulty_ones_are_out_at_once() {
    let mut script = Script::default().score(0, 40.0).score(1, 60.0);
    for name in ["seed2", "seed2g1", "seed2g2", "seed2g3"] {
        script = script.with(&format!("execute-1-{name}"), lost());
    }
    let mut driver = script.start(&improves(1));
    driver.run_to_end();
    let most = usize::try_from(vec_search::PROMOTION_ATTEMPTS_MAX).expect("fits");
    assert_eq!(promotions(&driver, 1).len(), most);
    assert_eq!(
        driver.state.node(NodeId(1)).expect("exists").promotion,
        "failed"
    );

    let script = Script::default().score(0, 40.0).score(1, 60.0);
    let script = script.with("execute-1-seed1", fault(CandidateFault::Crash));
    let mut driver = script.start(&improves(1));
    driver.run_to_end();
    assert_eq!(promotions(&driver, 1).len(), 1);
    assert_eq!(
        driver.state.node(NodeId(1)).expect("exists").promotion,
        "failed"
    );
}

#[test]
fn a_failed_promotion_has_a_new_chance_in_a_new_epoch() {
    let script = Script::default()
        .score(0, 40.0)
        .score(1, 60.0)
        .score(2, 41.0);
    let script = script.with("execute-1-seed1", fault(CandidateFault::Crash));
    let mut driver = script.start(&improves(2));
    until(&mut driver, |event| {
        matches!(event, Event::PromotionFailed { .. })
    });
    driver.turn(Some(advance(1)));
    driver.run_to_end();
    assert_eq!(promotions(&driver, 1).len(), 2);
    assert_eq!(
        driver.state.node(NodeId(1)).expect("exists").promotion,
        "done"
    );
}

#[test]
fn names_of_repeated_seeds_are_never_used_twice() {
    let exec = ExecName::Again {
        seed: ProgramSeed(1),
        generation: 3,
    };
    assert_eq!(exec.to_string(), "seed1g3");
    assert!(exec.is_ranked());
    assert_eq!(exec.program_seed(), ProgramSeed(1));
}
