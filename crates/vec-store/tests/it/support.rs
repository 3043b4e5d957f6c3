//! Runs for tests, and the check that every test ends with.

use std::fs;
use std::path::{Path, PathBuf};

use vec_search::{CommitInfo, Effect, Event, Outcome};
use vec_store::{
    LedgerOp, LedgerReport, NewFile, RunLayout, hash_file, hash_prefixes, is_exempt_while_open,
    verify_ledger,
};
use vec_types::{NodeId, Operator, Phase, RelPath, RunId, StopReason, UnixMs};
use walkdir::WalkDir;

pub(crate) fn run_id() -> RunId {
    "20260101-000000-toy-abcd".parse().expect("run id")
}

pub(crate) fn rel(path: &str) -> RelPath {
    path.parse().expect("relative path")
}

pub(crate) fn at(n: i64) -> UnixMs {
    UnixMs(1_700_000_000_000 + n)
}

/// A small life of a node: four events.
pub(crate) fn node_events(node: u32) -> Vec<Event> {
    let node = NodeId(node);
    let effect = Effect::ImportSeed {
        node,
        program: "toy".parse().expect("seed program"),
    };
    let id = |c: &str| c.repeat(64).parse().expect("git id");
    let commit = CommitInfo {
        commit: id("a"),
        tree: id("b"),
        runtime_key: id("c"),
    };
    vec![
        Event::NodeCreated {
            node,
            operator: Operator::Seed,
            parent: None,
            family: None,
            seed_program: Some("toy".parse().expect("seed program")),
        },
        Event::EffectStarted {
            effect: effect.clone(),
        },
        Event::EffectEnded {
            effect,
            end: Outcome::Imported { commit },
        },
        Event::PhaseChange {
            from: Phase::Seeding,
            to: Phase::Search,
        },
    ]
}

pub(crate) fn stop_event() -> Event {
    Event::StopRequested {
        reason: StopReason::Operator,
        detail: "test".to_owned(),
    }
}

pub(crate) fn file(path: &str, bytes: &str) -> NewFile {
    NewFile::create(rel(path), bytes)
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    for entry in WalkDir::new(from) {
        let entry = entry.expect("walk");
        let target = to.join(entry.path().strip_prefix(from).expect("below"));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).expect("mkdir");
        } else {
            fs::copy(entry.path(), &target).expect("copy");
        }
    }
}

pub(crate) fn ledger_of(layout: &RunLayout) -> LedgerReport {
    verify_ledger(&fs::read(layout.ledger()).expect("ledger")).expect("chain holds")
}

/// Every regular file is covered, every covered file is there with its bytes.
pub(crate) fn assert_covered(layout: &RunLayout) {
    let report = ledger_of(layout);
    for (path, registered) in &report.registry {
        let target = layout.at(path);
        if registered.op == LedgerOp::Mark {
            let (_, digests) = hash_prefixes(&target, &[registered.size]).expect("log");
            assert_eq!(digests, [Some(registered.sha256)], "{path}");
        } else if report.closed || !is_exempt_while_open(path) {
            let found = hash_file(&target).expect("registered file");
            assert_eq!(found, (registered.size, registered.sha256), "{path}");
        }
    }
    for path in files_of(layout.run_dir()) {
        let name = path.strip_prefix(layout.run_dir()).expect("below");
        let name = rel(name.to_str().expect("utf-8"));
        let covered = report.registry.contains_key(&name)
            || name.as_str() == "ledger.jsonl"
            || (!report.closed && is_exempt_while_open(&name));
        assert!(covered, "{name} is not in the ledger");
    }
}

pub(crate) fn files_of(dir: &Path) -> Vec<PathBuf> {
    WalkDir::new(dir)
        .into_iter()
        .map(|entry| entry.expect("walk"))
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect()
}
