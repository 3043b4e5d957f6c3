//! What a package holds, when there is none, and that nothing half-made stays.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use tempfile::TempDir;
use vec_package::{Manifest, PackageError, PackageOptions, package};
use vec_store::{RunLayout, hash_file, taint, taint_reasons};

use crate::fixture::{Made, T0, closed_run};

/// Names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("read")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("utf-8")
        })
        .collect();
    names.sort();
    names
}

fn unpack(zip: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = File::open(zip).expect("open");
    let mut archive = zip::ZipArchive::new(file).expect("zip");
    let mut entries = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).expect("entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("read");
        entries.insert(entry.name().expect("name").into_owned(), bytes);
    }
    entries
}

async fn pack(layout: &RunLayout) -> Result<Manifest, PackageError> {
    let options = PackageOptions::default();
    let report = package(layout.run_dir(), T0, &options).await?;
    Ok(report.manifest)
}

#[tokio::test]
async fn a_package_holds_the_evidence_and_says_so() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 3).await;
    let manifest = pack(&layout).await.expect("packages");
    let dir = layout.package_dir();
    let expected = [
        "MANIFEST.json",
        "SELECTION.md",
        "VERIFY.json",
        "diabetes.csv",
        "harness.zip",
        "prompts.zip",
        "scores_progression.csv",
        "trajectory.zip",
    ];
    assert_eq!(names(&dir), expected);
    let text = fs::read(dir.join("MANIFEST.json")).expect("manifest");
    let read: Manifest = serde_json::from_slice(&text).expect("parses");
    assert_eq!(read, manifest);
    assert_eq!(manifest.files.len(), expected.len() - 1);
    for (name, file) in &manifest.files {
        let found = hash_file(&name.under(&dir)).expect("hash");
        assert_eq!(found, (file.size, file.sha256), "{name}");
    }
    let chosen = manifest.chosen_node.expect("an answer");
    let segment = &manifest.lineage_segments[0];
    assert_eq!(segment.nodes.last(), Some(&chosen));
    assert_eq!(segment.ledger_head, manifest.ledger_head);
    let trajectories = unpack(&dir.join("trajectory.zip"));
    let listed = manifest.run_trajectories.values().flatten();
    let listed: Vec<&str> = listed.map(vec_types::RelPath::as_str).collect();
    assert_eq!(trajectories.len(), listed.len());
    assert!(listed.iter().all(|name| trajectories.contains_key(*name)));
    for node in manifest.lineage_trajectories.keys() {
        assert!(segment.nodes.contains(node), "{node} is no ancestor");
    }
    let harness = unpack(&dir.join("harness.zip"));
    for name in [
        "config.lock.json",
        "archive.sqlite",
        "ledger.jsonl",
        "logs/scorer.jsonl",
    ] {
        let original = fs::read(layout.run_dir().join(name)).expect("read");
        assert!(harness.get(name) == Some(&original), "{name}");
    }
    let prompts = unpack(&dir.join("prompts.zip"));
    assert!(prompts.contains_key("code/prompts/researcher.md"));
    for entries in [trajectories, harness, prompts] {
        let data = entries
            .keys()
            .find(|n| n.starts_with("views") || n.starts_with("inputs"));
        assert_eq!(data, None, "board data in a package");
    }
    assert_eq!(
        names(root.path()).len(),
        3,
        "nothing else is left: run, package, .spool"
    );
}

#[tokio::test]
async fn the_same_run_gives_the_same_bytes_and_a_table_of_scores() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 3).await;
    let first = pack(&layout).await.expect("packages");
    let again = pack(&layout).await;
    assert!(matches!(again, Err(PackageError::Exists(_))), "{again:?}");
    let table = fs::read_to_string(layout.package_dir().join("scores_progression.csv"));
    let table = table.expect("table");
    fs::rename(layout.package_dir(), root.path().join("kept")).expect("rename");
    let second = pack(&layout).await.expect("packages");
    assert_eq!(first, second);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(lines[1].starts_with("0,seed,,"), "{table}");
    let best: Vec<f64> = lines[1..]
        .iter()
        .map(|line| {
            line.rsplit(',')
                .next()
                .expect("best")
                .parse()
                .expect("number")
        })
        .collect();
    assert!(best.is_sorted(), "{table}");
}

#[tokio::test]
async fn open_tainted_and_changed_runs_are_refused_and_leave_nothing() {
    let root = TempDir::new().expect("tempdir");
    let made = Made::launch(root.path(), 1).await;
    let layout = made.layout.clone();
    let open = pack(&layout).await;
    assert!(matches!(open, Err(PackageError::Open(_))), "{open:?}");
    made.store.release().await.expect("releases");

    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    let before = names(root.path());
    let small = PackageOptions {
        file_bytes_max: 3_000,
    };
    let error = package(layout.run_dir(), T0, &small)
        .await
        .expect_err("limit");
    let text = error.to_string();
    assert!(
        text.contains("trajectory.zip") && text.contains("3000 bytes"),
        "{text}"
    );
    assert_eq!(names(root.path()), before);

    let plan = layout.run_dir().join("final/SELECTION.md");
    fs::remove_file(&plan).expect("rm");
    fs::write(&plan, "another story").expect("tamper");
    let error = pack(&layout).await.expect_err("does not verify");
    assert!(error.to_string().contains("final/SELECTION.md"), "{error}");
    assert!(!layout.package_dir().exists());
    let reasons = taint_reasons(&layout).expect("reads");
    assert!(reasons[0].contains("final/SELECTION.md"), "{reasons:?}");
    let tainted = pack(&layout).await.expect_err("tainted");
    assert!(matches!(tainted, PackageError::Tainted { .. }), "{tainted}");
    taint(&layout, T0, &["again".to_owned()]).expect("taints");
    assert_eq!(
        names(root.path()).len(),
        before.len() + 1,
        "only the taint record is new"
    );
}
