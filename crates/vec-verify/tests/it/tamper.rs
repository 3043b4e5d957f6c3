//! Every regular file × {first, middle, last byte} flipped, each file deleted, each ledger line
//! dropped or swapped, files added: all found, and the finding names the place.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vec_store::RunLayout;
use vec_verify::{Check, VerifyOptions, VerifyReport, verify};
use walkdir::WalkDir;

use crate::fixture::closed_run;

fn files_of(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = WalkDir::new(dir)
        .into_iter()
        .map(|entry| entry.expect("walk"))
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect();
    files.sort();
    files
}

async fn check(layout: &RunLayout) -> VerifyReport {
    let options = VerifyOptions::default();
    verify(layout.run_dir(), &options).await.expect("checks")
}

fn names(report: &VerifyReport, name: &str) -> bool {
    report.findings.iter().any(|finding| {
        let place = &finding.place;
        *place == name || place.starts_with(&format!("{name} "))
    })
}

/// Puts other bytes in a file's place, checks, and puts the file back as it was.
async fn with_bytes(layout: &RunLayout, file: &Path, bytes: Option<&[u8]>) -> VerifyReport {
    let kept = fs::read(file).expect("read");
    let meta = fs::metadata(file).expect("stat");
    fs::remove_file(file).expect("rm");
    if let Some(bytes) = bytes {
        fs::write(file, bytes).expect("write");
        fs::set_permissions(file, meta.permissions()).expect("chmod");
    }
    let report = check(layout).await;
    let _gone = fs::remove_file(file);
    fs::write(file, kept).expect("restore");
    fs::set_permissions(file, meta.permissions()).expect("chmod");
    report
}

#[tokio::test]
async fn every_flipped_byte_and_every_deleted_file_is_named() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    for file in files_of(layout.run_dir()) {
        let name = file.strip_prefix(layout.run_dir()).expect("below");
        let name = name.to_str().expect("utf-8");
        let bytes = fs::read(&file).expect("read");
        let last = bytes.len().saturating_sub(1);
        let mut places = vec![0, bytes.len() / 2, last];
        places.dedup();
        for at in places {
            let mut flipped = bytes.clone();
            match flipped.get_mut(at) {
                Some(byte) => *byte ^= 1,
                None => flipped.push(b'x'),
            }
            let report = with_bytes(&layout, &file, Some(&flipped)).await;
            assert!(names(&report, name), "{name} byte {at}: {report:?}");
        }
        let report = with_bytes(&layout, &file, None).await;
        assert!(names(&report, name), "{name} deleted: {report:?}");
    }
    let report = check(&layout).await;
    assert_eq!(report.findings, [], "the restored run verifies");
}

#[tokio::test]
async fn every_dropped_and_swapped_ledger_line_is_named() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    let ledger = layout.ledger();
    let bytes = fs::read(&ledger).expect("ledger");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    assert!(lines.len() > 40);
    for index in 0..lines.len() {
        let mut dropped = lines.clone();
        dropped.remove(index);
        let report = with_bytes(&layout, &ledger, Some(&dropped.concat())).await;
        let finding = &report.findings[0];
        if index + 1 == lines.len() {
            assert_eq!(finding.check, Check::Open, "{report:?}");
            continue;
        }
        let place = format!("ledger.jsonl line {}", index + 1);
        assert_eq!(finding.place, place, "dropped: {report:?}");
        let mut swapped = lines.clone();
        swapped.swap(index, index + 1);
        let report = with_bytes(&layout, &ledger, Some(&swapped.concat())).await;
        assert_eq!(report.findings[0].place, place, "swapped: {report:?}");
    }
}

#[tokio::test]
async fn added_things_are_named() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    for name in [
        "nodes/0/late",
        "logs/late.jsonl",
        "work/late",
        "late",
        "programs.git/late",
    ] {
        let file = layout.run_dir().join(name);
        fs::write(&file, "x").expect("write");
        let report = check(&layout).await;
        assert!(names(&report, name), "{name}: {report:?}");
        fs::remove_file(&file).expect("rm");
    }
    let link = layout.run_dir().join("nodes/link");
    std::os::unix::fs::symlink("/etc/passwd", &link).expect("symlink");
    assert!(names(&check(&layout).await, "nodes/link"));
    fs::remove_file(link).expect("rm");
    let binary = layout.code_bin("vec-controller");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("chmod");
    let report = check(&layout).await;
    assert!(names(&report, "code/"), "execution bit: {report:?}");
}

/// Somebody who rewrites the whole chain is found by what the lock and programs.git say.
#[tokio::test]
async fn a_rewritten_ledger_does_not_hide_changed_code_views_and_programs() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    for name in [
        "code/bin/vec-controller",
        "views/main/train.csv",
        "inputs/board.yaml",
    ] {
        let file = layout.run_dir().join(name);
        let report = with_bytes(&layout, &file, Some(b"other")).await;
        let locked = report
            .findings
            .iter()
            .any(|f| f.check == Check::Lock && f.place == name);
        assert!(locked || name.starts_with("code"), "{name}: {report:?}");
        let tree = report.findings.iter().any(|f| f.place == "code/");
        assert_eq!(tree, name.starts_with("code"), "{name}: {report:?}");
    }
    let head = layout.programs().join("refs/nodes/0");
    let other = fs::read(layout.programs().join("refs/nodes/1")).expect("ref");
    let report = with_bytes(&layout, &head, Some(&other)).await;
    let named = report
        .findings
        .iter()
        .any(|f| f.check == Check::Programs && f.place == "programs.git refs/nodes/0");
    assert!(named, "{report:?}");
}

/// Cut at a line's end the chain holds, and an open run has no `close` to miss.
#[tokio::test]
async fn a_shortened_ledger_is_found_in_both_modes() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 1).await;
    let bytes = fs::read(layout.ledger()).expect("ledger");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let first = |end: &str| {
        let paths = lines.iter().map(|line| {
            let line: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            line["path"].as_str().expect("a path").to_owned()
        });
        let mut found = paths.enumerate().filter(|(_, path)| path.ends_with(end));
        found.next().expect("such a line")
    };
    let lock = first("config.lock.json");
    let mut cases = vec![(0, lock.1.clone()), (2, lock.1.clone()), lock];
    cases.extend([first("/PLAN.json"), first("/report.json")]);
    for (kept, name) in &cases {
        let kept = *kept;
        fs::write(layout.ledger(), lines[..kept].concat()).expect("ledger");
        for open in [false, true] {
            let options = VerifyOptions {
                open,
                ..VerifyOptions::default()
            };
            let report = verify(layout.run_dir(), &options).await.expect("checks");
            let found = report.findings.iter();
            let found = found.filter(|f| f.check == Check::Coverage && f.place == *name);
            assert_eq!(found.count(), 1, "{name}, {kept} lines, {open}: {report:?}");
            let pending = report
                .pending
                .iter()
                .any(|text| text.starts_with(name.as_str()));
            assert!(!pending, "{report:?}");
        }
    }
}
