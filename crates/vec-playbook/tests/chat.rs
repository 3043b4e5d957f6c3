//! The scripted model behind its socket: prompts from vec-roles in, replies that vec-roles reads
//! out, the same every time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vec_llm::{ChatClient, ChatRequest, Message, MessageRole};
use vec_playbook::{OutcomeCard, Playbook, answer, deal, serve};
use vec_roles::*;
use vec_types::{FamilyId, NodeId, NodeStatus, Operator, Plan, Score};

const SEED: u32 = 5;

fn playbook() -> Playbook {
    Playbook::load(&folder().join("diabetes.yaml")).expect("loads")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/playbooks")
}

fn texts() -> RoleTexts {
    RoleTexts::load(|_| Ok::<_, std::io::Error>("text".into())).expect("texts")
}

fn families() -> Vec<FamilyId> {
    playbook().families().map(|(id, _)| id.clone()).collect()
}

fn board() -> BoardBrief {
    let family = |id: FamilyId| FamilyBrief {
        id,
        category: None,
        title: "t".into(),
        text: "t".into(),
        drafts: 0,
    };
    BoardBrief {
        board: "diabetes".parse().expect("id"),
        title: "t".into(),
        task: "tabular_regression".into(),
        preamble: String::new(),
        families: families().into_iter().map(family).collect(),
        rulers: vec![],
        views: vec![],
    }
}

fn summary(node: u32, family: &str, score: f64) -> NodeSummary {
    NodeSummary {
        node: NodeId(node),
        operator: Operator::Draft,
        parent: None,
        family: Some(family.parse().expect("id")),
        name: "an idea".into(),
        status: NodeStatus::Scored,
        score: Some(Score::new(score).expect("finite")),
        method_first_line: None,
        analysis: None,
    }
}

fn parent() -> ParentInput {
    ParentInput {
        node: summary(1, "bagging", 57.0),
        plan: None,
        program: ProgramText::default(),
        report: None,
        base: None,
        analysis_json: None,
        error_tail: None,
        wall_ms: None,
        max_rss_kib: None,
        refuted: vec![],
    }
}

fn researcher(node: u32, attempt: u32, operator: Operator, family: Option<&str>) -> Prompt {
    let (texts, board, parent) = (texts(), board(), parent());
    researcher_prompt(&ResearcherInput {
        texts: &texts,
        board: &board,
        node: NodeId(node),
        attempt,
        operator,
        family: family.map(|id| id.parse().expect("id")),
        parent: (operator != Operator::Draft).then_some(&parent),
        tree: &[],
        feedback: None,
    })
}

fn body(prompt: &Prompt) -> Vec<u8> {
    let messages = json!([
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.user},
    ]);
    json!({"model": "scripted", "messages": messages})
        .to_string()
        .into_bytes()
}

fn ask(prompt: &Prompt) -> String {
    let reply = answer(&playbook(), SEED, &body(prompt)).expect("answers");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    reply["choices"][0]["message"]["content"]
        .as_str()
        .expect("text")
        .to_owned()
}

fn planned(
    node: u32,
    attempt: u32,
    operator: Operator,
    family: Option<&str>,
) -> Result<Plan, PlanError> {
    parse_plan(
        &ask(&researcher(node, attempt, operator, family)),
        &families(),
    )
}

fn node_with(card: OutcomeCard, operator: vec_playbook::Operator) -> u32 {
    (0..100)
        .find(|node| deal(&playbook().deck, SEED, NodeId(*node), operator) == card)
        .expect("the deck holds the card")
}

#[test]
fn plans_keep_to_the_family_and_repeat() {
    let improve = vec_playbook::Operator::Improve;
    let invalid = node_with(OutcomeCard::PlanInvalid, improve);
    let mut families_seen = std::collections::BTreeSet::new();
    for node in (0..64).filter(|node| node % 16 != invalid % 16) {
        let draft = planned(node, 0, Operator::Draft, Some("neighbours")).expect("a plan");
        assert_eq!(draft.family_id.expect("set").as_str(), "neighbours");
        assert_eq!(draft.ablate.as_deref(), Some("weights"));
        let debug = planned(node, 0, Operator::Debug, None).expect("a plan");
        assert_eq!(debug.family_id.expect("set").as_str(), "bagging");
        let improve = planned(node, 0, Operator::Improve, None).expect("a plan");
        let again = planned(node, 0, Operator::Improve, None).expect("a plan");
        assert_eq!(improve, again);
        families_seen.insert(improve.family_id.expect("set"));
    }
    assert!(
        families_seen.len() >= 4,
        "improve leaves its family: {families_seen:?}"
    );
}

#[test]
fn the_invalid_card_damages_the_first_reply_only() {
    let node = node_with(OutcomeCard::PlanInvalid, vec_playbook::Operator::Improve);
    for round in 0..8 {
        let node = node + 16 * round;
        let first = planned(node, 0, Operator::Improve, None);
        assert!(first.is_err(), "{first:?}");
        let second = planned(node, 1, Operator::Improve, None).expect("the retry is sound");
        assert!(!second.approach.is_empty());
    }
}

#[test]
fn the_escape_card_plans_what_compliance_removes() {
    let node = node_with(OutcomeCard::Escape, vec_playbook::Operator::Improve);
    let plan = planned(node, 0, Operator::Improve, None).expect("a plan");
    assert!(plan.approach.contains("/truth") && plan.approach.contains("curl"));
}

#[test]
fn analysts_and_reviewers_answer_to_what_they_see() {
    let (texts, board) = (texts(), board());
    let (node, base) = (summary(4, "linear", 58.5), summary(1, "bagging", 57.0));
    let analyst = analyst_prompt(&AnalystInput {
        texts: &texts,
        board: &board,
        node: &node,
        attempt: 0,
        plan: None,
        report: None,
        parent: Some(&base),
        parent_report: None,
        method: "",
        diff: None,
        last_message: None,
        fault: None,
        stderr_tail: None,
        mechanism_active: None,
    });
    let analysis = parse_analysis(&ask(&analyst), &families()).expect("an analysis");
    assert!(analysis.why.contains("rose by 1.5000"), "{}", analysis.why);
    assert_eq!(analysis.family_id.expect("set").as_str(), "linear");

    for (line, fails) in [("print(1)", false), ("open('/etc/shadow')", true)] {
        let program = ProgramText {
            files: vec![("run.py".into(), 8)],
            run_py: format!("import os\n{line}\n"),
            method: "never mind /proc/ here".into(),
        };
        let prompt = reviewer_prompt(&ReviewerInput {
            texts: &texts,
            board: &board,
            node: &node,
            attempt: 0,
            plan: None,
            program: &program,
            removed: &[],
        });
        let review = parse_review(&ask(&prompt)).expect("a review");
        assert_eq!(review.verdict == vec_search::ReviewVerdict::Fail, fails);
        assert_eq!(review.findings.is_empty(), !fails);
    }
}

#[test]
fn requests_without_context_are_refused() {
    for (body, why) in [
        ("hello".to_owned(), "request"),
        (
            json!({"model": "m", "messages": []}).to_string(),
            "no user message",
        ),
        (
            json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string(),
            "does not begin",
        ),
    ] {
        let fault = answer(&playbook(), SEED, body.as_bytes()).expect_err(why);
        assert!(fault.to_string().contains(why), "{fault}");
    }
}

#[tokio::test]
async fn it_serves_the_chat_seam() {
    let place = tempfile::tempdir().expect("folder");
    let socket = place.path().join("http.s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bind");
    let stop = CancellationToken::new();
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("proc"));
    let server = tokio::spawn(serve(playbook(), SEED, vec![uid], listener, stop.clone()));
    let run = "20261130-101010-diabetes-abcd".parse().expect("id");
    let client = ChatClient::new(socket, run);
    let prompt = researcher(3, 1, Operator::Draft, Some("linear"));
    let request = |content: String| ChatRequest {
        model: "scripted".into(),
        messages: vec![Message {
            role: MessageRole::User,
            content,
        }],
        max_tokens: 1_000,
        role: "researcher".into(),
        node: NodeId(3),
        attempt: 1,
        timeout: Duration::from_secs(20),
    };
    let attempt = client.chat(&request(prompt.user.clone())).await;
    let reply = attempt.result.expect("replies");
    parse_plan(&reply.text, &families()).expect("a plan");
    assert!(reply.usage.input_tokens > 10 && reply.usage.output_tokens > 10);
    let refused = client.chat(&request("hi".into())).await;
    let value: Value = serde_json::from_slice(&refused.reply).expect("JSON");
    assert_eq!(
        (refused.status, &value["error"]["type"]),
        (Some(400), &json!("invalid_request"))
    );
    stop.cancel();
    server.await.expect("no panic").expect("stops");
}

#[test]
fn files_that_do_not_fit_are_named() {
    let place = tempfile::tempdir().expect("folder");
    let path = place.path().join("diabetes.yaml");
    let copy = place.path().join("diabetes");
    std::fs::create_dir(&copy).expect("mkdir");
    for entry in std::fs::read_dir(folder().join("diabetes")).expect("list") {
        let entry = entry.expect("entry");
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copy");
    }
    let good = std::fs::read_to_string(folder().join("diabetes.yaml")).expect("read");
    let long = format!("{good}\n#{}", "x".repeat(300_000));
    for (text, why) in [
        (
            good.replace("switch_family_p:", "switch_p:"),
            "unknown field `switch_p`",
        ),
        (good.replace("  crash: 1 ", "  crush: 1 "), "crush"),
        (good.replace("  normal: 8", "  normal: 2000"), "outcomes: "),
        (
            good.replace("_p: 0.35", "_p: 1.5"),
            "switch_family_p: must be a probability",
        ),
        (
            good.replace(
                "clip: { linear: [1.5, 4.0] }",
                "clip: { linear: [4.0, 1.5] }",
            ),
            "families.linear.parameters.clip",
        ),
        (
            good.replace("clip: {", "clap: {"),
            "families.linear.program: the template does not use parameter {{clap}}",
        ),
        (
            good.replace("program: linear.py", "program: ../x.py"),
            "families.linear.program",
        ),
        (
            good.replace("program: linear.py", "program: gone.py"),
            "gone.py",
        ),
        (good.replace("board: diabetes", "board: ../x"), "board"),
        ("families: [".to_owned(), "line 1"),
        (long, "at most 262144 are accepted"),
    ] {
        assert_ne!(text, good, "{why}");
        std::fs::write(&path, text).expect("write");
        let error = Playbook::load(&path).expect_err(why).to_string();
        assert!(
            error.contains(why) && error.contains("diabetes"),
            "{why}: {error}"
        );
    }
    std::fs::write(&path, good).expect("write");
    let loaded = Playbook::load(&path).expect("loads");
    assert!(loaded.check_families(&path, &families()).is_ok());
    let missing = loaded.check_families(&path, &["forest".parse().expect("id")]);
    assert!(
        missing
            .expect_err("missing")
            .to_string()
            .contains("family forest")
    );
}
