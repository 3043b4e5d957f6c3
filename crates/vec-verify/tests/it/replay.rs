//! Replay finds decisions that do not follow from the facts, and names the first.

use tempfile::TempDir;
use vec_search::{Event, Outcome};
use vec_store::RunLayout;
use vec_types::{StopReason, UnixMs};
use vec_verify::{Check, Finding, VerifyOptions, verify};

use crate::fixture::{Made, T0, run_id};

async fn findings(layout: &RunLayout, open: bool) -> Vec<Finding> {
    let options = VerifyOptions {
        open,
        replay: true,
        anchor: None,
    };
    let report = verify(layout.run_dir(), &options).await.expect("checks");
    report.findings
}

fn start(made: &Made) -> Event {
    Event::RunStart {
        run: run_id(),
        policy: Box::new(made.policy.clone()),
    }
}

/// Stores events that no controller would, past the fold.
async fn store(made: &mut Made, events: Vec<Event>) {
    let batch = vec_store::Batch {
        at: T0,
        files: Vec::new(),
        events,
    };
    made.store.commit(batch).await.expect("commits");
}

async fn made(root: &TempDir) -> Made {
    let mut made = Made::launch(root.path(), 1).await;
    let start = start(&made);
    store(&mut made, vec![start.clone()]).await;
    made.state.apply(T0, &start).expect("fits");
    made
}

async fn seal(made: Made) -> RunLayout {
    made.store.release().await.expect("releases");
    made.layout
}

#[tokio::test]
async fn a_decision_of_another_kind_is_said_in_words() {
    let root = TempDir::new().expect("tempdir");
    let mut made = made(&root).await;
    let mut batch = made.state.decide(T0);
    batch[0] = Event::Stop {
        reason: StopReason::Operator,
        detail: "forged".to_owned(),
        inputs_digest: vec_types::Digest::ZERO,
    };
    store(&mut made, batch).await;
    let found = findings(&seal(made).await, true).await;
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    let rule = "phases of a run (requirements c)";
    assert_eq!(
        said,
        [format!(
            "event 2, {rule}: expected phase_change, found stop"
        )]
    );
    assert_eq!(found[0].check, Check::Replay);
    assert_eq!(found[0].rule, Some(rule));
    let json = serde_json::to_value(&found[0]).expect("encodes");
    assert_eq!(json["rule"], rule);
    assert!(json.get("path").is_none(), "{json}");
}

/// Stores the decisions after the launch, changed by `forge`, and says what replay finds.
async fn forged(forge: impl FnOnce(&mut Vec<Event>)) -> Vec<String> {
    let root = TempDir::new().expect("tempdir");
    let mut made = made(&root).await;
    let phase = made.state.decide(T0);
    store(&mut made, phase.clone()).await;
    for event in &phase {
        made.state.apply(T0, event).expect("fits");
    }
    let mut batch = made.state.decide(T0);
    forge(&mut batch);
    store(&mut made, batch).await;
    let found = findings(&seal(made).await, true).await;
    found.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_changed_a_missing_and_an_extra_decision_are_named() {
    let other_seed = |batch: &mut Vec<Event>| {
        if let Event::NodeCreated { seed_program, .. } = &mut batch[0] {
            *seed_program = Some("ols".parse().expect("id"));
        }
    };
    assert_eq!(
        forged(other_seed).await,
        [
            "event 3 (node 0), creation of a node (OPR-04, SED-06): seed_program expected \
             \"train_mean\", found \"ols\""
        ]
    );
    let extra = |batch: &mut Vec<Event>| {
        let why = "forged".to_owned();
        batch.push(Event::FinalGuardRefused { why });
    };
    assert_eq!(
        forged(extra).await,
        [
            "event 4, refusal of an answer (FIN-04): expected no further decision in this batch, \
             found final_guard_refused"
        ]
    );
}

#[tokio::test]
async fn a_left_out_decision_is_named() {
    let root = TempDir::new().expect("tempdir");
    let mut made = made(&root).await;
    let requested = Event::StopRequested {
        reason: StopReason::Operator,
        detail: "now".to_owned(),
    };
    store(&mut made, vec![requested]).await;
    let found = findings(&seal(made).await, true).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].check, Check::Replay);
    assert_eq!(found[0].rule, Some("phases of a run (requirements c)"));
    assert_eq!(found[0].expected, "phase_change");
    assert_eq!(found[0].found, "no decision before it");
}

#[tokio::test]
async fn a_crash_before_the_decisions_is_no_divergence_in_an_open_run_or_before_a_resume() {
    let root = TempDir::new().expect("tempdir");
    let mut made = made(&root).await;
    let resume = Event::RunResume { start: 2 };
    store(&mut made, vec![resume]).await;
    let layout = seal(made).await;
    assert_eq!(findings(&layout, true).await, []);
    let strict = findings(&layout, false).await;
    let checks: Vec<Check> = strict.iter().map(|f| f.check).collect();
    assert_eq!(checks, [Check::Open, Check::Replay], "{strict:?}");
}

#[tokio::test]
async fn a_changed_fact_shows_in_the_decisions_that_saw_it() {
    let root = TempDir::new().expect("tempdir");
    let mut made = Made::launch(root.path(), 1).await;
    made.run_to_stop().await;
    let events = made.store.events().await.expect("events");
    let other = TempDir::new().expect("tempdir");
    let mut forged = Made::launch(other.path(), 1).await;
    // A whole second history with one score changed and every hash made anew.
    let mut changed = None;
    for batch in events.chunk_by(|a, b| a.batch == b.batch) {
        let mut copies: Vec<Event> = Vec::new();
        for row in batch {
            let mut event = row.event().expect("known");
            if changed.is_none() && raise(&mut event) {
                changed = Some(row.seq);
            }
            copies.push(event);
        }
        let at: UnixMs = batch[0].at;
        let batch = vec_store::Batch {
            at,
            files: Vec::new(),
            events: copies,
        };
        forged.store.commit(batch).await.expect("commits");
    }
    let changed = changed.expect("a score");
    made.store.release().await.expect("releases");
    let found = findings(&seal(forged).await, true).await;
    let replay: Vec<&Finding> = found.iter().filter(|f| f.check == Check::Replay).collect();
    assert_eq!(replay.len(), 1, "{found:?}");
    let seq = replay[0].place.split([' ', '(']).nth(1).expect("a number");
    assert!(
        seq.parse::<u64>().expect("a number") > changed,
        "{replay:?}"
    );
    assert_eq!(replay[0].path.as_deref(), Some("inputs_digest"));
    let ends = "a score, visit, status or epoch of node 0 that this decision saw is not the one \
                stored before it";
    assert!(replay[0].found.ends_with(ends), "{replay:?}");
}

fn raise(event: &mut Event) -> bool {
    let Event::EffectEnded {
        end: Outcome::Scored { result },
        ..
    } = event
    else {
        return false;
    };
    let text = serde_json::to_string(result).expect("encodes");
    let raised = text.replace("\"total\":50.0", "\"total\":50.5");
    *result = serde_json::from_str(&raised).expect("decodes");
    raised != text
}
