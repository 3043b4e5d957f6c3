//! Whole sessions of the scripted Engineer, outside of a sandbox: the brief comes from vec-roles,
//! the programs run in Python, vec-check and vec-score are small doubles.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vec_roles::{
    AgentEvent, AgentLog, BoardBrief, BriefInput, FamilyBrief, PlaybookBrief, RoleTexts,
    RulerBrief, ViewBrief, engineer_brief, method_placeholder, method_state,
};
use vec_search::MethodState;
use vec_types::{FamilyId, NodeId, Operator as Operators, Plan};

use crate::deal::{Operator, OutcomeCard, deal};
use crate::program_tests::{View, diabetes, python, repository, shipped};
use crate::{Playbook, engineer};

const SEED: u32 = 11;

/// Scores like the real tool: 100·floor/(floor + rmse) on rows of the truth file; counts queries.
const TOOL: &str = r#"#!/usr/bin/python3
import csv, json, math, os, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
assert sys.argv[1:3] == ["--json", "--view"], sys.argv
view, path = sys.argv[3].split("=", 1)
assert view == "main", view
truth = json.load(open(os.path.join(here, "truth.json")))
rows = list(csv.reader(open(path)))[1:]
if {row[0] for row in rows} != set(truth) or not all(math.isfinite(float(row[1])) for row in rows):
    print(json.dumps({"status": "invalid_format", "code": "rows", "detail": "x"}))
    sys.exit(1)
if sys.argv[0].endswith("vec-check"):
    print(json.dumps({"status": "ok", "remaining": 20}))
    sys.exit(0)
open(os.path.join(here, "queries"), "a").write("x")
error = math.sqrt(sum((float(v) - truth[k]) ** 2 for k, v in rows) / len(rows))
print(json.dumps({"status": "scored", "total": round(100 * 77 / (77 + error), 4), "remaining": 19}))
"#;

struct Bench {
    folder: tempfile::TempDir,
    view: View,
    playbook: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let (folder, view) = (tempfile::tempdir().expect("folder"), diabetes());
        for name in ["vec-check", "vec-score"] {
            let path = folder.path().join(name);
            std::fs::write(&path, TOOL).expect("write");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        }
        let truth = serde_json::to_string(&view.truth).expect("encodes");
        std::fs::write(folder.path().join("truth.json"), truth).expect("write");
        let playbook = repository().join("configs/playbooks/diabetes.yaml");
        Self {
            folder,
            view,
            playbook,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A brief for `node` with the tools and the view of this bench.
    fn brief(&self, node: u32, operator: Operators, plan: &Plan) -> PathBuf {
        let texts = RoleTexts::load(|_| Ok::<_, std::io::Error>("text".into())).expect("texts");
        let manifest = std::fs::read(self.view.folder.path().join("manifest.json")).expect("read");
        let board = BoardBrief {
            board: "diabetes".parse().expect("id"),
            title: "t".into(),
            task: "tabular_regression".into(),
            preamble: String::new(),
            families: vec![FamilyBrief {
                id: family("linear"),
                category: None,
                title: "l".into(),
                text: "t".into(),
                drafts: 0,
            }],
            rulers: vec![RulerBrief {
                ruler: "main".parse().expect("id"),
                view: "main".parse().expect("id"),
                weight: 1.0,
                metric: "rmse".into(),
            }],
            views: vec![ViewBrief {
                view: "main".parse().expect("id"),
                manifest: serde_json::from_slice(&manifest).expect("JSON"),
            }],
        };
        let files = engineer_brief(&BriefInput {
            texts: &texts,
            run: &"20261130-101010-diabetes-abcd".parse().expect("id"),
            board: &board,
            node: NodeId(node),
            operator,
            plan,
            parent: None,
            tree: &[],
            python: "/usr/bin/python3",
            score_quota: 20,
            playbook: Some(PlaybookBrief {
                file: self.playbook.display().to_string(),
                search_seed: SEED,
                trials: 4,
            }),
        })
        .expect("encodes")
        .files;
        let brief = self.at("brief");
        std::fs::create_dir_all(&brief).expect("mkdir");
        for (name, bytes) in files {
            std::fs::write(brief.join(name), bytes).expect("write");
        }
        // Outside of a sandbox the view and the tools stand elsewhere.
        let path = brief.join("BRIEF.json");
        let mut value: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("read")).expect("JSON");
        value["views"][0]["dir"] = json!(self.view.folder.path());
        value["tools"] = json!({"score": self.at("vec-score"), "check": self.at("vec-check")});
        std::fs::write(&path, value.to_string()).expect("write");
        brief
    }

    /// Plays a session on a work directory with the placeholder and maybe a parent's program.
    async fn play(&self, brief: &Path, plan: &Plan, parent: Option<&str>) -> Played {
        let work = self.at("box");
        let _ = std::fs::remove_dir_all(&work);
        std::fs::create_dir_all(work.join("solution")).expect("mkdir");
        std::fs::write(work.join("solution/METHOD.md"), method_placeholder(plan)).expect("write");
        if let Some(parent) = parent {
            std::fs::write(work.join("solution/run.py"), parent).expect("write");
        }
        let _ = std::fs::remove_file(self.at("queries"));
        let mut events = Vec::new();
        engineer(brief, &work, self.folder.path(), &mut events)
            .await
            .expect("plays");
        let read = |name: &str| std::fs::read_to_string(work.join("solution").join(name)).ok();
        Played {
            run_py: read("run.py"),
            method: method_state(read("METHOD.md").as_deref()),
            log: AgentLog::parse(&events),
            events,
            queries: std::fs::read(self.at("queries")).map_or(0, |bytes| bytes.len()),
        }
    }
}

struct Played {
    run_py: Option<String>,
    method: MethodState,
    log: AgentLog,
    events: Vec<u8>,
    queries: usize,
}

fn family(id: &str) -> FamilyId {
    id.parse().expect("id")
}

fn plan(id: &str) -> Plan {
    Plan {
        name: format!("{id}: idea"),
        motivation: "m".into(),
        approach: "a".into(),
        expected_groups: vec![],
        risks: vec![],
        family_id: Some(family(id)),
        mechanism: None,
        ablate: None,
    }
}

/// A node that is dealt `card`.
fn node_with(playbook: &Playbook, card: OutcomeCard, operator: Operator) -> u32 {
    (0..100)
        .find(|node| deal(&playbook.deck, SEED, NodeId(*node), operator) == card)
        .expect("the deck holds the card")
}

#[tokio::test]
async fn a_draft_climbs_writes_its_method_and_repeats_exactly() {
    if python().is_none() {
        return;
    }
    let (bench, playbook, plan) = (Bench::new(), shipped("diabetes.yaml"), plan("boosting"));
    let node = node_with(&playbook, OutcomeCard::Normal, Operator::Draft);
    let brief = bench.brief(node, Operators::Draft, &plan);
    let played = bench.play(&brief, &plan, None).await;
    assert_eq!(played.queries, 4, "one query per trial");
    let program = played.run_py.expect("written");
    assert!(program.starts_with("#!/usr/bin/env python3\n# family: boosting\n# params: {"));
    let MethodState::Written { first_line } = &played.method else {
        panic!("{:?}", played.method);
    };
    assert!(
        first_line.starts_with("boosting: gradient boosting"),
        "{first_line}"
    );
    assert!(
        played.log.finished && played.log.unknown_lines == 0,
        "{:?}",
        played.log
    );
    assert!(played.log.last_message.expect("said").contains("best of 4"));

    let again = bench.play(&brief, &plan, None).await;
    assert_eq!(again.run_py.as_deref(), Some(program.as_str()));
    assert_eq!(again.events, played.events, "not even the stream differs");

    let brief = bench.brief(node + 1, Operators::Draft, &plan);
    let other = bench.play(&brief, &plan, None).await;
    assert_ne!(other.run_py.as_deref(), Some(program.as_str()));
}

#[tokio::test]
async fn an_improvement_starts_from_its_parent_and_never_gets_worse() {
    if python().is_none() {
        return;
    }
    let (bench, playbook, plan) = (Bench::new(), shipped("diabetes.yaml"), plan("linear"));
    let node = node_with(&playbook, OutcomeCard::Normal, Operator::Draft);
    let brief = bench.brief(node, Operators::Draft, &plan);
    let parent = bench
        .play(&brief, &plan, None)
        .await
        .run_py
        .expect("written");
    let best = |log: &AgentLog| {
        let scores = log.events.iter().filter_map(|event| match event {
            AgentEvent::ToolResult { tool, output, .. } if tool == "vec-score" => {
                serde_json::from_str::<Value>(output).expect("JSON")["total"].as_f64()
            }
            _ => None,
        });
        scores.collect::<Vec<f64>>()
    };
    let node = node_with(&playbook, OutcomeCard::Normal, Operator::Improve);
    let brief = bench.brief(node, Operators::Improve, &plan);
    let child = bench.play(&brief, &plan, Some(&parent)).await;
    let scores = best(&child.log);
    let no_change = child.run_py.as_deref() == Some(parent.as_str());
    assert_eq!(
        no_change,
        scores.iter().all(|score| *score <= scores[0]),
        "{scores:?}"
    );
    assert_eq!(
        no_change,
        format!("{:?}", child.method).contains("NO_CHANGE:")
    );

    // A parent of another family, or one without a header, is no starting point.
    for foreign in [
        "print(1)\n",
        "#!x\n# family: bagging\n# params: {\"bags\": 9}\n",
    ] {
        let child = bench.play(&brief, &plan, Some(foreign)).await;
        assert!(
            child
                .run_py
                .expect("written")
                .contains("\n# family: linear\n")
        );
    }
    let odd = parent.replace("# params: {", "# params: {\"unknown\": 3, ");
    let child = bench.play(&brief, &plan, Some(&odd)).await;
    assert!(!child.run_py.expect("written").contains("unknown"));
}

#[tokio::test]
async fn cards_are_played() {
    if python().is_none() {
        return;
    }
    let (bench, playbook, plan) = (Bench::new(), shipped("diabetes.yaml"), plan("bagging"));
    let parent = "#!x\n# family: linear\n# params: {}\nprint(1)\n";
    for (card, sign, queries) in [
        (OutcomeCard::Crash, "raise ArithmeticError", 1),
        (OutcomeCard::Timeout, "while True:", 1),
        (OutcomeCard::Nan, "float(\"nan\")", 1),
        (OutcomeCard::MissingMethod, "# family: bagging", 4),
        (OutcomeCard::AutoMethod, "# family: bagging", 4),
        (OutcomeCard::NoChange, "print(1)", 4),
        (OutcomeCard::PlanInvalid, "# family: bagging", 4),
    ] {
        let node = node_with(&playbook, card, Operator::Improve);
        let brief = bench.brief(node, Operators::Improve, &plan);
        let played = bench.play(&brief, &plan, Some(parent)).await;
        let program = played.run_py.expect("there");
        assert!(program.contains(sign), "{card:?}: {program}");
        assert_eq!(played.queries, queries, "{card:?}");
        assert!(played.log.finished, "{card:?}");
        let expected = match card {
            OutcomeCard::MissingMethod => matches!(played.method, MethodState::Missing),
            OutcomeCard::AutoMethod => matches!(played.method, MethodState::Placeholder),
            _ => matches!(&played.method, MethodState::Written { first_line }
                if first_line.starts_with("NO_CHANGE:") == (card == OutcomeCard::NoChange)),
        };
        assert!(expected, "{card:?}: {:?}", played.method);
        assert_eq!(program == parent, card == OutcomeCard::NoChange);
    }
}

#[tokio::test]
async fn a_dead_scorer_or_a_broken_python_leaves_a_program_without_score() {
    let (bench, playbook, plan) = (Bench::new(), shipped("diabetes.yaml"), plan("linear"));
    let node = node_with(&playbook, OutcomeCard::Normal, Operator::Draft);
    let brief = bench.brief(node, Operators::Draft, &plan);
    for name in ["vec-score", "vec-check"] {
        std::fs::write(bench.at(name), "#!/bin/sh\necho no scorer >&2\nexit 3\n").expect("write");
    }
    let played = bench.play(&brief, &plan, None).await;
    assert!(played.run_py.is_some() && played.log.finished);
    assert!(played.log.last_message.expect("said").contains("none of 4"));

    let text = std::fs::read_to_string(brief.join("BRIEF.json")).expect("read");
    std::fs::write(
        brief.join("BRIEF.json"),
        text.replace("/usr/bin/python3", "/nonexistent/python"),
    )
    .expect("write");
    let played = bench.play(&brief, &plan, None).await;
    assert!(played.run_py.is_some() && played.log.finished);
}

#[tokio::test]
async fn broken_briefs_are_one_clear_error() {
    let (bench, plan) = (Bench::new(), plan("linear"));
    let brief = bench.brief(0, Operators::Draft, &plan);
    let good = std::fs::read_to_string(brief.join("BRIEF.json")).expect("read");
    let mut events = Vec::new();
    for (text, why) in [
        (
            good.replace("diabetes.yaml", "none.yaml"),
            "load the playbook",
        ),
        (good.replace("\"score_quota\"", "\"other\""), "score_quota"),
        (good[..good.len() / 2].to_owned(), "BRIEF.json"),
    ] {
        std::fs::write(brief.join("BRIEF.json"), text).expect("write");
        let error = engineer(
            &brief,
            bench.folder.path(),
            bench.folder.path(),
            &mut events,
        )
        .await
        .expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    std::fs::remove_file(brief.join("BRIEF.json")).expect("remove");
    let error = engineer(
        &brief,
        bench.folder.path(),
        bench.folder.path(),
        &mut events,
    )
    .await;
    assert!(error.expect_err("gone").to_string().contains("BRIEF.json"));
    assert!(
        !AgentLog::parse(&events).finished,
        "no finish event after an error"
    );
}
