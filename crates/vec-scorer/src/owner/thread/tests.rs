//! Tests of `thread`.

use std::fs::OpenOptions;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use vec_clock::SystemClock;
use vec_types::{Parts, Score, ScoreReport, Table};

use super::*;
use crate::owner::{OwnerError, OwnerHandle, start};

fn owner(dir: &tempfile::TempDir) -> OwnerHandle {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .append(true)
        .create(true)
        .open(dir.path().join("journal"));
    let (journal, state) = Journal::open(file.expect("open")).expect("journal");
    start(
        state,
        journal,
        Arc::new(SystemClock),
        CancellationToken::new(),
    )
    .expect("thread")
    .0
}

fn answered(query: u32) -> Answered {
    let total = Score::new(50.0).expect("finite");
    let report = ScoreReport {
        total,
        components: Table::new(),
        parts: Parts::default(),
    };
    Answered {
        query,
        report,
        score_bytes: 9,
        elapsed_ms: 1,
    }
}

async fn registered(dir: &tempfile::TempDir, quota: u32) -> OwnerHandle {
    let owner = owner(dir);
    let register = |answer| ClientVerb::Register("/c".into(), quota, answer);
    owner.client("1-0", register).await.expect("register");
    owner
}

fn kinds(dir: &tempfile::TempDir, kind: &str) -> usize {
    let text = std::fs::read_to_string(dir.path().join("journal")).expect("journal");
    text.matches(&format!("\"kind\":\"{kind}\"")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_waits_for_the_query_in_flight() {
    let dir = tempfile::tempdir().expect("dir");
    let owner = registered(&dir, 2).await;
    let admit = |answer| ClientVerb::Admit(Digest::ZERO, answer);
    let query = owner.client("1-0", admit).await.expect("admitted");
    assert_eq!(owner.client("1-0", ClientVerb::Close).await, Ok(1));
    let refused = owner
        .client("1-0", |answer| ClientVerb::Admit(Digest::ZERO, answer))
        .await;
    assert_eq!(
        refused,
        Err(OwnerError::Refused(Refusal::Closed("1-0".into())))
    );
    // One gives up waiting, one stays.
    let gone = tokio::time::timeout(
        Duration::from_millis(20),
        owner.client("1-0", ClientVerb::Settle),
    );
    assert!(gone.await.is_err());
    let waiting = tokio::spawn({
        let owner = owner.clone();
        async move { owner.client("1-0", ClientVerb::Settle).await }
    });
    let finish = |answer| ClientVerb::Finish(answered(query), answer);
    assert_eq!(owner.client("1-0", finish).await, Ok(1));
    assert_eq!(waiting.await.expect("joins"), Ok(1));
    assert_eq!(owner.client("1-0", ClientVerb::Settle).await, Ok(1));
    assert_eq!(kinds(&dir, "settle"), 1);
    let journal = std::fs::read_to_string(dir.path().join("journal")).expect("journal");
    assert!(
        journal.contains("\"kind\":\"settle\",\"score_bytes\":9,\"used\":1"),
        "{journal}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_frees_the_quota_and_the_settlement() {
    let dir = tempfile::tempdir().expect("dir");
    let owner = registered(&dir, 1).await;
    let admit = |answer| ClientVerb::Admit(Digest::ZERO, answer);
    assert_eq!(owner.client("1-0", admit).await, Ok(0));
    let exhausted = Err(OwnerError::Refused(Refusal::Exhausted { quota: 1 }));
    assert_eq!(
        owner
            .client("1-0", |a| ClientVerb::Admit(Digest::ZERO, a))
            .await,
        exhausted
    );
    owner
        .client("1-0", |a| ClientVerb::Refund(0, a))
        .await
        .expect("refund");
    assert_eq!(
        owner
            .client("1-0", |a| ClientVerb::Admit(Digest::ZERO, a))
            .await,
        Ok(1)
    );
    owner
        .client("1-0", |a| ClientVerb::Refund(1, a))
        .await
        .expect("refund");
    owner.client("1-0", ClientVerb::Close).await.expect("close");
    assert_eq!(owner.client("1-0", ClientVerb::Settle).await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_scoring_wakes_those_who_wait_and_can_be_tried_again() {
    let dir = tempfile::tempdir().expect("dir");
    let owner = owner(&dir);
    let begin = async || {
        owner
            .ask(|answer| Command::BeginScore("r".into(), Digest::ZERO, answer))
            .await
    };
    assert!(matches!(begin().await, Ok(Begin::Run)));
    let Ok(Begin::Wait(wait)) = begin().await else {
        panic!("not waiting");
    };
    let other = owner
        .ask(|a| Command::BeginScore("r".into(), Digest::of(b"x"), a))
        .await;
    assert!(matches!(
        other,
        Err(OwnerError::Refused(Refusal::InputDiffers(_)))
    ));
    owner.abandon("r".into()).await;
    assert!(wait.await.is_err());
    assert!(matches!(begin().await, Ok(Begin::Run)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_after_the_journal_failed() {
    let full = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let failed = CancellationToken::new();
    let journal = Journal::of(full);
    let (owner, thread) = start(
        State::default(),
        journal,
        Arc::new(SystemClock),
        failed.clone(),
    )
    .expect("thread");
    let register = |answer| ClientVerb::Register("/c".into(), 1, answer);
    assert_eq!(owner.client("1-0", register).await, Err(OwnerError::Gone));
    failed.cancelled().await;
    assert!(matches!(
        thread.join().expect("no panic"),
        Err(JournalError::Append(_))
    ));
}
