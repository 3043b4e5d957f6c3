//! Keys of the search policy: defaults, ends of ranges, and the one clear error for each value that
//! is refused.

use vec_config::{Config, ConfigError, DraftPolicy, load_config};
use vec_types::ProgramSeed;

const GOOD: &str = "
mode: search
board: ../boards/b.yaml
models:
  endpoints: {playbook: {kind: playbook, playbook: p.yaml, models: [m]}}
  roles: {researcher: [m], analyst: [m], reviewer: [m]}
  engineer: {framework: scripted}
";

fn load(sets: &[&str]) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("run.yaml");
    std::fs::write(&path, GOOD).expect("write");
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    load_config(&path, &sets)
}

// The error text, with the directory cut out.
fn error(sets: &[&str]) -> String {
    let text = load(sets).expect_err("must be refused").to_string();
    let source = |line: &str| match line.split_once("/run.yaml: ") {
        Some((_, rest)) => format!("run.yaml: {rest}"),
        None => line.to_owned(),
    };
    text.lines().map(source).collect::<Vec<_>>().join("\n  ")
}

#[test]
fn defaults() {
    let config = load(&[]).expect("good");
    let (draft, select, plateau) = (&config.draft, &config.select, &config.plateau);
    assert_eq!(draft.policy, DraftPolicy::RoundRobin);
    assert_eq!((draft.failed_cap, draft.min_explore), (2, 0.25));
    assert!(!plateau.enabled);
    assert_eq!(
        (plateau.window, plateau.top_k, plateau.draft_p),
        (8, 5, 0.5)
    );
    assert_eq!((select.streak_len, select.reserve_improve), (2, true));
    assert_eq!(select.reserve_margin, 10.0);
    assert_eq!(config.tune.p, 0.0);
    assert_eq!(config.tune.seeds, [ProgramSeed(101), ProgramSeed(102)]);
}

#[test]
fn the_ends_of_ranges_pass() {
    let sets = [
        "draft={p: 0, policy: coverage_bandit, failed_cap: 1, min_explore: 0}",
        "draft={p: 0.85, failed_cap: 1000, min_explore: 1}",
        "plateau={enabled: true, window: 1, top_k: 1, draft_p: 0}",
        "plateau={window: 1000, top_k: 1000, draft_p: 1}",
        "select={streak_len: 0, reserve_improve: false, reserve_margin: 0}",
        "select={streak_len: 1000, reserve_margin: 1.0e+300}",
        "tune.seeds=[0]",
    ];
    for set in sets {
        load(&[set]).expect(set);
    }
}

#[test]
fn bad_values_name_key_and_remedy() {
    let long = format!("tune.seeds={:?}", (100..165).collect::<Vec<u32>>());
    let cases: &[&[&str]] = &[
        &["draft.policy=bandit"],
        &["draft.policy=null"],
        &["draft.failed_cap=0"],
        &["draft.failed_cap=1001"],
        &["draft.min_explore=-0.1"],
        &["draft.min_explore=1.1"],
        &["plateau={enabled: yes please}"],
        &["plateau={windows: 3}"],
        &["plateau.enabled=null"],
        &["plateau.window=0"],
        &["plateau.window=1001"],
        &["plateau.top_k=0"],
        &["plateau.top_k=1001"],
        &["plateau.draft_p=1.5"],
        &["tune.p=0.8", "draft.p=0.1"],
        &["tune.seeds=[]"],
        &["tune.seeds=[101, 101]"],
        &["tune.seeds=[5, 101]"],
        &["guard.fresh_seeds=[3, 102]"],
        &["select.streak_len=-1"],
        &["select.streak_len=1001"],
        &["select.reserve_improve=1"],
        &["select.reserve_margin=-1"],
        &["select.reserve_margin=.inf"],
        &[&long],
    ];
    let mut table = String::new();
    for sets in cases {
        table.push_str(&format!("{}\n  {}\n", sets.join(" "), error(sets)));
    }
    insta::assert_snapshot!("bad_search_keys", table);
}

/// Not the generic message with a guess: there is nothing that it should be called now.
#[test]
fn a_removed_key_says_what_to_do() {
    let text = error(&["checks=first_light"]);
    let said = "--set checks=first_light: checks: this key was removed, view checks cannot be \
                switched off any more; delete it. Control runs are switched on by \
                ablation.enabled, the share of nodes that are checked at once is viewcheck.sample";
    assert!(text.contains(said), "{text}");
    let elsewhere = error(&["viewcheck.checks=1"]);
    assert!(elsewhere.contains("unknown key"), "{elsewhere}");
}
