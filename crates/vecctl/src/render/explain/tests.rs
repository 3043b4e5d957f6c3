//! Tests of `explain`: whole texts as a person sees them.

use vec_search::{DraftMode, SelectReason};
use vec_types::{NodeStatus, Score, UnixMs};

use super::*;
use crate::explain::{Child, Draft, FamilyRow, LeftOut, Row};

fn score(value: f64) -> Option<Score> {
    Some(Score::new(value).expect("finite"))
}

fn after() -> After {
    After {
        status: NodeStatus::Scored,
        stage: "settled",
        detail: String::new(),
        took_ms: Some(12_340),
        score: score(61.25),
        seed_0: score(61.0),
        no_progress: false,
        same_as_parent: false,
        budget_cut: false,
        consequence: Vec::new(),
        promotion: "done",
        promotion_failure: None,
        review: "pass",
        review_attempts: 1,
        mechanism_active: Some(MechanismActive::Yes),
        view_check: Some("same"),
        children: vec![NodeId(11), NodeId(14)],
        is_answer: true,
    }
}

fn of(why: Why, draw: Option<Draw>) -> Explanation {
    Explanation {
        run: "20270115-080000-diabetes-abcd".parse().expect("id"),
        node: NodeId(9),
        event: 131,
        created_at: UnixMs(1_800_000_000_000),
        operator: Operator::Improve,
        parent: Some(NodeId(4)),
        family: Some("boosting".parse().expect("family")),
        draw,
        fallbacks: Vec::new(),
        why,
        after: after(),
    }
}

fn draw(u: f64, operator: Operator) -> Option<Draw> {
    Some(Draw {
        index: 7,
        u,
        draft_p: 0.15,
        debug_p: 0.15,
        tune_p: 0.0,
        plateau: false,
        operator,
    })
}

fn row(node: u32, value: f64, visits: u64, u: f64) -> Row {
    Row {
        node: NodeId(node),
        status: NodeStatus::Scored,
        score: score(value),
        epoch: 0,
        rank: 0.5,
        visits,
        exploration: u - 0.5,
        u,
        winner: node == 4,
    }
}

fn child(reason: SelectReason) -> Child {
    Child {
        parent: NodeId(4),
        parent_status: NodeStatus::Scored,
        reason,
        plateau: false,
        pool: 3,
        standings: vec![
            row(4, 61.0, 3, 1.25),
            row(0, 50.0, 12, 0.75),
            row(2, 8.5, 1, 0.7),
        ],
        has_epochs: false,
        left_out: vec![
            LeftOut {
                why: "not scored".to_owned(),
                nodes: vec![NodeId(5), NodeId(6)],
            },
            LeftOut {
                why: "busy".to_owned(),
                nodes: vec![NodeId(7)],
            },
        ],
    }
}

fn why_line(child: Child) -> String {
    let lines = explanation(&of(Why::Child(Box::new(child)), None));
    let line = lines
        .iter()
        .find_map(|line| line.strip_prefix("why         "));
    line.expect("a sentence").to_owned()
}

#[test]
fn an_improve_is_one_screen() {
    let mut explained = of(
        Why::Child(Box::new(child(SelectReason::ArgmaxU))),
        draw(0.812_345, Operator::Debug),
    );
    explained.fallbacks.push(Fallback {
        from: Operator::Debug,
        to: Operator::Improve,
        why: "no failed node can be repaired".to_owned(),
    });
    assert_eq!(
        explanation(&explained),
        [
            "node        #9, improve of #4, family boosting (event 131, 2027-01-15T08:00:00.000Z)",
            "draw        number 7: u = 0.812345 is debug",
            "            draft [0.0000, 0.1500)  debug [0.1500, 0.3000)  improve [0.3000, 1.0000)",
            "fall-back   improve instead of debug: no failed node can be repaired",
            "why         node 4 has the largest U of 3 eligible parents",
            "",
            "node    score    rank  visits  exploration       U",
            "  #4  61.0000  0.5000       3       0.7500  1.2500  <- chosen",
            "  #0  50.0000  0.5000      12       0.2500  0.7500",
            "  #2   8.5000  0.5000       1       0.2000  0.7000",
            "",
            "left out    not scored (2): #5, #6",
            "left out    busy (1): #7",
            "then        scored with 61.2500 (seed 0: 61.0000) after 12.3 s",
            "            its mechanism changes the output; view check: same; promotion done; review: pass",
            "            parent of 2: #11, #14",
            "            the run's answer",
        ]
    );
}

#[test]
fn each_reason_has_its_sentence() {
    let busy = "every eligible parent was busy, so busy ones could be chosen, too: node 4 has the \
                largest U of 3";
    for (reason, sentence) in [
        (
            SelectReason::ArgmaxU,
            "node 4 has the largest U of 3 eligible parents",
        ),
        (SelectReason::ArgmaxUBusy, busy),
        (
            SelectReason::ArgmaxUSuspended,
            "all were suspended after failed children, so that was lifted: node 4 has the largest \
             U of 3",
        ),
        (
            SelectReason::ReserveImprove,
            "node 4 is the oldest draft that is still owed its improve (SEL-10), whatever its U",
        ),
    ] {
        assert_eq!(why_line(child(reason)), sentence);
        let plateau = Child {
            plateau: true,
            ..child(reason)
        };
        assert_eq!(
            why_line(plateau),
            format!("{sentence}; the search stood still")
        );
    }
    let mut tied = child(SelectReason::ArgmaxU);
    tied.standings[1].u = 1.25;
    assert_eq!(
        why_line(tied),
        "node 4, the oldest of 2 with the largest U, of 3 eligible parents"
    );
    let repaired = Child {
        parent_status: NodeStatus::Crash,
        ..child(SelectReason::DebugTarget)
    };
    assert_eq!(
        why_line(repaired),
        "node 4 failed with crash and is repaired (O-OPR-2): it has the largest U of 3 that can be"
    );
}

#[test]
fn long_pools_are_cut_and_epochs_are_shown_where_there_are_several() {
    let mut long = child(SelectReason::ReserveImprove);
    long.pool = 2_000;
    long.has_epochs = true;
    let rows = (100..140).map(|id| row(id, 70.0, 1, 2.0));
    long.standings = rows.chain(long.standings).collect();
    long.left_out[0].nodes = (200..240).map(NodeId).collect();
    let lines = explanation(&of(Why::Child(Box::new(long)), None));
    let head = lines
        .iter()
        .position(|line| line.contains("visits"))
        .expect("a head");
    assert!(lines[head].contains("score  epoch"), "{lines:?}");
    let shown = lines[head + 1..]
        .iter()
        .take_while(|line| line.contains('#'))
        .count();
    assert_eq!(shown, 13, "twelve, and the winner: {lines:#?}");
    assert_eq!(lines[head + 14], "and 1987 more");
    let clipped = lines.iter().find(|line| line.contains("not scored (40)"));
    assert!(
        clipped.expect("a line").ends_with("#215 and 24 more"),
        "{lines:?}"
    );
}

#[test]
fn a_draft_shows_the_coverage_order() {
    let family = |id: &str, failed, covered: &[u32]| FamilyRow {
        family: id.parse().expect("family"),
        category: (id != "knn").then(|| "trees".to_owned()),
        drafts: failed,
        failed,
        scored: 0,
        covered_by: covered.iter().copied().map(NodeId).collect(),
        chosen: id == "knn",
    };
    let draft = Draft {
        family: "knn".parse().expect("family"),
        mode: DraftMode::Coverage,
        plateau: false,
        failed_cap: Some(2),
        families: vec![
            family("boosting", 0, &[1, 5]),
            family("forest", 2, &[]),
            family("knn", 1, &[]),
        ],
    };
    let mut explained = of(Why::Draft(draft), None);
    explained.parent = None;
    explained.operator = Operator::Draft;
    assert_eq!(
        explanation(&explained)[1..6],
        [
            "why         knn is the first family in coverage order that nothing covers (DRF-03)",
            "",
            "family    category  drafts  failed  scored  state",
            "boosting  trees          0       0       0  covered by #1, #5",
            "forest    trees          2       2       0  given up",
        ]
    );
    assert_eq!(
        explanation(&explained)[6],
        "knn       -              1       1       0  open               <- chosen"
    );
}

#[test]
fn seeds_imports_and_resumes_say_where_they_are_from() {
    let work: vec_types::RunNode = "20270114-080000-diabetes-abcd#12"
        .parse()
        .expect("run node");
    for (why, text) in [
        (
            Why::Seed {
                program: "ols".parse().expect("id"),
                state: SeedState::Exploration,
                place: 2,
                of: 5,
                before: vec![NodeId(1)],
            },
            "seed program ols is number 2 of 5 in locked order (SED-01), a possible parent; tried \
             again, since #1 came to nothing"
                .to_owned(),
        ),
        (
            Why::Import {
                origin: work.clone(),
                of: 40,
            },
            format!("imported from {work}, one of 40 nodes in the order of that run (CON-01)"),
        ),
        (
            Why::Resume {
                carried: NodeId(3),
                work: work.clone(),
                origin: Some(work.clone()),
                max_resume: 2,
            },
            format!(
                "carried-over work {work} is the oldest that nobody has taken up (CAR-13); it came \
                 with node 3, imported from {work}; a run takes up at most 2, and draws nothing \
                 for it"
            ),
        ),
    ] {
        assert_eq!(
            explanation(&of(why, None))[1],
            format!("why         {text}")
        );
    }
}

#[test]
fn a_failure_says_what_it_means() {
    let mut explained = of(Why::Child(Box::new(child(SelectReason::ArgmaxU))), None);
    explained.after = After {
        status: NodeStatus::Crash,
        detail: "exit 1\nTraceback".to_owned(),
        score: None,
        seed_0: None,
        consequence: vec![
            "counts a visit".to_owned(),
            "ranks below every score".to_owned(),
        ],
        promotion: "none",
        review: "none",
        review_attempts: 0,
        mechanism_active: None,
        view_check: None,
        children: Vec::new(),
        is_answer: false,
        ..after()
    };
    let lines = explanation(&explained);
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "then        crash after 12.3 s: exit 1 Traceback",
            "            counts a visit, ranks below every score",
            "            no children",
        ]
    );
}
