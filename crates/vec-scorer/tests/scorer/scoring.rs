//! Half B: idempotent replies, restarts, refused headers.

use tonic::Code;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::{RowSet, score_reply};

use super::stage::{FLOOR, Stage, perfect, prediction};

fn total(reply: &score_reply::Result) -> f64 {
    match reply {
        score_reply::Result::Report(report) => report.total,
        score_reply::Result::InvalidFormat(problem) => panic!("{problem:?}"),
    }
}

fn code(reply: score_reply::Result) -> String {
    match reply {
        score_reply::Result::Report(report) => panic!("{report:?}"),
        score_reply::Result::InvalidFormat(problem) => problem.code,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_set_has_its_anchors_and_replies_survive_a_kill_bit_for_bit() {
    let stage = Stage::new();
    let running = stage.run().await;
    for (rows, seed) in [
        (RowSet::Search, 0),
        (RowSet::Search, 2),
        (RowSet::Guard, 3),
        (RowSet::Guard, 7),
    ] {
        let score = async |name: &str, file: &[u8]| {
            total(
                &running
                    .score(&format!("{name}{seed}"), (rows, seed), file)
                    .await
                    .expect("scored"),
            )
        };
        assert_eq!(score("perfect", &perfect()).await, 100.0);
        assert_eq!(score("floor", &prediction(|_| FLOOR)).await, 50.0);
    }
    let odd = prediction(|id| FLOOR + id as f64 / 7.0);
    let first = running
        .score("odd", (RowSet::Search, 1), &odd)
        .await
        .expect("scored");
    running.kill().await;

    let running = stage.run().await;
    let lines = stage.journal().lines().count();
    let again = running
        .score("odd", (RowSet::Search, 1), &odd)
        .await
        .expect("stored");
    assert_eq!(first, again);
    assert_eq!(total(&first).to_bits(), total(&again).to_bits());
    assert_eq!(stage.journal().lines().count(), lines, "scored again");
    for (rows, seed, file) in [
        (RowSet::Search, 1, perfect()),
        (RowSet::Search, 0, odd.clone()),
        (RowSet::Guard, 3, odd.clone()),
    ] {
        let error = running
            .score("odd", (rows, seed), &file)
            .await
            .expect_err("other input");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_asked_many_times_at_once_is_scored_once() {
    let stage = Stage::new();
    let running = stage.run().await;
    let file = prediction(|id| FLOOR + id as f64);
    let calls = (0..20).map(|_| running.score("same", (RowSet::Search, 0), &file));
    let mut replies = Vec::new();
    for call in futures_join(calls).await {
        replies.push(call.expect("scored"));
    }
    assert!(replies.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(stage.journal_kinds("reply"), 1);
    running.stop().await.expect("stops");
}

async fn futures_join<T>(calls: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        calls.retain_mut(|call| match call.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                done.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if calls.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_predictions_are_stored_as_invalid_format() {
    let mut stage = Stage::new();
    stage.spec.prediction_bytes_max = 4_096;
    stage.parser = super::stage::own_parser(4_096);
    let running = stage.run().await;
    let good = String::from_utf8(prediction(|_| 1.0)).expect("text");
    for (name, file, expected) in [
        ("nan", good.replacen(",1\n", ",NaN\n", 1), "not_finite"),
        ("missing", good.replacen("5,1\n", "", 1), "missing_rows"),
        ("extra", format!("{good}9999,1\n"), "extra_rows"),
        (
            "swapped",
            good.replacen("\n5,1\n", "\n9999,1\n", 1),
            "extra_rows",
        ),
        (
            "twice",
            good.replacen("\n5,1\n", "\n4,1\n", 1),
            "duplicate_id",
        ),
        ("long", "x".repeat(4_097), "too_large"),
        ("none", String::new(), "empty"),
    ] {
        let reply = running
            .score(name, (RowSet::Search, 0), file.as_bytes())
            .await
            .expect(name);
        assert_eq!(code(reply), expected, "{name}");
    }
    assert_eq!(stage.journal_kinds("reply"), 7);
    let again = running
        .score("nan", (RowSet::Search, 0), b"other")
        .await
        .expect_err("other bytes");
    assert_eq!(again.code(), Code::InvalidArgument);
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn seeds_without_rows_and_broken_streams_are_refused() {
    let stage = Stage::new();
    let running = stage.run().await;
    for (rows, seed) in [
        (RowSet::Search, 3),
        (RowSet::Guard, 0),
        (RowSet::Guard, 8),
        (RowSet::Unspecified, 0),
    ] {
        let error = running
            .score("x", (rows, seed), &perfect())
            .await
            .expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{rows:?} {seed}");
    }
    let error = running
        .score(&"x".repeat(129), (RowSet::Search, 0), &perfect())
        .await;
    assert_eq!(error.expect_err("long id").code(), Code::InvalidArgument);
    let headerless = pb::ScoreRequest {
        item: Some(pb::score_request::Item::Upload(pb::Upload::default())),
    };
    let error = running
        .scorer
        .clone()
        .score(tokio_stream::iter([headerless]))
        .await;
    assert_eq!(error.expect_err("no header").code(), Code::InvalidArgument);
    assert_eq!(stage.journal_kinds("reply"), 0);
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_truth_than_the_locked_one_is_refused() {
    let stage = Stage::new();
    let file = stage.dir.path().join("truth/B/truth.csv");
    let mut bytes = std::fs::read(&file).expect("read");
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).expect("write");
    let error = stage.open().expect_err("refused");
    let chain = vec_daemon::chain(&error).to_string();
    assert!(chain.contains("B/truth.csv has sha256"), "{chain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_uids_are_refused() {
    let mut stage = Stage::new();
    stage.spec.common.peer_uids = vec![u32::MAX - 7];
    let running = stage.run().await;
    let error = running.close("1-0").await.expect_err("refused");
    assert_eq!(error.code(), Code::PermissionDenied);
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_tells_the_fingerprint_of_the_prebuild() {
    let stage = Stage::new();
    let running = stage.run().await;
    let health = running
        .scorer
        .clone()
        .health(pb::HealthRequest {})
        .await
        .expect("health")
        .into_inner();
    assert!(health.rss_kib > 0);
    let spec = stage.spec.scoring.clone();
    let parser = stage.parser.clone();
    let truth = stage.truth();
    let prebuilt = tokio::task::spawn_blocking(move || vec_scorer::prebuild(spec, &truth, parser));
    let prebuilt = prebuilt.await.expect("joins").expect("prebuilt");
    assert_eq!(
        health.scoring_fingerprint,
        prebuilt.scoring_fingerprint.to_string()
    );
    running.stop().await.expect("stops");
}
