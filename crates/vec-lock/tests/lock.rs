//! From an installed prefix to a lock: snapshot, pins, hashes, policy, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use vec_config::{
    Anchor, Board, CandidateEnvironment, Config, IsolationLevel, Lock, LockError, PythonFacts,
    SandboxRecord, SelfTest, Supervisor, TruthIsolation, load_board, load_config,
};
use vec_config::{policy, search_hash};
use vec_lock::{
    LockBuildError, LockInputs, Pin, SnapshotError, SnapshotInputs, TruthInputs, build_lock,
    lock_bytes, pin_inputs, prompt_hashes, read_build_record, snapshot_code, verify_code,
    view_facts,
};
use vec_types::{Digest, ProgramSeed, UnixMs};

struct Fixture {
    dir: tempfile::TempDir,
    config: Config,
    board: Board,
}

const RUN: &str = "run_date: none";

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let share = dir.path().join("prefix/share");
        write(&share.join("prompts/researcher.md"), "Plan.");
        write(&share.join("configs/boards/b.yaml"), BOARD);
        write(&share.join("prompts/ideas_b.md"), IDEAS);
        write(&share.join("configs/runs/r.yaml"), CONFIG);
        write(&share.join("configs/playbooks/p.yaml"), RUN);
        write(&share.join("configs/playbooks/p/linear.py"), "print(1)");
        for (id, json) in [("base", ANCHOR), ("other", EXPLORATION)] {
            let seed = share.join("seeds/b").join(id);
            write(&seed.join("run.py"), "print(1)");
            write(&seed.join("METHOD.md"), "method");
            write(&seed.join("SEED.json"), json);
        }
        let prefix = dir.path().join("prefix");
        for name in ["vec-controller", "vec-scorer"] {
            let path = prefix.join("bin").join(name);
            write(&path, name);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        }
        write(&prefix.join("source.tar"), "tar");
        write(&prefix.join("BUILD.json"), &build_json());
        let board_dir = dir.path().join("data/view");
        write(&board_dir.join("train.csv"), "id,a,y\n");
        write(&board_dir.join("manifest.json"), MANIFEST);
        let config = load_config(&share.join("configs/runs/r.yaml"), &[]).expect("config");
        let board = load_board(&config.board).expect("board");
        Self { dir, config, board }
    }

    fn prefix(&self) -> PathBuf {
        self.dir.path().join("prefix")
    }

    fn code(&self) -> PathBuf {
        self.dir.path().join("run/code")
    }

    fn snapshot(&self) -> Result<vec_config::CodeSnapshot, SnapshotError> {
        let build = read_build_record(&self.prefix())?;
        let inputs = SnapshotInputs {
            prefix: &self.prefix(),
            build: &build,
            config: &self.config,
            board: &self.board,
        };
        snapshot_code(inputs, &self.code())
    }

    fn inputs(&self) -> LockInputs {
        let run = self.dir.path().join("run");
        let pin = Pin {
            source: self.dir.path().join("data/view"),
            dest: "views/main".parse().expect("path"),
        };
        let pinned_inputs = pin_inputs(&run, &[pin]).expect("pin");
        let code_snapshot = self.snapshot().expect("snapshot");
        let facts = view_facts(&run.join("views/main")).expect("view");
        LockInputs {
            run_id: "20261130-101010-b-abcd".parse().expect("run"),
            created_at: UnixMs(1_796_000_000_000),
            config: self.config.clone(),
            config_source: CONFIG.as_bytes().to_vec(),
            config_sets: vec!["search_seed=0".to_owned()],
            board: self.board.clone(),
            build: read_build_record(&self.prefix()).expect("build"),
            prompt_hashes: prompt_hashes(&self.code()).expect("prompts"),
            code_snapshot,
            views: BTreeMap::from([("main".parse().expect("view"), facts)]),
            pinned_inputs,
            truth: truth(),
            environment: environment(),
            sandbox: SandboxRecord {
                path: "/opt/vec/sandbox/0/vec-sandbox".into(),
                sha256: Digest::of(b"sandbox"),
                isolation: IsolationLevel::ALL.into_iter().collect(),
            },
            supervisor: Supervisor::Plain,
            truth_isolation: TruthIsolation::Convention,
            tainted_ancestors: BTreeSet::new(),
        }
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
    std::fs::write(path, text).expect("write");
}

fn build_json() -> String {
    serde_json::json!({
        "commit": "0123456789",
        "dirty": false,
        "source_tree": "1".repeat(40),
        "rustc": "rustc 1.95.0",
        "binaries": {
            "vec-controller": Digest::of(b"vec-controller"),
            "vec-scorer": Digest::of(b"vec-scorer"),
        },
        "sandbox": {"path": "sandbox/0/vec-sandbox", "sha256": Digest::of(b"sandbox")},
    })
    .to_string()
}

fn truth() -> TruthInputs {
    let anchor = |floor| Anchor {
        floor,
        ceiling: 0.0,
        rows: 20,
    };
    let keys = [
        "A:s0", "B:s0", "B:s1", "B:s2", "B:s3", "B:s4", "B:s5", "B:s6", "B:s7",
    ];
    let anchors = keys
        .iter()
        .zip(70..)
        .map(|(key, floor)| (key.parse().expect("key"), anchor(f64::from(floor))));
    TruthInputs {
        sha256: [("A", b"a"), ("B", b"b")]
            .map(|(half, text)| (half.to_owned(), Digest::of(text)))
            .into(),
        anchors: BTreeMap::from([("r".parse().expect("ruler"), anchors.collect())]),
        floor_prediction: 151.5,
        scorer_hash: Digest::of(b"scorer"),
        self_test: SelfTest {
            perfect: 100.0,
            baseline: 50.0,
            shuffled: 40.0,
            constant: 10.0,
            pair_difference: 0.0,
        },
    }
}

fn environment() -> CandidateEnvironment {
    CandidateEnvironment {
        python: PythonFacts {
            id: "stdlib".to_owned(),
            version: "3.11.2".to_owned(),
            interpreter_sha256: Digest::of(b"python"),
            manifest_hash: None,
            lock_sha256: None,
            argv0: "/usr/bin/python3.11".into(),
        },
        variables: BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]),
        cpu_model: "Some CPU".to_owned(),
        architecture: "x86_64".to_owned(),
    }
}

#[test]
fn the_snapshot_holds_what_the_run_uses_read_only() {
    let fixture = Fixture::new();
    let snapshot = fixture.snapshot().expect("snapshot");
    let code = fixture.code();
    for path in [
        "BUILD.json",
        "bin/vec-controller",
        "source.tar",
        "prompts/researcher.md",
        "prompts/ideas_b.md",
        "configs/boards/b.yaml",
        "configs/playbooks/p/linear.py",
        "seeds/b/other/run.py",
    ] {
        let meta = std::fs::metadata(code.join(path)).expect(path);
        assert_eq!(meta.permissions().mode() & 0o222, 0, "{path}");
    }
    let run = std::fs::metadata(code.join("bin/vec-scorer")).expect("binary");
    assert_eq!(run.permissions().mode() & 0o777, 0o555);
    assert_eq!(
        snapshot.playbooks["playbook"].as_str(),
        "configs/playbooks/p.yaml"
    );
    assert_eq!(snapshot.source_sha256, Digest::of(b"tar"));
    verify_code(&code, &snapshot).expect("unchanged");

    let again = fixture.snapshot().expect_err("not empty").to_string();
    assert!(again.contains("must be empty"), "{again}");
    write(&code.join("prompts/new.md"), "x");
    assert!(matches!(
        verify_code(&code, &snapshot),
        Err(SnapshotError::Tree { .. })
    ));
    std::fs::remove_file(code.join("prompts/new.md")).expect("remove");
    verify_code(&code, &snapshot).expect("as locked");
    std::fs::remove_file(code.join("bin/vec-scorer")).expect("remove");
    write(&code.join("bin/vec-scorer"), "vec-scorer, but other");
    let error = verify_code(&code, &snapshot)
        .expect_err("other binary")
        .to_string();
    assert!(error.contains("bin/vec-scorer has sha256"), "{error}");
}

#[test]
fn files_in_use_win_over_the_installed_ones() {
    let mut fixture = Fixture::new();
    let own = fixture.dir.path().join("own");
    write(
        &own.join("configs/boards/mine.yaml"),
        &BOARD.replace("title: t", "title: mine"),
    );
    write(
        &own.join("configs/runs/r.yaml"),
        &CONFIG.replace("b.yaml", "mine.yaml"),
    );
    write(&own.join("configs/playbooks/p.yaml"), "own: 1");
    let ideas = IDEAS.replace("Text.", "My text.");
    write(&own.join("prompts/ideas_b.md"), &ideas);
    for (id, json) in [("base", ANCHOR), ("other", EXPLORATION)] {
        for (name, text) in [("run.py", "own"), ("METHOD.md", "own"), ("SEED.json", json)] {
            write(&own.join("seeds/b").join(id).join(name), text);
        }
    }
    fixture.config = load_config(&own.join("configs/runs/r.yaml"), &[]).expect("config");
    fixture.board = load_board(&fixture.config.board).expect("board");
    fixture.snapshot().expect("snapshot");
    let read = |path: &str| std::fs::read_to_string(fixture.code().join(path)).expect(path);
    assert!(read("configs/boards/b.yaml").contains("title: mine"));
    assert_eq!(read("configs/playbooks/p.yaml"), "own: 1");
    assert_eq!(read("prompts/ideas_b.md"), ideas);
    assert_eq!(fixture.board.families[0].text, "My text.");
    assert_eq!(read("seeds/b/other/run.py"), "own");
}

#[test]
fn a_damaged_installation_is_refused() {
    let fixture = Fixture::new();
    write(&fixture.prefix().join("bin/vec-scorer"), "changed");
    assert!(matches!(
        fixture.snapshot(),
        Err(SnapshotError::Digest { .. })
    ));

    let fixture = Fixture::new();
    std::fs::remove_file(fixture.prefix().join("source.tar")).expect("remove");
    let error = fixture.snapshot().expect_err("no source").to_string();
    assert!(error.ends_with("prefix/source.tar"), "{error}");

    let fixture = Fixture::new();
    write(&fixture.prefix().join("BUILD.json"), "{}");
    assert!(matches!(
        fixture.snapshot(),
        Err(SnapshotError::BuildRecord { .. })
    ));

    let fixture = Fixture::new();
    let link = fixture.prefix().join("share/prompts/link.md");
    std::os::unix::fs::symlink("/etc/hostname", link).expect("link");
    let error = fixture.snapshot().expect_err("a link").to_string();
    assert!(error.contains("takes no links"), "{error}");
}

#[test]
fn seed_programs_must_be_as_the_board_says() {
    let cases = [
        ("other/METHOD.md", None, "METHOD.md: missing"),
        (
            "base/SEED.json",
            Some(EXPLORATION),
            "state is \"exploration\", but the board says \"anchor\"",
        ),
        (
            "other/SEED.json",
            Some(&*EXPLORATION.replace("\"f\"", "null")),
            "family_id is none",
        ),
        ("other/SEED.json", Some("{}"), "missing field"),
        (
            "other/SEED.json",
            Some(&*EXPLORATION.replace("\"source\"", "\"from\"")),
            "provenance must have `source`",
        ),
        (
            "other/SEED.json",
            Some(&*" ".repeat(1 << 17)),
            "at most 65536 bytes",
        ),
    ];
    for (path, text, expected) in cases {
        let fixture = Fixture::new();
        let path = fixture.prefix().join("share/seeds/b").join(path);
        match text {
            Some(text) => write(&path, text),
            None => std::fs::remove_file(&path).expect("remove"),
        }
        let error = fixture.snapshot().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn shipped_configurations_make_runs() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["diabetes_demo", "diabetes_aa", "housing_demo"] {
        let fixture = Fixture::new();
        let mut inputs = fixture.inputs();
        let path = repo.join(format!("configs/runs/{name}.yaml"));
        inputs.config = load_config(&path, &[]).expect(name);
        inputs.board = load_board(&inputs.config.board).expect(name);
        vec_lock::check_seeds(&inputs.board).expect(name);
        for facts in inputs.views.values_mut() {
            facts.limits = inputs.board.limits.clone();
        }
        let anchors = inputs
            .truth
            .anchors
            .values()
            .next()
            .cloned()
            .expect("anchors");
        inputs.truth.anchors = inputs
            .board
            .rulers
            .keys()
            .map(|r| (r.clone(), anchors.clone()))
            .collect();
        let lock = build_lock(inputs).expect(name);
        assert!(!lock.submittable);
        let playbook = lock.config.models.engineer_playbook().expect("a playbook");
        assert!(playbook.is_file(), "{playbook:?}");
    }
}

#[test]
fn a_changed_idea_changes_the_lock_and_the_meaning_of_no_score() {
    let fixture = Fixture::new();
    let lock = build_lock(fixture.inputs()).expect("lock");
    let mut changed = Fixture::new();
    let share = changed.prefix().join("share");
    let ideas = IDEAS.replace("Text.", "Other text.");
    write(&share.join("prompts/ideas_b.md"), &ideas);
    changed.board = load_board(&changed.config.board).expect("board");
    let other = build_lock(changed.inputs()).expect("lock");
    assert_ne!(
        lock.board_definition.families,
        other.board_definition.families
    );
    assert_ne!(lock.hashes.prompts, other.hashes.prompts);
    assert_ne!(lock.hashes.code, other.hashes.code);
    assert_eq!(lock.eval_hash, other.eval_hash);
    assert_eq!(lock.search_hash, other.search_hash);
    assert_eq!(lock.scoring_fingerprint, other.scoring_fingerprint);
}

#[test]
fn the_lock_is_complete_and_reads_back() {
    let fixture = Fixture::new();
    let lock = build_lock(fixture.inputs()).expect("lock");
    let bytes = lock_bytes(&lock).expect("bytes");
    let path = fixture.dir.path().join(Lock::FILE);
    std::fs::write(&path, &bytes).expect("write");
    let read = Lock::read(&path).expect("read");
    assert_eq!(read, lock);
    assert_eq!(lock_bytes(&read).expect("bytes"), bytes, "canonical");
    assert_eq!(policy(&read), policy(&lock));
    assert!(policy(&lock).problems().is_empty());

    // Golden, with what depends on the temporary directory cut out.
    let root = fixture.dir.path().display().to_string();
    let value: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = serde_json::to_string_pretty(&value)
        .expect("JSON")
        .replace(&root, "<root>");
    insta::assert_snapshot!("lock", text);
    let text = serde_json::to_string_pretty(&policy(&lock)).expect("JSON");
    insta::assert_snapshot!("policy", text);
}

#[test]
fn locks_of_other_versions_and_other_files_are_refused() {
    let fixture = Fixture::new();
    let lock = build_lock(fixture.inputs()).expect("lock");
    let text = String::from_utf8(lock_bytes(&lock).expect("bytes")).expect("text");
    let parse = |text: &str| Lock::parse(Path::new("x"), text.as_bytes());
    let old = text.replace("\"lock_version\":10", "\"lock_version\":9");
    assert!(matches!(
        parse(&old),
        Err(LockError::Version { found: 9, .. })
    ));
    let more = text.replacen('{', "{\"extra\":1,", 1);
    assert!(matches!(parse(&more), Err(LockError::Parse { .. })));
    assert!(matches!(parse("{"), Err(LockError::Parse { .. })));
    let path = fixture.dir.path().join("long");
    let file = std::fs::File::create(&path).expect("file");
    file.set_len((16 << 20) + 1).expect("length");
    assert!(matches!(Lock::read(&path), Err(LockError::TooLong { .. })));
}

#[test]
fn only_the_guards_seeds_leave_the_search_hash() {
    let fixture = Fixture::new();
    let inputs = fixture.inputs();
    let lock = build_lock(inputs.clone()).expect("lock");
    let same = |change: &dyn Fn(&mut LockInputs)| {
        let mut inputs = inputs.clone();
        change(&mut inputs);
        let other = build_lock(inputs).expect("lock");
        (
            other.eval_hash == lock.eval_hash,
            other.scoring_fingerprint == lock.scoring_fingerprint,
            other.search_hash == lock.search_hash,
        )
    };
    let guard = |inputs: &mut LockInputs| {
        inputs.config.guard.fresh_seeds = [13, 14, 15].map(ProgramSeed).to_vec();
        let anchors = inputs.truth.anchors.values_mut().next().expect("ruler");
        let old = *anchors.values().next().expect("anchor");
        anchors.retain(|key, _| key.seed.0 < 3);
        for seed in 13..16 {
            anchors.insert(format!("B:s{seed}").parse().expect("key"), old);
        }
    };
    assert_eq!(same(&guard), (false, false, true));
    assert_eq!(
        same(&|inputs| inputs.config.search_seed.0 += 1),
        (true, true, true)
    );
    let time = |inputs: &mut LockInputs| inputs.config.execution.time_limit_s = Some(3);
    assert_eq!(same(&time), (false, true, false));
    let cpu = |inputs: &mut LockInputs| inputs.environment.cpu_model = "Other".to_owned();
    assert_eq!(same(&cpu), (false, true, false));
    let truth = |inputs: &mut LockInputs| {
        inputs
            .truth
            .sha256
            .insert("B".to_owned(), Digest::of(b"other"));
    };
    assert_eq!(same(&truth), (false, false, false));
    let anchor = |inputs: &mut LockInputs| {
        let anchors = inputs.truth.anchors.values_mut().next().expect("ruler");
        anchors
            .get_mut(&"B:s1".parse().expect("key"))
            .expect("anchor")
            .floor += 1.0;
    };
    assert_eq!(same(&anchor), (false, false, false));
    let view = |inputs: &mut LockInputs| {
        let view = inputs.views.values_mut().next().expect("view");
        view.content = Digest::of(b"other");
    };
    assert_eq!(same(&view), (false, true, false));
    assert_eq!(
        search_hash(&lock.eval_spec).expect("hash"),
        lock.search_hash
    );
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    let fixture = Fixture::new();
    let inputs = fixture.inputs();
    let refused = |change: &dyn Fn(&mut LockInputs)| {
        let mut inputs = inputs.clone();
        change(&mut inputs);
        build_lock(inputs).expect_err("refused").to_string()
    };
    let text = refused(&|inputs| inputs.views.clear());
    assert!(
        text.contains("view `main` of the board is not in the run"),
        "{text}"
    );
    let text = refused(&|inputs| inputs.board.limits.threads += 1);
    assert!(text.contains("other limits than the board"), "{text}");
    let text = refused(&|inputs| inputs.truth.anchors.clear());
    assert!(text.contains("no anchors for ruler `r`"), "{text}");
    let text = refused(&|inputs| {
        inputs.code_snapshot.binaries.clear();
    });
    assert!(text.contains("other binaries than BUILD.json"), "{text}");
    let mut inputs = fixture_inputs_with_bad_budget(&inputs);
    inputs.config.budget.max_nodes = 1;
    assert!(matches!(build_lock(inputs), Err(LockBuildError::Policy(_))));
}

fn fixture_inputs_with_bad_budget(inputs: &LockInputs) -> LockInputs {
    let mut inputs = inputs.clone();
    inputs.config.budget.final_reserve_minutes = 1e6;
    inputs
}

const ANCHOR: &str = r#"{"state": "anchor", "family_id": null, "provenance": {"source": "x"}, "admission": {"decision": "y"}}"#;
const EXPLORATION: &str = r#"{"state": "exploration", "family_id": "f", "provenance": {"source": "x"}, "admission": {"decision": "y"}}"#;
const MANIFEST: &str = r#"{"schema": 1, "limits": {"memory_gb": 1, "time_limit_s": 6, "threads": 1, "output_max_mb": 16}}"#;
const CONFIG: &str = "
mode: search
board: ../boards/b.yaml
models:
  endpoints: {playbook: {kind: playbook, playbook: ../playbooks/p.yaml, models: [scripted]}}
  roles: {researcher: [scripted], analyst: [scripted], reviewer: [scripted]}
  engineer: {framework: scripted}
";
const BOARD: &str = "
board: b
title: t
source: s
task: tabular_regression
data: {file: d.csv, target: y, features: [a]}
split: {kind: permutation, train_fraction: 0.6, seed: 1}
halves: {seed: 2, guard_fraction: 0.5}
views: {main: {}}
rulers: {r: {view: main, role: objective, weight: 2, metric: rmse}}
final_view: main
limits: {memory_gb: 1, time_limit_s: 6, threads: 1, output_max_mb: 16}
baseline: base
seed_programs: [{id: base, state: anchor}, {id: other, state: exploration, family: f}]
idea_library: ../../prompts/ideas_b.md
environment: {kind: stdlib}
";
const IDEAS: &str = "---
board: b
families: [{id: f, title: F}]
---
Preamble.
## f
Text.
";
