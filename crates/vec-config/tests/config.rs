//! What a run configuration accepts, and the one clear error for each thing that it does not.

use std::path::{Path, PathBuf};

use vec_config::{Config, ConfigError, Fault, FaultPoint, load_config};

const GOOD: &str = "
mode: search
board: ../boards/b.yaml
models:
  endpoints: {playbook: {kind: playbook, playbook: p.yaml, models: [m1, m2]}}
  roles: {researcher: [m1, m2], analyst: [m1], reviewer: [m2]}
  engineer: {framework: scripted}
";

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("temporary directory"))
    }

    fn load(&self, text: &str, sets: &[&str]) -> Result<Config, ConfigError> {
        let path = self.0.path().join("run.yaml");
        std::fs::write(&path, text).expect("write");
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        load_config(&path, &sets)
    }

    // The error text, with the directory cut out.
    fn error(&self, text: &str, sets: &[&str]) -> String {
        let error = self.load(text, sets).expect_err("must be refused");
        error
            .to_string()
            .replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn defaults_are_the_documented_ones() {
    let dir = Dir::new();
    let mut config = dir.load(GOOD, &[]).expect("good");
    assert_eq!(
        config.board,
        dir.0.path().parent().expect("parent").join("boards/b.yaml")
    );
    config.board = PathBuf::from("/cut");
    config.models.endpoints.clear();
    let text = serde_json::to_string_pretty(&config).expect("encodes");
    insta::assert_snapshot!("defaults", text);
}

#[test]
fn the_normalised_form_reads_back() {
    let config = Dir::new().load(GOOD, &[]).expect("good");
    let json = serde_json::to_vec(&config).expect("encodes");
    assert_eq!(
        serde_json::from_slice::<Config>(&json).expect("reads"),
        config
    );
}

#[test]
fn sets_win_over_the_file_and_later_sets_over_earlier() {
    let dir = Dir::new();
    let text = format!("{GOOD}budget: {{max_nodes: 7, wall_hours: 20}}\n");
    let sets = [
        "budget.max_nodes=8",
        "budget.max_nodes=9",
        "guard.fresh_seeds=[11, 12, 13]",
        "purpose=a = b",
    ];
    let config = dir.load(&text, &sets).expect("good");
    assert_eq!(config.budget.max_nodes, 9);
    assert_eq!(config.budget.wall_hours, 20.0);
    assert_eq!(config.guard.fresh_seeds.len(), 3);
    assert_eq!(config.purpose.as_deref(), Some("a = b"));
}

#[test]
fn every_problem_is_reported_at_once() {
    let text = "
mode: search
board: b.yaml
max_nodes: 3
budgets: {wall_hours: 2}
budget: {wall_hour: 2, max_nodes: many, settle_extra_s: 1.5}
concurrency: 2
promotion: {seeds: [1, x]}
models:
  endpoints: {p: {kind: playbok, playbook: 3, extra: 1, models: [m]}}
  roles: {researcher: m, writer: [m]}
";
    insta::assert_snapshot!(
        "every_problem",
        Dir::new().error(text, &["scorin.workers=2"])
    );
}

#[test]
fn bad_values_name_file_key_and_remedy() {
    let dir = Dir::new();
    let cases: &[(&str, &[&str])] = &[
        ("", &["draft.p=1.5"]),
        ("", &["draft.p=0.6", "debug.p=0.5"]),
        ("", &["draft.p=.nan"]),
        ("", &["tune.p=0.25"]),
        ("", &["select.c_puct=0"]),
        ("concurrency: {nodes: 0}", &[]),
        ("concurrency: {nodes: 65}", &[]),
        ("concurrency: {nodes: }", &[]),
        ("guard: {fresh_seeds: [2, 3]}", &[]),
        ("guard: {fresh_seeds: [0, 3]}", &[]),
        ("guard: {fresh_seeds: [3, 3]}", &[]),
        ("guard: {fresh_seeds: [3]}", &[]),
        ("guard: {kind: margin}", &[]),
        ("promotion: {seeds: [0, 1]}", &[]),
        ("promotion: {seeds: []}", &[]),
        ("", &["promotion.seeds=[4294967295]"]),
        ("", &["playbook.trials=21"]),
        ("", &["gpu.slots=1"]),
        ("", &["scoring.settle_wait_s=91"]),
        ("", &["execution.output_max_gb=-1"]),
        ("", &["execution.time_limit_s=0"]),
        ("", &["engineer.minutes=0"]),
        ("", &["budget.max_cost_usd=5"]),
        ("", &["checks=everything"]),
        ("", &["mode=agent"]),
        ("", &["mode=null"]),
        ("", &["purpose=''"]),
        ("", &["fault.kill_controller=[event]"]),
        ("", &["models.roles.analyst=[m3]"]),
        ("", &["models.roles.analyst=[]"]),
        ("", &["models.roles.analyst=[m1, m1]"]),
        ("", &["models.engineer.endpoint=other"]),
        (
            "",
            &["models.endpoints.two={kind: playbook, playbook: q, models: [m1]}"],
        ),
        (
            "",
            &["models.endpoints.two={kind: playbook, playbook: q, models: ['a b']}"],
        ),
        ("", &["models.endpoints.playbook.models=[]"]),
        ("", &["board"]),
        ("", &["=1"]),
        ("", &["budget..x=1"]),
        ("", &["budget={"]),
        ("budget: {max_nodes: 1, max_nodes: 2}", &[]),
        ("budget: [1]", &[]),
        ("\tx", &[]),
    ];
    let mut table = String::new();
    for (more, sets) in cases {
        let error = dir.error(&format!("{GOOD}{more}\n"), sets);
        table.push_str(&format!(
            "{more} {}\n  {}\n",
            sets.join(" "),
            error.replace('\n', "\n  ")
        ));
    }
    insta::assert_snapshot!("bad_values", table);
}

#[test]
fn an_inconsistent_budget_is_refused_with_its_keys() {
    let dir = Dir::new();
    let mut table = String::new();
    for set in [
        "budget={wall_hours: 1}",
        "budget={node_tail_minutes: 0}",
        "budget={settle_guard_s: 5401}",
        "budget={final_reserve_minutes: 3, settle_guard_s: 60}",
        "final={place_room_s: 5400}",
        "final={place_room_s: 0}",
    ] {
        table.push_str(&format!("{set}\n  {}\n", dir.error(GOOD, &[set])));
    }
    insta::assert_snapshot!("budgets", table);
    // Settling ends no later than the guard on stop_at: equal to cutoff passes.
    dir.load(GOOD, &["budget.settle_guard_s=5400"])
        .expect("settle_deadline = cutoff");
}

#[test]
fn files_that_are_no_configuration_are_refused() {
    let dir = Dir::new();
    let missing = load_config(&dir.0.path().join("none.yaml"), &[]).expect_err("missing");
    assert!(
        missing.to_string().ends_with("none.yaml: cannot read it"),
        "{missing}"
    );
    let long = format!("{GOOD}# {}", "x".repeat(1 << 20));
    assert!(dir.error(&long, &[]).contains("at most 1 MiB"));
    assert_eq!(dir.error("- 1", &[]), "run.yaml: must be a map of keys");
    assert!(dir.error("", &[]).contains("run.yaml: mode: missing"));
}

#[test]
fn faults_belong_to_starts() {
    let points = |texts: &[&str]| Fault {
        kill_controller: texts
            .iter()
            .map(|text| FaultPoint::try_from((*text).to_owned()).expect("point"))
            .collect(),
    };
    let text = |fault: &Fault, start| fault.for_start(start).map(ToString::to_string);
    let two = points(&["event:draw", "store:append"]);
    assert_eq!(text(&two, 0).as_deref(), Some("event:draw"));
    assert_eq!(text(&two, 1).as_deref(), Some("store:append"));
    assert_eq!(text(&two, 2), None);
    let each = points(&["event:draw", "event:each"]);
    assert_eq!(text(&each, 0).as_deref(), Some("event:draw"));
    assert_eq!(text(&each, 9).as_deref(), Some("event:each"));
    assert_eq!(text(&points(&[]), 0), None);
}

#[test]
fn shipped_configurations_load() {
    for name in ["diabetes_demo", "housing_demo", "diabetes_aa"] {
        let config = load_config(&repo(&format!("configs/runs/{name}.yaml")), &[]).expect(name);
        let board = vec_config::load_board(&config.board).expect(name);
        vec_config::check_fit(&config.board, &config, &board).expect(name);
        assert_eq!(config.draft.policy, vec_config::DraftPolicy::CoverageBandit);
        assert!(config.plateau.enabled);
        assert!(
            board.seeds_dir.join("train_mean/run.py").is_file(),
            "{board:?}"
        );
        assert_eq!(config.budget.max_nodes, 16);
        assert_eq!(board.objective().values().sum::<f64>(), 1.0);
    }
}

#[test]
fn deep_nesting_is_refused_at_once() {
    let dir = Dir::new();
    let deep = "[".repeat(100_000);
    let begun = std::time::Instant::now();
    let error = dir.error(&format!("mode: {deep}"), &[]);
    assert_eq!(error, "run.yaml: nests deeper than 64 levels at line 1");
    let error = dir.error(GOOD, &[&format!("mode={deep}")]);
    assert!(error.ends_with("deeper than 64 levels at line 1"));
    let board = dir.0.path().join("board.yaml");
    std::fs::write(&board, &deep).expect("write");
    let error = vec_config::load_board(&board).expect_err("refused");
    assert!(error.to_string().contains("nests deeper"), "{error}");
    // Parsing it would take minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
}
