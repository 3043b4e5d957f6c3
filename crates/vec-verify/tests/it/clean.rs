//! What holds is said to hold; open runs, anchors, and that nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vec_store::Store;
use vec_types::Digest;
use vec_verify::{Check, VerifyOptions, verify};
use walkdir::WalkDir;

use crate::fixture::{Made, T0, closed_run};

type State = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

/// Bytes, modes and times of everything below `dir`.
fn state_of(dir: &Path) -> State {
    WalkDir::new(dir)
        .into_iter()
        .map(|entry| {
            let entry = entry.expect("walk");
            let meta = entry.metadata().expect("stat");
            let bytes = if meta.is_file() {
                fs::read(entry.path()).expect("read")
            } else {
                Vec::new()
            };
            let state = (meta.mode(), meta.mtime(), meta.mtime_nsec(), bytes);
            (entry.into_path(), state)
        })
        .collect()
}

#[tokio::test]
async fn a_closed_run_verifies_with_replay_and_stays_byte_for_byte_as_it_was() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 3).await;
    let before = state_of(root.path());
    let options = VerifyOptions {
        replay: true,
        ..VerifyOptions::default()
    };
    let report = verify(layout.run_dir(), &options).await.expect("checks");
    assert_eq!(report.findings, []);
    assert!(report.ok() && report.closed && report.pending.is_empty());
    assert!(report.events > 50, "{report:?}");
    assert!(report.program_objects >= 15, "{report:?}");
    assert!(report.replayed_batches > Some(20), "{report:?}");
    assert!(report.files > 30, "{report:?}");
    assert!(state_of(root.path()) == before, "verify changed the run");
}

#[tokio::test]
async fn an_open_run_is_a_finding_unless_it_may_be_open() {
    let root = TempDir::new().expect("tempdir");
    let mut made = Made::launch(root.path(), 1).await;
    made.run_to_stop().await;
    let layout = made.layout.clone();
    fs::write(layout.run_dir().join("nodes/stray"), "").expect("stray");
    let before = state_of(layout.run_dir());
    let strict = verify(layout.run_dir(), &VerifyOptions::default()).await;
    let strict = strict.expect("checks");
    let checks: Vec<Check> = strict.findings.iter().map(|f| f.check).collect();
    assert_eq!(checks, [Check::Open, Check::Coverage], "{strict:?}");
    let options = VerifyOptions {
        open: true,
        replay: true,
        anchor: None,
    };
    let lenient = verify(layout.run_dir(), &options).await.expect("checks");
    assert_eq!(lenient.findings, []);
    assert_eq!(lenient.pending, ["nodes/stray: not in the ledger"]);
    assert!(state_of(layout.run_dir()) == before, "verify wrote");
    made.store.release().await.expect("releases");
}

#[tokio::test]
async fn an_anchor_is_found_in_the_chain_or_missed() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    let plain = verify(layout.run_dir(), &VerifyOptions::default()).await;
    let plain = plain.expect("checks");
    let (store, _) = Store::reopen(layout.run_dir(), T0).await.expect("reopens");
    let manifest = serde_json::json!({});
    let head = store.close(T0, &manifest).await.expect("closes");
    for (anchor, line) in [
        (plain.ledger_head, Some(plain.ledger_lines)),
        (head, Some(plain.ledger_lines + 5)),
        (Digest::of(b"elsewhere"), None),
    ] {
        let options = VerifyOptions {
            anchor: Some(anchor),
            ..VerifyOptions::default()
        };
        let report = verify(layout.run_dir(), &options).await.expect("checks");
        assert_eq!(report.anchored_line.is_some(), line.is_some(), "{report:?}");
        assert_eq!(report.ok(), line.is_some(), "{report:?}");
        let missed = report.findings.iter().any(|f| f.check == Check::Anchor);
        assert_eq!(missed, line.is_none());
    }
}

#[tokio::test]
async fn what_is_no_run_is_an_error() {
    let root = TempDir::new().expect("tempdir");
    for name in ["notes", "20270115-080000-diabetes-abcd"] {
        let error = verify(&root.path().join(name), &VerifyOptions::default()).await;
        let text = error.expect_err(name).to_string();
        assert!(text.contains(name), "{text}");
    }
}
