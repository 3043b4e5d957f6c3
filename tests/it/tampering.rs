//! CI's part of the tamper matrix: one file of every kind, every ledger line. The whole matrix is
//! `cargo xtask tamper`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vec_tests::Stack;
use walkdir::WalkDir;

/// One file per kind: top folder, and name without digits.
fn one_of_each_kind(root: &Path) -> Vec<PathBuf> {
    let mut kinds = BTreeMap::new();
    for entry in WalkDir::new(root).sort_by_file_name() {
        let entry = entry.expect("readable");
        if !entry.file_type().is_file() {
            continue;
        }
        let relative = entry.path().strip_prefix(root).expect("below the root");
        let text = relative.display().to_string();
        let top = text.split('/').next().unwrap_or_default().to_owned();
        let name = match top.as_str() {
            // Objects are alike; so are prompts and sources.
            "programs.git" => text.split('/').nth(1).unwrap_or_default().to_owned(),
            "code" => text.split('/').nth(1).unwrap_or_default().to_owned(),
            _ => relative
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        };
        let kind = name
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>();
        kinds
            .entry((top, kind))
            .or_insert_with(|| entry.path().to_owned());
    }
    kinds.into_values().collect()
}

fn expect_named(stack: &Stack, run: &Path, name: &str, what: &str) {
    let said = stack.say(["verify", &run.display().to_string()]);
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!said.ok, "{name} {what}: not found");
    assert!(text.contains(name), "{name} {what}: not named in\n{text}");
}

#[test]
fn every_kind_of_file_and_every_ledger_line() {
    let stack = Stack::with_diabetes();
    let run = stack
        .launch("diabetes_demo", &["budget.max_nodes=2"])
        .closed();
    run.expect_verified();
    let kinds = one_of_each_kind(&run.dir);
    assert!(kinds.len() > 20, "{kinds:?}");
    for path in kinds {
        let bytes = std::fs::read(&path).expect("readable");
        let permissions = std::fs::metadata(&path).expect("there").permissions();
        let name = path
            .strip_prefix(&run.dir)
            .expect("below")
            .display()
            .to_string();
        std::fs::remove_file(&path).expect("removable");
        expect_named(&stack, &run.dir, &name, "deleted");
        if !bytes.is_empty() {
            let mut changed = bytes.clone();
            let middle = changed.len() / 2;
            changed[middle] ^= 1;
            std::fs::write(&path, changed).expect("writable");
            std::fs::set_permissions(&path, permissions.clone()).expect("settable");
            expect_named(&stack, &run.dir, &name, "flipped");
            std::fs::remove_file(&path).expect("removable");
        }
        std::fs::write(&path, bytes).expect("writable");
        std::fs::set_permissions(&path, permissions).expect("settable");
    }
    run.expect_verified();
    ledger_lines(&stack, &run.dir);
    run.expect_verified();
    let stranger = run.dir.join("nodes/stranger.txt");
    std::fs::write(&stranger, "x").expect("writable");
    expect_named(&stack, &run.dir, "nodes/stranger.txt", "added");
}

// The chain alone finds these; the pure check runs on every line, the program on a few.
fn ledger_lines(stack: &Stack, run: &Path) {
    let path = run.join("ledger.jsonl");
    let text = std::fs::read_to_string(&path).expect("readable");
    let lines: Vec<&str> = text.lines().collect();
    for index in 0..lines.len() {
        let mut dropped = lines.clone();
        dropped.remove(index);
        let mut swapped = lines.clone();
        if index + 1 < lines.len() {
            swapped.swap(index, index + 1);
        }
        for (changed, what) in [(dropped, "dropped"), (swapped, "swapped")] {
            if changed == lines {
                continue;
            }
            let bytes = changed.join("\n") + "\n";
            let report = vec_store::verify_ledger(bytes.as_bytes());
            let found = report.is_err() || report.is_ok_and(|report| !report.closed);
            assert!(found, "line {} {what}", index + 1);
            if index % 20 == 0 {
                std::fs::remove_file(&path).expect("removable");
                std::fs::write(&path, &bytes).expect("writable");
                expect_named(stack, run, "ledger", what);
            }
        }
    }
    std::fs::remove_file(&path).expect("removable");
    std::fs::write(&path, text).expect("writable");
}
