//! Explanations of a real little run directory: a real fold with made-up effects in a real archive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use vec_launcher::run_view;
use vec_search::{
    Budget, CommitInfo, Continuation, Draft as Order, Effect, EngineerEnd, Event, ExecReport,
    ExecResult, Family, Guard, GuardKind, MethodState, Outcome, PlanResult, Plateau, Policy,
    ReviewVerdict, ScoreResult, SeedProgram, Select, SessionReport, ViewCheck,
};
use vec_store::{Archive, RunLayout};
use vec_types::{
    CandidateFault, Digest, Plan, ProgramSeed, Score, ScoreReport, SearchSeed, SeedState,
};

use super::*;
use crate::render::explanation;

const T0: UnixMs = UnixMs(1_800_000_000_000);
const RUN: &str = "20270115-080000-diabetes-abcd";
const NODES: u32 = 20;

fn view_check() -> ViewCheck {
    ViewCheck {
        lock_wait_ms: 300_000,
        sample: 0.0,
        views: BTreeSet::from(["main".parse().expect("a view")]),
    }
}

fn policy() -> Policy {
    let ruler: vec_types::RulerId = "main".parse().expect("ruler");
    let family = |id: &str, category: &str| Family {
        id: id.parse().expect("id"),
        category: Some(category.to_owned()),
    };
    let seed = |id: &str, state, family: Option<&str>| SeedProgram {
        id: id.parse().expect("id"),
        state,
        family: family.map(|id| id.parse().expect("family")),
    };
    Policy {
        search_seed: SearchSeed(7),
        concurrency_nodes: 2,
        draft_p: 0.25,
        debug_p: 0.25,
        tune_p: 0.0,
        debug_max_attempts: 2,
        select: Select {
            c_puct: 1.0,
            streak_counts_gen: false,
            streak_len: 2,
            reserve_improve: Some(10.0),
        },
        draft: Order::CoverageBandit {
            failed_cap: 2,
            min_explore: 0.5,
        },
        plateau: Plateau {
            enabled: true,
            window: 6,
            top_k: 2,
            draft_p: 0.5,
        },
        families: vec![
            family("linear", "plain"),
            family("trees", "deep"),
            family("knn", "plain"),
        ],
        seed_programs: vec![
            seed("train_mean", SeedState::Anchor, None),
            seed("ols", SeedState::Exploration, Some("linear")),
        ],
        seed_max_children: 2,
        objective: BTreeMap::from([(ruler.clone(), 1.0)]),
        ruler_views: BTreeMap::from([(ruler, "main".parse().expect("view"))]),
        final_view: "main".parse().expect("view"),
        promotion_top_k: 3,
        promotion_seeds: vec![ProgramSeed(1), ProgramSeed(2)],
        final_top_k: 3,
        guard: Guard {
            kind: GuardKind::Noninferiority,
            fresh_seeds: (3..8).map(ProgramSeed).collect(),
        },
        ablation: false,
        view_check: view_check(),
        budget: Budget {
            max_nodes: NODES,
            wall_ms: 3_600_000,
            final_reserve_ms: 600_000,
            node_tail_ms: 60_000,
            settle_extra_ms: 30_000,
            settle_guard_ms: 10_000,
            term_grace_ms: 5_000,
            place_room_ms: 10_000,
        },
        reserve: None,
        continuation: Continuation::default(),
    }
}

fn commit(node: NodeId) -> CommitInfo {
    let id = |kind: &str| {
        let digest = Digest::of(format!("{kind}{node}").as_bytes());
        digest.to_string().parse().expect("tree id")
    };
    CommitInfo {
        commit: id("commit"),
        tree: id("tree"),
        runtime_key: id("key"),
    }
}

/// Every fourth node crashes; scores rise and fall.
fn answer(effect: &Effect) -> Outcome {
    let node = effect.node();
    match effect {
        Effect::ImportSeed { .. } => Outcome::Imported {
            commit: commit(node),
        },
        Effect::Plan { .. } => Outcome::Planned {
            result: PlanResult::Valid {
                plan: Plan {
                    name: format!("idea {node}"),
                    motivation: String::new(),
                    approach: "do it".to_owned(),
                    expected_groups: Vec::new(),
                    risks: Vec::new(),
                    family_id: None,
                    mechanism: None,
                    ablate: None,
                },
                attempts: 1,
            },
        },
        Effect::Comply { .. } => Outcome::Complied {
            removed: 0,
            emptied: false,
        },
        Effect::Engineer { .. } => Outcome::Engineered {
            session: SessionReport {
                end: EngineerEnd::Finished,
                method: MethodState::Placeholder,
                has_run_py: true,
                commit: Some(commit(node)),
                queries_used: None,
                wall_ms: 80,
            },
        },
        Effect::Execute { .. } => Outcome::Executed {
            report: executed(node),
        },
        Effect::Score { .. } => {
            let total = Score::new(50.0 + f64::from(node.0 * 7 % 11)).expect("finite");
            let report = ScoreReport {
                total,
                components: [("main".parse().expect("ruler"), total)].into(),
                parts: Vec::new().into(),
            };
            Outcome::Scored {
                result: ScoreResult::Done { report },
            }
        }
        Effect::Analyze { .. } => Outcome::Analyzed {
            written: true,
            family: None,
        },
        Effect::Review { .. } => Outcome::Reviewed {
            verdict: ReviewVerdict::Pass,
        },
        Effect::Place { .. } => Outcome::Placed {
            sha256: Some(Digest::of(b"placed")),
        },
    }
}

fn executed(node: NodeId) -> ExecReport {
    let result = if node.0 % 4 == 3 {
        ExecResult::Fault {
            fault: CandidateFault::Crash,
            detail: "exit 1".to_owned(),
        }
    } else {
        ExecResult::Done {
            digests: [(
                "main".parse().expect("view"),
                Digest::of(node.to_string().as_bytes()),
            )]
            .into(),
        }
    };
    ExecReport {
        result,
        wall_ms: [].into(),
        max_rss_kib: None,
        harness_ms: 0,
    }
}

/// Runs to the stop and stores every batch.
async fn store(archive: &mut Archive) {
    let (mut state, mut at) = (RunState::new(), T0);
    let mut fact = Some(Event::RunStart {
        run: RUN.parse().expect("run id"),
        policy: Box::new(policy()),
    });
    while state.outcome().is_none() {
        let mut batch: Vec<Event> = fact.take().into_iter().collect();
        while !batch.is_empty() {
            for event in &batch {
                state.apply(at, event).expect("fits");
            }
            archive.append_batch(at, &batch).await.expect("stores");
            batch = state.decide(at);
        }
        at = at.plus_ms(1_000);
        let effect = state.wanted().into_iter().next();
        fact = effect.map(|effect| Event::EffectEnded {
            end: answer(&effect),
            effect,
        });
    }
}

async fn run_dir(root: &Path) -> (RunLayout, Archive) {
    let dir = root.join(RUN);
    std::fs::create_dir(&dir).expect("mkdir");
    let layout = RunLayout::of_run_dir(&dir).expect("a run directory");
    let mut archive = Archive::create(&layout.archive()).await.expect("creates");
    store(&mut archive).await;
    (layout, archive)
}

/// Every node of the run, explained.
fn all(layout: &RunLayout, rows: &[StoredEvent]) -> Vec<Explanation> {
    let run = layout.run();
    (0..NODES + 2)
        .map(|id| explain(run, rows, NodeId(id)).expect("explained"))
        .collect()
}

#[tokio::test]
async fn every_node_of_a_run_is_explained_live_and_sealed() {
    let root = tempfile::tempdir().expect("dir");
    let (layout, archive) = run_dir(root.path()).await;
    let live = run_view::events(&layout, 0).await.expect("live");
    let found = all(&layout, &live);
    archive.seal().await.expect("seals");
    let rows = run_view::events(&layout, 0).await.expect("sealed");
    assert_eq!(all(&layout, &rows), found);
    let mut reasons = BTreeSet::new();
    for of in &found {
        whole(of);
        let text = explanation(of).join("\n");
        assert!(
            text.starts_with(&format!("node        #{}, ", of.node)),
            "{text}"
        );
        assert_eq!(
            text.matches("<- chosen").count(),
            usize::from(of.draw.is_some()),
            "{text}"
        );
        assert!(text.contains("\nthen        "), "{text}");
        reasons.insert(match &of.why {
            Why::Child(child) => format!("{:?}", child.reason),
            Why::Draft(draft) => format!("{:?}", draft.mode),
            Why::Seed { .. } => "seed".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    for reason in [
        "ArgmaxU",
        "DebugTarget",
        "ReserveImprove",
        "Coverage",
        "seed",
    ] {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
}

/// What must hold between the parts of one explanation.
fn whole(of: &Explanation) {
    match &of.why {
        Why::Child(child) => {
            assert_eq!(of.parent, Some(child.parent));
            assert_eq!(
                child.standings.len(),
                usize::try_from(child.pool).expect("small")
            );
            let out: usize = child.left_out.iter().map(|group| group.nodes.len()).sum();
            let is_repair = child.reason == vec_search::SelectReason::DebugTarget;
            let all = usize::try_from(of.node.0).expect("small");
            assert!(is_repair || out + child.standings.len() == all, "{of:?}");
            let best = child.standings.first().expect("a parent");
            let is_reserved = child.reason == vec_search::SelectReason::ReserveImprove;
            assert!(best.winner || is_reserved, "{of:?}");
        }
        Why::Draft(draft) => {
            let chosen = draft.families.iter().filter(|row| row.chosen);
            assert_eq!(chosen.count(), 1);
            assert_eq!(draft.families.len(), 3);
        }
        _ => assert!(of.draw.is_none() && of.node.0 < 2, "{of:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_explained_is_said_in_one_sentence() {
    let root = tempfile::tempdir().expect("dir");
    let (layout, archive) = run_dir(root.path()).await;
    archive.seal().await.expect("seals");
    let rows = run_view::events(&layout, 0).await.expect("events");
    let run = layout.run();
    let said = |rows: &[StoredEvent], node| {
        let error = explain(run, rows, NodeId(node)).expect_err("refused");
        format!("{error:#}")
    };
    assert_eq!(
        said(&rows, 99),
        format!("run {RUN} has no node 99; its nodes are 0 to {}", NODES + 1)
    );
    assert_eq!(
        said(&rows[..1], 0),
        format!("run {RUN} has no node 0; it has no nodes yet")
    );
    let mut older = rows.clone();
    older[3].json = older[3].json.replace("\"kind\":", "\"sort\":");
    let text = said(&older, 0);
    assert!(
        text.starts_with("event 4 (") && text.contains("another version of vec"),
        "{text}"
    );
    let mut torn = rows.clone();
    torn.remove(5);
    assert!(said(&torn, 0).contains("does not follow from the events before it"));
    let json = serde_json::to_value(explain(run, &rows, NodeId(2)).expect("explained"));
    let json = json.expect("encodes");
    assert_eq!(json["node"], 2);
    assert!(
        json["why"]["from"].is_string() && json["draw"]["u"].is_f64(),
        "{json}"
    );
}
