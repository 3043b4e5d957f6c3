//! Continuation and carry-over (CON, CAR), as far as selection is concerned.

use std::collections::BTreeMap;

use vec_search::{
    CarriedKind, Continuation, CorruptRun, Event, Import, ImportEnd, Outcome, Policy,
    ReviewVerdict, STANDINGS_MAX, ScoreResult,
};
use vec_types::{
    CandidateFault, Digest, ExecName, InfraFault, NodeId, NodeStatus, Operator, ProgramSeed,
    RunNode, Score, ScoreReport,
};

use crate::driver::Driver;
use crate::fixture::{commit, fault, planned, policy, scored, session, written};
use crate::world::Script;

fn continued(imports: u32) -> Policy {
    let mut policy = policy();
    policy.draft_p = 0.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = 2;
    policy.continuation = Continuation {
        imports,
        rescore_top_k: 1,
        max_resume: 1,
    };
    policy
}

fn from(node: u32) -> RunNode {
    RunNode {
        run: "20270114-080000-diabetes-abcd".parse().expect("run id"),
        node: NodeId(node),
    }
}

fn import(node: u32, parent: Option<u32>, end: ImportEnd) -> Import {
    Import {
        origin: from(node),
        operator: if parent.is_some() {
            Operator::Improve
        } else {
            Operator::Draft
        },
        parent: parent.map(NodeId),
        family: None,
        drawn_family: None,
        seed_program: None,
        end,
        review: None,
        no_progress: false,
        same_as_parent: false,
        method_auto: false,
        view_dependent: false,
        refuted: None,
        resumed: None,
    }
}

fn report(total: f64) -> ScoreReport {
    match scored(&policy(), total) {
        Outcome::Scored {
            result: ScoreResult::Done { report },
        } => report,
        _ => unreachable!("the fixture gives a score"),
    }
}

fn comparable(text: &str, total: f64) -> ImportEnd {
    ImportEnd::Scored {
        commit: commit(text),
        digests: [("main".parse().expect("id"), Digest::of(text.as_bytes()))].into(),
        scores: BTreeMap::from([(ExecName::Seed(ProgramSeed(0)), report(total))]),
        mean: None,
    }
}

fn incomparable(text: &str, ranking: f64) -> ImportEnd {
    ImportEnd::Unscored {
        commit: commit(text),
        ranking: Score::new(ranking).expect("finite"),
    }
}

fn carried(kind: CarriedKind) -> ImportEnd {
    ImportEnd::CarriedOver {
        work: from(9),
        kind: Box::new(kind),
    }
}

fn plan() -> vec_types::Plan {
    match planned() {
        Outcome::Planned {
            result: vec_search::PlanResult::Valid { plan, .. },
        } => plan,
        _ => unreachable!("the fixture gives a plan"),
    }
}

fn start(script: Script, policy: &Policy, imports: Vec<Import>) -> Driver<Script> {
    let mut driver = script.start(policy);
    for (index, import) in imports.into_iter().enumerate() {
        let node = NodeId(u32::try_from(index).expect("fits"));
        driver.turn(Some(Event::Imported {
            node,
            import: Box::new(import),
        }));
    }
    driver
}

#[test]
fn imports_are_in_the_tree_with_their_visits_and_do_not_count_as_nodes() {
    let imports = vec![
        import(0, None, comparable("a", 60.0)),
        import(1, Some(0), comparable("b", 55.0)),
        import(
            2,
            Some(1),
            ImportEnd::Faulty {
                commit: commit("c"),
                fault: CandidateFault::Crash,
            },
        ),
        import(3, Some(0), ImportEnd::GenEmpty),
    ];
    let mut driver = start(Script::default(), &continued(4), imports);
    let visits: Vec<u64> = driver
        .state
        .nodes()
        .take(4)
        .map(|node| node.visits)
        .collect();
    assert_eq!(visits, [4, 2, 1, 1]);
    driver.run_to_end();
    let status = driver.state.status(driver.now);
    assert_eq!((status.created, status.max_nodes), (2, 2));
    let parent = driver.state.node(NodeId(5)).expect("made").parent;
    assert!(
        parent.is_some_and(|parent| parent.0 <= 4),
        "imports are parents: {parent:?}"
    );
}

#[test]
fn seeding_waits_for_every_import() {
    let mut driver = start(
        Script::default(),
        &continued(2),
        vec![import(0, None, ImportEnd::GenFailed)],
    );
    assert_eq!(driver.state.phase(), vec_types::Phase::Launching);
    assert!(driver.state.decide(driver.now).is_empty() && driver.state.wanted().is_empty());
    driver.turn(Some(Event::Imported {
        node: NodeId(1),
        import: Box::new(import(1, None, ImportEnd::GenFailed)),
    }));
    assert_eq!(driver.state.phase(), vec_types::Phase::Seeding);
    let late = Event::Imported {
        node: NodeId(3),
        import: Box::new(import(2, None, ImportEnd::GenFailed)),
    };
    assert!(matches!(
        driver.state.check(driver.now, &late),
        Err(CorruptRun::WrongPhase { .. })
    ));
}

#[test]
fn malformed_imports_are_refused_by_name() {
    let driver = start(Script::default(), &continued(1), Vec::new());
    let check = |import: Import| {
        let event = Event::Imported {
            node: NodeId(0),
            import: Box::new(import),
        };
        let error = driver.state.check(driver.now, &event).expect_err("refused");
        error.to_string()
    };
    assert!(check(import(0, Some(7), ImportEnd::GenFailed)).contains("parent is not imported"));
    let mut no_view = comparable("a", 1.0);
    if let ImportEnd::Scored { digests, .. } = &mut no_view {
        *digests = [].into();
    }
    assert!(check(import(0, None, no_view)).contains("no digest of view main"));
    let mut no_score = comparable("a", 1.0);
    if let ImportEnd::Scored { scores, .. } = &mut no_score {
        scores.clear();
    }
    assert!(check(import(0, None, no_score)).contains("no score of seed 0"));
    let mut error = import(0, None, ImportEnd::GenFailed);
    error.review = Some(ReviewVerdict::Error);
    assert!(check(error).contains("no verdict"));
}

#[test]
fn the_best_incomparable_imports_are_scored_again_before_anything_new() {
    let imports = vec![
        import(0, None, incomparable("a", 10.0)),
        import(1, None, incomparable("b", 90.0)),
    ];
    let script = Script::default().score(1, 70.0);
    let mut driver = start(script, &continued(2), imports);
    driver.run_to_end();
    let statuses: Vec<NodeStatus> = driver
        .state
        .nodes()
        .take(2)
        .map(|node| node.status)
        .collect();
    assert_eq!(statuses, [NodeStatus::HistoryOnly, NodeStatus::Scored]);
    let node = driver.state.node(NodeId(1)).expect("import");
    let total = node.ranking_score.expect("scored").get();
    assert!((total - 70.0).abs() < 0.01, "{total}");
    assert!(node.visits >= 1);
    let rescored =
        driver.position(|event| matches!(event, Event::NodeSettled { node, .. } if node.0 == 1));
    let first_draw = driver.position(|event| matches!(event, Event::Draw { .. }));
    assert!(rescored < first_draw);
    assert!(!driver.world.ended.iter().any(|id| id == "analyze-1"));
}

#[test]
fn a_cut_or_lost_rescore_stays_unscored_for_the_next_run() {
    let lost = Outcome::Interrupted {
        fault: InfraFault::ScoreError,
        detail: "the scorer died".to_owned(),
    };
    let script = Script::default().with("score-0-seed0", lost);
    let mut driver = start(
        script,
        &continued(1),
        vec![import(0, None, incomparable("a", 10.0))],
    );
    driver.run_to_end();
    let node = driver.state.node(NodeId(0)).expect("import");
    assert_eq!(
        (node.status, node.visits),
        (NodeStatus::ImportedUnscored, 0)
    );
    let cut = driver
        .events()
        .filter(|event| matches!(event, Event::RescoreCut { .. }))
        .count();
    assert_eq!(cut, 1, "it is not tried twice in one run");
}

#[test]
fn a_faulty_rescore_counts_as_the_candidates_fault() {
    let script = Script::default().with("execute-0-seed0", fault(CandidateFault::Oom));
    let mut driver = start(
        script,
        &continued(1),
        vec![import(0, None, incomparable("a", 10.0))],
    );
    driver.run_to_end();
    let node = driver.state.node(NodeId(0)).expect("import");
    assert_eq!((node.status, node.visits), (NodeStatus::Oom, 1));
}

#[test]
fn view_dependent_and_failed_imports_are_no_parents() {
    let mut dependent = import(0, None, comparable("a", 90.0));
    dependent.view_dependent = true;
    let mut failed = import(1, None, comparable("b", 95.0));
    failed.review = Some(ReviewVerdict::Fail);
    let mut driver = start(Script::default(), &continued(2), vec![dependent, failed]);
    driver.run_to_end();
    let parents: Vec<Option<NodeId>> = driver
        .state
        .nodes()
        .skip(3)
        .map(|node| node.parent)
        .collect();
    assert!(!parents.is_empty());
    assert!(
        parents
            .iter()
            .all(|parent| parent.is_some_and(|p| p.0 >= 2)),
        "{parents:?}"
    );
}

#[test]
fn carried_work_is_taken_up_before_anything_is_drawn_and_only_once() {
    let kind = CarriedKind::Engineer { plan: plan() };
    let imports = vec![
        import(0, None, comparable("a", 60.0)),
        import(1, Some(0), carried(kind)),
    ];
    let mut driver = start(Script::default(), &continued(2), imports);
    driver.run_to_end();
    let resumed = driver.state.node(NodeId(3)).expect("made");
    assert_eq!(
        (resumed.operator, resumed.parent),
        (Operator::Resume, Some(NodeId(0)))
    );
    assert!(
        !driver.world.ended.iter().any(|id| id == "plan-3"),
        "no Researcher (CAR-19)"
    );
    assert!(driver.world.ended.iter().any(|id| id == "engineer-3"));
    let draws: Vec<u64> = driver
        .events()
        .filter_map(|event| match event {
            Event::Draw { index, .. } => Some(*index),
            _ => None,
        })
        .collect();
    assert_eq!(draws, [0], "two nodes, one draw (O-OPR-3)");
}

#[test]
fn carried_programs_are_executed_at_once() {
    let ended = session(Some(commit("carried")), written("method"));
    let Outcome::Engineered { session: report } = ended else {
        unreachable!("the fixture gives a session");
    };
    let kind = CarriedKind::Execution {
        plan: plan(),
        session: report,
    };
    let mut driver = start(
        Script::default(),
        &continued(1),
        vec![import(0, None, carried(kind))],
    );
    driver.run_to_end();
    let ended = &driver.world.ended;
    assert!(!ended.iter().any(|id| id == "engineer-2"), "{ended:?}");
    assert!(ended.iter().any(|id| id == "execute-2-seed0"));
}

#[test]
fn work_that_another_run_took_up_and_work_of_refused_parents_is_left() {
    let kind = || carried(CarriedKind::Engineer { plan: plan() });
    // Somebody in between resumed the work already (CAR-14).
    let mut taken = import(1, None, comparable("b", 50.0));
    taken.resumed = Some(from(9));
    let mut driver = start(
        Script::default(),
        &continued(2),
        vec![import(0, None, kind()), taken],
    );
    driver.run_to_end();
    assert_eq!(
        driver.position(|event| matches!(event, Event::ResumePick { .. })),
        None
    );
    // The parent's review failed (CAR-22).
    let mut parent = import(0, None, comparable("a", 60.0));
    parent.review = Some(ReviewVerdict::Fail);
    let imports = vec![parent, import(1, Some(0), kind())];
    let mut driver = start(Script::default(), &continued(2), imports);
    driver.run_to_end();
    assert!(
        driver
            .position(|event| matches!(event, Event::ResumeRefused { .. }))
            .is_some()
    );
    assert_eq!(
        driver.position(|event| matches!(event, Event::ResumePick { .. })),
        None
    );
}

#[test]
fn a_run_takes_up_no_more_than_its_quota() {
    let work = |node: u32| ImportEnd::CarriedOver {
        work: from(node),
        kind: Box::new(CarriedKind::Engineer { plan: plan() }),
    };
    let imports = vec![import(0, None, work(5)), import(1, None, work(6))];
    let mut driver = start(Script::default(), &continued(2), imports);
    driver.run_to_end();
    let picks: Vec<RunNode> = driver
        .events()
        .filter_map(|event| match event {
            Event::ResumePick { work, .. } => Some(work.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(picks, [from(5)], "older work first (CAR-13)");
}

#[test]
fn a_large_pool_stores_the_best_standings_only() {
    let most = u32::try_from(STANDINGS_MAX).expect("fits");
    let imports = (0..most + 4)
        .map(|node| {
            import(
                node,
                None,
                comparable(&node.to_string(), f64::from(node % 97)),
            )
        })
        .collect();
    let mut driver = start(Script::default(), &continued(most + 4), imports);
    let is_select = |event: &Event| matches!(event, Event::Select { .. });
    while driver.position(is_select).is_none() && driver.step() {}
    let found = driver.events().find_map(|event| match event {
        Event::Select {
            parent,
            pool,
            standings,
            ..
        } => Some((*parent, *pool, standings.clone())),
        _ => None,
    });
    let (parent, pool, standings) = found.expect("selected");
    // The anchor too is in the pool.
    assert_eq!((pool, standings.len()), (most + 5, STANDINGS_MAX));
    assert!(standings.is_sorted_by_key(|standing| standing.node));
    let winner = standings.iter().find(|standing| standing.node == parent);
    let u = winner.expect("kept").u;
    assert!(standings.iter().all(|standing| standing.u <= u));
}
