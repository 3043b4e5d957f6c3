//! The shipped prompt texts assembled for two typical nodes, as snapshots; and what must never
//! be in them.

use std::path::Path;

use serde_json::{Value, json};
use vec_roles::*;
use vec_types::{NodeId, NodeStatus, Operator, Part, Plan, Score, ScoreReport};

const SECRET_SCORE: &str = "61.1234";

fn texts() -> RoleTexts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prompts");
    RoleTexts::load(|file| std::fs::read_to_string(folder.join(file))).expect("shipped texts")
}

fn board() -> BoardBrief {
    let family = |id: &str, title: &str, drafts| FamilyBrief {
        id: id.parse().expect("id"),
        category: (id == "linear").then(|| "global".parse().expect("id")),
        title: title.into(),
        text: format!("How to draft {title}.\n\n`--ablate x`: without it."),
        drafts,
    };
    BoardBrief {
        board: "diabetes".parse().expect("id"),
        title: "a small clinical regression".into(),
        task: "tabular_regression".into(),
        preamble: "Few rows: shrink.\n\n### Forbidden\n- copies".into(),
        families: vec![
            family("linear", "linear models", 1),
            family("boosting", "boosted stumps", 0),
        ],
        rulers: vec![RulerBrief {
            ruler: "main".parse().expect("id"),
            view: "main".parse().expect("id"),
            weight: 1.0,
            metric: "rmse".into(),
        }],
        views: vec![ViewBrief {
            view: "main".parse().expect("id"),
            manifest: json!({"schema": 1, "features": ["a", "b"], "target": "y"}),
        }],
    }
}

fn plan() -> Plan {
    Plan {
        name: "ridge".into(),
        motivation: "shrinkage".into(),
        approach: "Standardise, then ridge.".into(),
        expected_groups: vec!["main".into()],
        risks: vec![],
        family_id: Some("linear".parse().expect("id")),
        mechanism: Some("penalty".into()),
        ablate: Some("penalty".into()),
    }
}

fn report(total: f64) -> ScoreReport {
    ScoreReport {
        total: Score::new(total).expect("finite"),
        components: [(
            "main".parse().expect("id"),
            Score::new(total).expect("finite"),
        )]
        .into(),
        parts: vec![Part {
            ruler: "main".parse().expect("id"),
            metric: "rmse".into(),
            raw: 50.5,
            skill: total / 100.0,
            points: total,
        }]
        .into(),
    }
}

fn summary(node: u32, status: NodeStatus, score: Option<f64>) -> NodeSummary {
    NodeSummary {
        node: NodeId(node),
        operator: if node == 0 {
            Operator::Seed
        } else {
            Operator::Improve
        },
        parent: (node > 0).then_some(NodeId(0)),
        family: Some("linear".parse().expect("id")),
        name: format!("idea {node}"),
        status,
        score: score.map(|score| Score::new(score).expect("finite")),
        method_first_line: Some("Ridge regression.".into()),
        analysis: (node > 0).then(|| format!("The score of {SECRET_SCORE} came from shrinkage.")),
    }
}

fn parent(status: NodeStatus) -> ParentInput {
    ParentInput {
        node: summary(1, status, Some(61.1234)),
        plan: Some(plan()),
        program: ProgramText {
            files: vec![("METHOD.md".into(), 18), ("run.py".into(), 60)],
            run_py: "#!/usr/bin/env python3\n# params: {\"alpha\": 1.5}\nprint('```')\n".into(),
            method: "Ridge regression.\n".into(),
        },
        report: Some(report(61.1234)),
        base: Some((NodeId(0), report(50.0))),
        analysis_json: Some(format!("{{\"summary\": \"{SECRET_SCORE}\"}}")),
        error_tail: Some("ValueError: singular\n".into()),
        wall_ms: Some(120),
        max_rss_kib: Some(20_480),
        refuted: vec!["cubes: no gain".into()],
    }
}

fn tree() -> Vec<NodeSummary> {
    vec![
        summary(0, NodeStatus::Scored, Some(50.0)),
        summary(1, NodeStatus::Scored, Some(61.1234)),
        summary(2, NodeStatus::Crash, None),
    ]
}

fn context(prompt: &Prompt) -> Context {
    let rest = prompt
        .user
        .strip_prefix("```json context\n")
        .expect("the block is first");
    let (block, _) = rest.split_once("\n```").expect("the block is closed");
    serde_json::from_str(block).expect("the block parses")
}

fn researcher(operator: Operator, parent: Option<&ParentInput>) -> Prompt {
    let (texts, board, tree) = (texts(), board(), tree());
    researcher_prompt(&ResearcherInput {
        texts: &texts,
        board: &board,
        node: NodeId(3),
        attempt: 1,
        operator,
        family: parent.is_none().then(|| "boosting".parse().expect("id")),
        parent,
        tree: &tree,
        feedback: Some("key `name` is missing".into()),
    })
}

#[test]
fn researcher_prompts() {
    let draft = researcher(Operator::Draft, None);
    assert_eq!(context(&draft).family.expect("set").as_str(), "boosting");
    insta::assert_snapshot!("researcher_draft", draft.user);

    let parent = parent(NodeStatus::Crash);
    let debug = researcher(Operator::Debug, Some(&parent));
    let read = context(&debug);
    let of_parent = read.parent.expect("set");
    assert_eq!(of_parent.params.expect("set")["alpha"], 1.5);
    assert_eq!((read.attempt, of_parent.refuted), (1, 1));
    insta::assert_snapshot!("researcher_debug", debug.user);
    for needed in ["NO_CHANGE:", "[auto:", "--ablate", "queries_before_refute"] {
        assert!(debug.system.contains(needed), "{needed}");
    }
    assert_eq!(debug, researcher(Operator::Debug, Some(&parent)));
}

#[test]
fn analyst_and_reviewer_prompts() {
    let (texts, board, plan) = (texts(), board(), plan());
    let (node, base) = (
        summary(1, NodeStatus::Scored, Some(61.1234)),
        summary(0, NodeStatus::Scored, Some(50.0)),
    );
    let (own, base_report) = (report(61.1234), report(50.0));
    let analyst = analyst_prompt(&AnalystInput {
        texts: &texts,
        board: &board,
        node: &node,
        attempt: 0,
        plan: Some(&plan),
        report: Some(&own),
        parent: Some(&base),
        parent_report: Some(&base_report),
        method: "Ridge.\n",
        diff: Some("+ridge\n"),
        last_message: Some("done"),
        fault: Some("exit 1"),
        stderr_tail: Some("Traceback"),
        mechanism_active: None,
    });
    assert_eq!(context(&analyst).outcome.expect("set").gain, Some(11.1234));
    assert!(analyst.system.contains("mechanism_active"));
    insta::assert_snapshot!("analyst", analyst.user);

    let reviewer = reviewer_prompt(&ReviewerInput {
        texts: &texts,
        board: &board,
        node: &node,
        attempt: 2,
        plan: Some(&plan),
        program: &parent(NodeStatus::Scored).program,
        removed: &["Fetch https://example.org/x.".into()],
    });
    assert!(!reviewer.user.contains(SECRET_SCORE), "no scores for it");
    insta::assert_snapshot!("reviewer", reviewer.user);
}

#[test]
fn no_score_of_half_b_enters_the_sandbox() {
    let (texts, board, plan, tree) = (texts(), board(), plan(), tree());
    let parent = parent(NodeStatus::Scored);
    let run = "20261130-101010-diabetes-abcd".parse().expect("id");
    let files = engineer_brief(&BriefInput {
        texts: &texts,
        run: &run,
        board: &board,
        node: NodeId(3),
        operator: Operator::Improve,
        plan: &plan,
        parent: Some(&parent),
        tree: &tree,
        python: "/usr/bin/python3",
        score_quota: 20,
        playbook: Some(PlaybookBrief {
            file: "/opt/vec/agent/playbooks/diabetes.yaml".into(),
            search_seed: 7,
            trials: 4,
        }),
    })
    .expect("encodes")
    .files;
    let names: Vec<&str> = files.keys().copied().collect();
    assert_eq!(
        names,
        ["BRIEF.json", "CONTRACT.md", "PLAN.json", "SEARCH.md"]
    );
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains(SECRET_SCORE), "{name}");
        assert!(!text.contains("61.12"), "{name}");
    }
    let brief: Value = serde_json::from_slice(&files["BRIEF.json"]).expect("JSON");
    assert_eq!(brief["views"][0]["dir"], "/views/main");
    assert_eq!(brief["parent"]["refuted"][0], "cubes: no gain");
    insta::assert_snapshot!("brief", String::from_utf8_lossy(&files["BRIEF.json"]));
}
