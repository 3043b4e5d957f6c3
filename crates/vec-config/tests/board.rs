//! What a board definition accepts, and the one clear error for each thing that it does not.

use std::path::Path;

use vec_config::{Board, ConfigError, EnvironmentChoice, load_board};

const GOOD: &str = "
board: T2:b
title: t
source: s
task: tabular_regression
data: {file: d.csv, target: y, features: [a, b]}
split: {kind: permutation, train_fraction: 0.6, seed: 1}
halves: {seed: 2, guard_fraction: 0.5}
views: {main: {}}
rulers: {r: {view: main, role: objective, weight: 2, metric: rmse}}
final_view: main
limits: {memory_gb: 1, time_limit_s: 6, threads: 1, output_max_mb: 16}
baseline: base
seed_programs: [{id: base, state: anchor}, {id: other, state: exploration, family: f}]
idea_library: ideas_T2__b.md
environment: {kind: stdlib}
";

const IDEAS: &str = "---
board: T2:b
families: [{id: f, title: F}]
---
## f
text
";

fn load(dir: &Path, text: &str) -> Result<Board, ConfigError> {
    std::fs::write(dir.join("ideas_T2__b.md"), IDEAS).expect("write");
    let path = dir.join("board.yaml");
    std::fs::write(&path, text).expect("write");
    load_board(&path)
}

#[test]
fn weights_are_normalised_and_paths_resolved() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let board = load(dir.path(), GOOD).expect("good");
    assert_eq!(board.objective().into_values().collect::<Vec<_>>(), [1.0]);
    assert_eq!(board.scoring.truth_fraction, 0.5);
    assert!(board.seeds_dir.is_absolute());
    assert!(
        board.seeds_dir.ends_with("seeds/T2__b"),
        "{:?}",
        board.seeds_dir
    );
    let text = GOOD.replace("kind: stdlib", "kind: venv, lock: ../env/x.lock");
    let EnvironmentChoice::Venv { lock } = load(dir.path(), &text).expect("good").environment
    else {
        panic!("a venv");
    };
    assert!(
        lock.is_absolute() && lock.ends_with("env/x.lock"),
        "{lock:?}"
    );
    assert!(board.idea_library.is_absolute());
    assert_eq!(board.families[0].text, "text");
    let json = serde_json::to_vec(&board).expect("encodes");
    assert_eq!(
        serde_json::from_slice::<Board>(&json).expect("reads"),
        board
    );
}

#[test]
fn bad_boards_name_file_key_and_remedy() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let cases = [
        ("board: T2:b", "board: a/b"),
        ("title: t", "titel: t"),
        ("task: tabular_regression", "task: tabular"),
        ("file: d.csv", "file: ../d.csv"),
        ("features: [a, b]", "features: []"),
        ("features: [a, b]", "features: [a, a]"),
        ("features: [a, b]", "features: [a, y]"),
        ("features: [a, b]", "features: [a, id]"),
        ("features: [a, b]", "features: ['a b']"),
        ("train_fraction: 0.6", "train_fraction: 1"),
        ("kind: permutation", "kind: head"),
        (", seed: 1}", "}"),
        ("guard_fraction: 0.5", "guard_fraction: 0"),
        ("views: {main: {}}", "views: {main: {}, more: {}}"),
        ("views: {main: {}}", "views: {main: {x: 1}}"),
        ("rulers: {r: {view: main", "rulers: {r: {view: other"),
        ("weight: 2", "weight: 0"),
        ("weight: 2", "weight: -1"),
        ("metric: rmse", "metric: mae"),
        ("final_view: main", "final_view: other"),
        ("memory_gb: 1", "memory_gb: 0"),
        ("time_limit_s: 6", "time_limit_s: 0"),
        ("baseline: base", "baseline: other"),
        ("state: exploration", "state: anchor"),
        ("family: f}", "family: g}"),
        (", family: f}", "}"),
        (
            "{id: base, state: anchor}",
            "{id: base, state: anchor, family: f}",
        ),
        ("{id: other,", "{id: base,"),
        ("idea_library: ideas_T2__b.md", ""),
        ("ideas_T2__b.md", "ideas_none.md"),
        ("ideas_T2__b.md", "board.yaml"),
        ("ideas_T2__b.md", "."),
        (
            "idea_library: ideas_T2__b.md",
            "families: [{id: f, title: F}]",
        ),
        ("{kind: stdlib}", "{kind: stdlib, lock: x}"),
        ("{kind: stdlib}", "{kind: venv}"),
        ("limits: {", "scoring: {truth_fraction: 0}\nlimits: {"),
    ];
    let mut table = String::new();
    for (good, bad) in cases {
        assert!(GOOD.contains(good), "{good}");
        let error = load(dir.path(), &GOOD.replacen(good, bad, 1))
            .expect_err(bad)
            .to_string();
        let error = error.replace(&format!("{}/", dir.path().display()), "");
        let error = error.replace(&dir.path().display().to_string(), "<dir>");
        table.push_str(&format!("{bad}\n  {}\n", error.replace('\n', "\n  ")));
    }
    insta::assert_snapshot!("bad_boards", table);
}
