//! What commits, marks, close and reopen leave on disk; who may write; what readers see.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;
use tempfile::TempDir;
use vec_store::{
    Archive, Batch, Content, LedgerOp, NewFile, RunLock, Store, StoreError, TreeLimits,
    rel as paths, taint, taint_reasons,
};
use vec_types::NodeId;

use crate::support::{
    assert_covered, at, file, files_of, ledger_of, node_events, rel, run_id, stop_event,
};

async fn store(root: &TempDir) -> Store {
    Store::create(root.path(), &run_id(), at(0))
        .await
        .expect("creates")
}

fn batch(n: i64, files: Vec<NewFile>) -> Batch {
    let node = u32::try_from(n).expect("small");
    let events = node_events(node);
    Batch {
        at: at(n),
        files,
        events,
    }
}

#[tokio::test]
async fn files_and_events_of_a_run_survive_reopening_and_close_covers_everything() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    let first = store
        .commit(batch(0, vec![file("nodes/0/PLAN.json", "{}")]))
        .await
        .expect("commits");
    assert_eq!(first.len(), 4);
    let mode = fs::metadata(layout.at(&paths::plan(NodeId(0))))
        .expect("plan")
        .mode();
    assert_eq!(mode & 0o777, 0o444);
    fs::write(layout.log("scorer"), "one\n").expect("log");
    store.mark_logs(at(1)).await.expect("marks");
    fs::write(layout.log("scorer"), "one\ntwo\n").expect("log");
    store.mark_archive(at(1)).await.expect("marks");
    fs::write(layout.work().join("scratch"), "x").expect("scratch");
    fs::create_dir(layout.programs()).expect("programs");
    fs::write(layout.programs().join("HEAD"), "ref: x").expect("head");
    store.release().await.expect("releases");

    let (mut store, recovery) = Store::open(layout.run_dir(), at(2)).await.expect("opens");
    assert_eq!(recovery, vec_store::Recovery::default());
    assert_eq!(store.events().await.expect("events"), first);
    let more = store
        .commit(batch(3, Vec::new()))
        .await
        .expect("commits on");
    assert_eq!((more[0].seq, more[0].batch), (5, 2));
    assert_eq!(more[0].prev, first[3].hash);
    let head = store
        .close(at(4), &json!({"stop_reason": "operator"}))
        .await
        .expect("closes");

    let report = ledger_of(&layout);
    assert!(report.closed);
    assert_eq!(report.head, head);
    assert_covered(&layout);
    assert!(!layout.work().join("scratch").exists());
    let registry = &report.registry;
    assert!(registry.contains_key(&rel("programs.git/HEAD")));
    assert_eq!(registry[&rel("logs/scorer.jsonl")].size, 8);
    assert!(!layout.run_dir().join("archive.sqlite-wal").exists());
    assert_eq!(files_of(&layout.spool()), [layout.lock_file()]);

    let refused = Store::open(layout.run_dir(), at(5)).await;
    assert!(matches!(refused, Err(StoreError::Closed(_))), "{refused:?}");
    let (mut store, _) = Store::reopen(layout.run_dir(), at(5))
        .await
        .expect("reopens");
    store
        .commit(Batch {
            at: at(6),
            files: vec![NewFile::replace(paths::run_meta(), "{\"a\":1}")],
            events: vec![stop_event()],
        })
        .await
        .expect("commits after reopening");
    store.close(at(7), &json!({})).await.expect("closes again");
    assert_covered(&layout);
    let reopened = Store::reopen(layout.run_dir(), at(8)).await.expect("again");
    let refused = Store::reopen(layout.run_dir(), at(8)).await;
    assert!(matches!(refused, Err(StoreError::Locked { .. })));
    reopened.0.release().await.expect("releases");
    let refused = Store::reopen(layout.run_dir(), at(8)).await;
    assert!(matches!(refused, Err(StoreError::NotClosed(_))));
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_who_writes() {
    let root = TempDir::new().expect("tempdir");
    let store = store(&root).await;
    let layout = store.layout().clone();
    let refused = Store::open(layout.run_dir(), at(1)).await.expect_err("one");
    let text = refused.to_string();
    let pid = std::process::id();
    assert!(text.contains(&format!("process {pid}")), "{text}");
    assert_eq!(RunLock::holder(&layout), Some(pid));
    let existing = Store::create(root.path(), &run_id(), at(1)).await;
    assert!(matches!(existing, Err(StoreError::Exists(_))));
    store.release().await.expect("releases");
    assert_eq!(RunLock::holder(&layout), None);
    let (again, _) = Store::open(layout.run_dir(), at(2)).await.expect("free");
    again.release().await.expect("releases");
}

#[tokio::test]
async fn a_repeated_effect_keeps_the_superseded_file_and_a_replacement_does_not() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    for (n, text) in [(0, "one"), (1, "one"), (2, "two")] {
        let files = vec![
            file("nodes/0/PLAN.json", text),
            NewFile::replace(rel("final/SELECTION.md"), text),
        ];
        store.commit(batch(n, files)).await.expect("commits");
    }
    let report = ledger_of(&layout);
    let ops: Vec<LedgerOp> = report.entries.iter().map(|entry| entry.op).collect();
    use LedgerOp::{Create, Orphan, Replace};
    assert_eq!(ops, [Create, Create, Orphan, Replace, Replace]);
    let kept = layout.orphans().join("3/nodes/0/PLAN.json");
    assert_eq!(fs::read_to_string(kept).expect("kept"), "one");
    let plan = layout.at(&paths::plan(NodeId(0)));
    assert_eq!(fs::read_to_string(plan).expect("plan"), "two");
    assert_covered(&layout);
    store.release().await.expect("releases");
}

#[tokio::test]
async fn of_a_file_made_once_the_first_writer_wins() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    let path = rel("artifacts/per_view/a/b.json");
    for (n, text) in [(0, "one"), (1, "two")] {
        let spooled = layout.spool().join(format!("weight-{n}"));
        fs::write(&spooled, "w").expect("spool");
        let files = vec![
            NewFile::once(rel("artifacts/x"), Content::Spool(spooled)),
            NewFile::once(path.clone(), Content::Bytes(text.into())),
        ];
        store.commit(batch(n, files)).await.expect("commits");
    }
    let index = layout.at(&path);
    assert_eq!(fs::read_to_string(&index).expect("index"), "one");
    let meta = fs::metadata(&index).expect("index");
    assert_eq!((meta.mode() & 0o777, meta.nlink()), (0o444, 1));
    assert_eq!(ledger_of(&layout).entries.len(), 2, "registered once each");
    assert_eq!(store.registered_below("artifacts/per_view"), [path]);
    assert_covered(&layout);
    store.release().await.expect("releases");
}

#[tokio::test]
async fn a_tree_comes_in_whole_and_bad_trees_do_not() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    let limits = TreeLimits {
        files_max: 2,
        bytes_max: 20,
    };
    let dest = rel("nodes/0/seed0");
    let dir = layout.spool().join("exec");
    fs::create_dir_all(dir.join("main")).expect("mkdir");
    fs::write(dir.join("main/pred.csv"), "id,prediction\n").expect("pred");
    fs::write(dir.join("stdout"), "hi").expect("stdout");
    fs::hard_link(dir.join("stdout"), root.path().join("other name")).expect("link");
    let files = NewFile::tree(&dest, &dir, limits).expect("tree");
    store.commit(batch(0, files)).await.expect("commits");
    let stdout = layout.at(&rel("nodes/0/seed0/stdout"));
    fs::set_permissions(
        root.path().join("other name"),
        fs::Permissions::from_mode(0o600),
    )
    .expect("chmod");
    fs::write(root.path().join("other name"), "changed later").expect("write");
    assert_eq!(fs::read_to_string(stdout).expect("stdout"), "hi");
    assert_covered(&layout);

    let bad = layout.spool().join("bad");
    fs::create_dir(&bad).expect("mkdir");
    let refuse = |what: &str| {
        let error = NewFile::tree(&dest, &bad, limits).expect_err(what);
        let text = error.to_string();
        assert!(text.contains(what), "{text}");
    };
    std::os::unix::fs::symlink("/etc/passwd", bad.join("link")).expect("symlink");
    refuse("is not a regular file");
    fs::remove_file(bad.join("link")).expect("rm");
    fs::write(bad.join("a\nb"), "").expect("write");
    refuse("has a name that no run may hold");
    fs::remove_file(bad.join("a\nb")).expect("rm");
    fs::write(bad.join("big"), "x".repeat(21)).expect("write");
    refuse("more than 2 files or 20 bytes");
    fs::write(bad.join("big"), "").expect("write");
    fs::write(bad.join("b"), "").expect("write");
    fs::write(bad.join("c"), "").expect("write");
    refuse("more than 2 files or 20 bytes");
    store.release().await.expect("releases");
}

#[tokio::test]
async fn files_that_may_not_come_in_change_nothing() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    fs::write(layout.run_dir().join("stray"), "").expect("stray");
    let outside = root.path().join("outside");
    fs::write(&outside, "").expect("outside");
    let cases = [
        vec![file("logs/x.jsonl", "")],
        vec![file("archive.sqlite", "")],
        vec![file("stray", "")],
        vec![file("a", "1"), file("a", "2")],
        vec![NewFile::from_spool(rel("a"), outside)],
        vec![NewFile::from_spool(rel("a"), layout.spool())],
    ];
    for files in cases {
        let refused = store.commit(batch(0, files)).await;
        assert!(
            matches!(refused, Err(StoreError::BadFile { .. })),
            "{refused:?}"
        );
    }
    assert!(!store.is_broken());
    assert_eq!(store.head().0, 0);
    assert!(ledger_of(&layout).entries.is_empty());
    store.release().await.expect("releases");
}

#[tokio::test]
async fn files_made_by_the_launcher_are_registered_in_place() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    fs::create_dir(layout.code().join("bin")).expect("mkdir");
    fs::write(layout.code_bin("vec-x"), "elf").expect("bin");
    fs::set_permissions(layout.code_bin("vec-x"), fs::Permissions::from_mode(0o755))
        .expect("chmod");
    let source = root.path().join("input.bin");
    fs::write(&source, "input").expect("input");
    fs::hard_link(&source, layout.inputs().join("input.bin")).expect("link");
    let dirs = [rel("code"), rel("inputs")];
    let registered = store.register_existing(at(0), &dirs).await;
    assert_eq!(registered.expect("registers"), 2);
    let again = store.register_existing(at(1), &dirs).await;
    assert_eq!(again.expect("registers"), 0);
    let mode = |path| fs::metadata(path).expect("stat").mode() & 0o777;
    assert_eq!(mode(layout.code_bin("vec-x")), 0o555);
    assert_ne!(mode(source), 0o444, "a hard link's mode is not ours");
    let registry = ledger_of(&layout).registry;
    assert_eq!(registry[&rel("inputs/input.bin")].op, LedgerOp::Link);
    std::os::unix::fs::symlink("x", layout.inputs().join("l")).expect("symlink");
    assert!(store.register_existing(at(2), &dirs).await.is_err());
    assert!(store.is_broken());
}

#[tokio::test]
async fn tables_equal_a_rebuild_and_readers_leave_no_trace() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    for n in 0..3 {
        store.commit(batch(n, Vec::new())).await.expect("commits");
    }
    // Live: the WAL holds everything.
    let mut reader = Archive::open_read_only(&layout.archive())
        .await
        .expect("live");
    assert_eq!(reader.events_after(4).await.expect("events").len(), 8);
    let nodes = reader.nodes().await.expect("nodes");
    assert_eq!(nodes.len(), 3);
    assert_eq!(nodes[1].tree, Some("b".repeat(64)));
    assert_eq!(reader.meta().await.expect("meta")["phase"], "search");
    store.close(at(9), &json!({})).await.expect("closes");

    let before = files_of(layout.run_dir());
    let mut reader = Archive::open_read_only(&layout.archive())
        .await
        .expect("sealed");
    assert_eq!(reader.nodes().await.expect("nodes").len(), 3);
    assert_eq!(files_of(layout.run_dir()), before);
    let (mut copy, _dir) = Archive::open_copy(&layout.archive()).await.expect("copy");
    let stored = copy.dump_projections().await.expect("dump");
    assert!(stored.len() > 6, "{stored:?}");
    copy.rebuild_projections().await.expect("rebuild");
    assert_eq!(copy.dump_projections().await.expect("dump"), stored);
    assert_eq!(files_of(layout.run_dir()), before);
}

#[tokio::test]
async fn taints_add_up_and_a_missing_file_is_one() {
    let root = TempDir::new().expect("tempdir");
    let mut store = store(&root).await;
    let layout = store.layout().clone();
    let files = vec![file("nodes/0/PLAN.json", "{}")];
    store.commit(batch(0, files)).await.expect("commits");
    store.release().await.expect("releases");
    assert!(taint_reasons(&layout).expect("none").is_empty());
    taint(&layout, at(1), &["because".to_owned()]).expect("taints");
    fs::remove_file(layout.at(&paths::plan(NodeId(0)))).expect("rm");
    let (store, recovery) = Store::open(layout.run_dir(), at(2)).await.expect("opens");
    assert_eq!(recovery.missing, [paths::plan(NodeId(0))]);
    let reasons = taint_reasons(&layout).expect("reads");
    assert_eq!(reasons.len(), 2);
    assert!(reasons[1].contains("nodes/0/PLAN.json"), "{reasons:?}");
    store.release().await.expect("releases");
}
