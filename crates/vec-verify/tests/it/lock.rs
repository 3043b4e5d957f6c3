//! A lock that fits the fixture's files.

use std::collections::{BTreeMap, BTreeSet};

use vec_config::{
    Admission, Board, BuildRecord, CandidateEnvironment, CodeSnapshot, Config, EvalSpec,
    ExecutionSpec, Hashes, LOCK_VERSION, Lock, Mode, PythonFacts, Reason, RulerSpec, SandboxBuild,
    SandboxRecord, ScorerFacts, ScoringRules, SelfTest, Supervisor, TruthFacts, TruthIsolation,
    ViewSpec,
};
use vec_config::{eval_hash, scoring_fingerprint, search_hash};
use vec_lock::{prompt_hashes, view_facts};
use vec_programs::tree_id_of_dir;
use vec_store::{RunLayout, hash_file};
use vec_types::{Digest, ProgramSeed, TreeId, UnixMs, ViewId};

use crate::fixture::{path, run_id};

fn python() -> PythonFacts {
    PythonFacts {
        id: "stdlib".to_owned(),
        version: "3.12.0".to_owned(),
        interpreter_sha256: Digest::of(b"python"),
        manifest_hash: None,
        lock_sha256: None,
        argv0: "/usr/bin/python3".into(),
    }
}

fn eval_spec(layout: &RunLayout, board: &Board) -> EvalSpec {
    let view = |id: &ViewId| {
        let facts = view_facts(&layout.view(id)).expect("view");
        ViewSpec {
            content: facts.content,
            limits: facts.limits,
        }
    };
    let rulers = board.rulers.iter().map(|(id, ruler)| {
        let spec = RulerSpec {
            view: ruler.view.clone(),
            role: ruler.role,
            weight: ruler.weight,
            metric: ruler.metric,
            anchors: BTreeMap::new(),
        };
        (id.clone(), spec)
    });
    EvalSpec {
        schema: 1,
        board: board.board.clone(),
        views: board
            .views
            .keys()
            .map(|id| (id.clone(), view(id)))
            .collect(),
        truth: TruthFacts {
            sha256: BTreeMap::new(),
        },
        rulers: rulers.collect(),
        scoring: ScoringRules {
            truth_fraction: 0.5,
            search_seeds: (0..3).map(ProgramSeed).collect(),
            guard_seeds: (3..8).map(ProgramSeed).collect(),
            floor_prediction: 150.0,
        },
        scorer: ScorerFacts {
            scorer_hash: Digest::of(b"scorer"),
        },
        environment: CandidateEnvironment {
            python: python(),
            variables: BTreeMap::new(),
            cpu_model: "unavailable".to_owned(),
            architecture: "x86_64".to_owned(),
        },
        execution: ExecutionSpec {
            programs: BTreeMap::new(),
        },
    }
}

fn build(code: &TreeId, binaries: &BTreeMap<String, Digest>) -> BuildRecord {
    BuildRecord {
        commit: "0".repeat(40),
        dirty: true,
        source_tree: code.clone(),
        rustc: "rustc".to_owned(),
        binaries: binaries.clone(),
        sandbox: SandboxBuild {
            path: path("sandbox/x/vec-sandbox"),
            sha256: Digest::of(b"sandbox"),
        },
    }
}

fn sandbox() -> SandboxRecord {
    SandboxRecord {
        path: "/opt/vec-sandbox".into(),
        sha256: Digest::of(b"sandbox"),
        isolation: BTreeSet::new(),
    }
}

fn self_test() -> SelfTest {
    SelfTest {
        perfect: 100.0,
        baseline: 50.0,
        shuffled: 40.0,
        constant: 10.0,
        pair_difference: 0.0,
    }
}

pub(crate) fn lock(layout: &RunLayout, config: Config, board: Board) -> Lock {
    let code = tree_id_of_dir(&layout.code()).expect("code");
    let digest = |name: &str| hash_file(&layout.run_dir().join(name)).expect("hash").1;
    let eval_spec = eval_spec(layout, &board);
    let binaries = BTreeMap::from([(
        "vec-controller".to_owned(),
        digest("code/bin/vec-controller"),
    )]);
    let view_of = |view: &ViewId| {
        let facts = view_facts(&layout.view(view)).expect("view");
        (view.clone(), facts.files)
    };
    Lock {
        lock_version: LOCK_VERSION,
        run_id: run_id(),
        created_at: UnixMs(1),
        board: board.board.clone(),
        mode: Mode::Search,
        config,
        config_source_sha256: digest("config_source.yaml"),
        config_sets: Vec::new(),
        build: build(&code, &binaries),
        hashes: Hashes {
            code: code.clone(),
            prompts: prompt_hashes(&layout.code()).expect("prompts"),
            search: code.clone(),
        },
        scoring_fingerprint: scoring_fingerprint(&eval_spec).expect("hashes"),
        search_hash: search_hash(&eval_spec).expect("hashes"),
        eval_hash: eval_hash(&eval_spec).expect("hashes"),
        view_files: board.views.keys().map(view_of).collect(),
        eval_spec,
        environment: python(),
        models: BTreeMap::new(),
        models_fallback: BTreeMap::new(),
        code_snapshot: CodeSnapshot {
            tree: code,
            binaries,
            source_sha256: digest("code/source.tar"),
            board: path("configs/boards/diabetes.yaml"),
            seeds: path("seeds/diabetes"),
            playbooks: BTreeMap::new(),
        },
        pinned_inputs: vec![vec_config::PinnedInput {
            path: path("inputs/board.yaml"),
            sha256: digest("inputs/board.yaml"),
            size: 15,
            linked: false,
        }],
        sandbox: sandbox(),
        supervisor: Supervisor::Plain,
        admission: Admission::Semaphore,
        truth_isolation: TruthIsolation::Convention,
        self_test: self_test(),
        tainted_ancestors: BTreeSet::new(),
        submittable: false,
        reasons: vec![Reason::DirtyTree, Reason::PlainSupervisor],
        board_definition: board,
    }
}
