//! A ledger that lost lines: the run is refused, and nothing is moved or written.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;
use vec_search::{Effect, Event, Outcome, PlanResult};
use vec_store::{Batch, Recovery, RunLayout, Store, StoreError};
use vec_types::{NodeId, Plan};

use crate::support::{assert_covered, at, file, files_of, node_events, run_id};

fn bytes_of(layout: &RunLayout) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_of(layout.run_dir()).into_iter();
    files
        .map(|path| (path.clone(), fs::read(path).expect("read")))
        .collect()
}

fn planned() -> Event {
    let plan = Plan {
        name: "idea".to_owned(),
        motivation: "it may help".to_owned(),
        approach: "do it".to_owned(),
        expected_groups: Vec::new(),
        risks: Vec::new(),
        family_id: None,
        mechanism: None,
        ablate: None,
    };
    Event::EffectEnded {
        effect: Effect::Plan { node: NodeId(1) },
        end: Outcome::Planned {
            result: PlanResult::Valid { plan, attempts: 1 },
        },
    }
}

/// Lock, then a node without and one with a plan; each commit is a ledger line.
async fn made(root: &TempDir) -> Store {
    let mut store = Store::create(root.path(), &run_id(), at(0))
        .await
        .expect("creates");
    let mut second = node_events(1);
    second.truncate(1);
    second.push(planned());
    for (name, events) in [
        ("config.lock.json", Vec::new()),
        ("nodes/0/METHOD.md", node_events(0)),
        ("nodes/1/PLAN.json", second),
    ] {
        let batch = Batch {
            at: at(1),
            files: vec![file(name, "{}")],
            events,
        };
        store.commit(batch).await.expect("commits");
    }
    store
}

fn shorten(layout: &RunLayout, lines: usize) {
    let bytes = fs::read(layout.ledger()).expect("ledger");
    let kept: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').take(lines).collect();
    fs::write(layout.ledger(), kept.concat()).expect("ledger");
}

async fn refused(layout: &RunLayout) -> String {
    let before = bytes_of(layout);
    let error = Store::open(layout.run_dir(), at(9))
        .await
        .expect_err("short");
    assert!(matches!(error, StoreError::LedgerShort { .. }), "{error:?}");
    assert!(bytes_of(layout) == before, "the refused run was changed");
    error.to_string()
}

#[tokio::test]
async fn a_shortened_ledger_is_refused_and_nothing_moves() {
    for closed in [false, true] {
        for (lines, said) in [
            (0, "the ledger does not register config.lock.json"),
            (1, "does not register nodes/1/PLAN.json"),
            (2, "does not register nodes/1/PLAN.json"),
        ] {
            let root = TempDir::new().expect("tempdir");
            let store = made(&root).await;
            let layout = store.layout().clone();
            if closed {
                store.close(at(2), &json!({})).await.expect("closes");
            } else {
                store.release().await.expect("releases");
            }
            shorten(&layout, lines);
            let text = refused(&layout).await;
            assert!(text.contains("ledger.jsonl: "), "{text}");
            assert!(text.contains(said), "{lines} lines: {text}");
            assert!(text.ends_with("; restore it from a copy"), "{text}");
        }
    }
}

#[tokio::test]
async fn events_without_any_line_are_refused() {
    let root = TempDir::new().expect("tempdir");
    let store = made(&root).await;
    let layout = store.layout().clone();
    store.release().await.expect("releases");
    shorten(&layout, 0);
    fs::remove_file(layout.config_lock()).expect("rm");
    let text = refused(&layout).await;
    assert!(
        text.contains("has no line, but the archive holds 6 events"),
        "{text}"
    );
}

#[tokio::test]
async fn a_launch_cut_short_before_its_lock_recovers_and_inside_it_is_refused() {
    let root = TempDir::new().expect("tempdir");
    let store = Store::create(root.path(), &run_id(), at(0)).await;
    let store = store.expect("creates");
    let layout = store.layout().clone();
    drop(store);
    let (store, recovery) = Store::open(layout.run_dir(), at(1)).await.expect("opens");
    assert_eq!(recovery, Recovery::default());
    assert_covered(&layout);
    store.release().await.expect("releases");
    fs::write(layout.config_lock(), "{}").expect("renamed, no line yet");
    let text = refused(&layout).await;
    assert!(text.contains("start a new run"), "{text}");
}
