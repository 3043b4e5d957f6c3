//! What an idea library accepts, the one clear error for each thing that it does not.

use std::path::{Path, PathBuf};

use vec_config::{ConfigError, IdeaLibrary, check_fit, load_board, load_config, load_ideas};

const GOOD: &str = "---
board: T2:b
categories: [one, two]
families:
  - {id: f, category: one, title: F}
  - {id: g, category: two, title: G}
---
Common.

## g
Text of g.
## f
Text of f.

```
## not a section
```
";

fn load(dir: &Path, text: &str) -> Result<IdeaLibrary, ConfigError> {
    let path = dir.join("ideas_T2__b.md");
    std::fs::write(&path, text).expect("write");
    load_ideas(&path)
}

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn families_keep_the_order_of_the_front_matter() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let ideas = load(dir.path(), GOOD).expect("good");
    assert_eq!(ideas.preamble, "Common.");
    let found: Vec<(&str, &str, &str)> = ideas
        .families
        .iter()
        .map(|f| {
            let category = f.category.as_ref().map_or("", |c| c.as_str());
            (f.id.as_str(), category, f.text.as_str())
        })
        .collect();
    let expected = [
        ("f", "one", "Text of f.\n\n```\n## not a section\n```"),
        ("g", "two", "Text of g."),
    ];
    assert_eq!(found, expected);
    let windows = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
    assert_eq!(load(dir.path(), &windows).expect("CRLF and BOM"), ideas);
    for none in ["", "categories: []\n", "categories:\n"] {
        let text = GOOD
            .replace("categories: [one, two]\n", none)
            .replace("category: one, ", "")
            .replace("category: two, ", "")
            .replace("Common.\n", "");
        let ideas = load(dir.path(), &text).expect("no categories, no preamble");
        assert!(ideas.categories.is_empty() && ideas.preamble.is_empty());
    }
}

#[test]
fn bad_libraries_name_file_key_or_line_and_remedy() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let cases = [
        ("---\nboard", "board"),
        ("---\nCommon.", "Common."),
        ("board: T2:b", "board: a/b"),
        ("board: T2:b", "board: T2:c"),
        ("board: T2:b\n", ""),
        ("board: T2:b", "bord: T2:b"),
        ("title: F", "titel: F"),
        ("title: F", "title: 3"),
        (", title: F", ""),
        ("board: T2:b", "board: [T2"),
        ("board: T2:b", "board: T2:b\nboard: T2:b"),
        ("[one, two]", "[one, two, two]"),
        ("[one, two]", "[one, two, three]"),
        ("[one, two]", "[one]"),
        ("[one, two]", "[]"),
        ("[one, two]", "[one, two, a/b]"),
        ("category: two", "category: tow"),
        ("category: two, ", ""),
        ("{id: g,", "{id: f,"),
        ("{id: g,", "{id: a/b,"),
        ("{id: g,", "{id: other,"),
        ("{id: g, ", "{"),
        (
            "families:\n  - {id: f, category: one, title: F}\n  - {id: g, category: two, title: G}\n",
            "families: []\n",
        ),
        ("## g\n", "## h\n"),
        ("## g\n", "##\n"),
        ("## g\nText of g.\n", ""),
        ("Text of g.\n", "\n"),
        ("## g\n", "## f\n"),
        ("```\n## not", "````\n## not"),
        ("Common.", "Com\rmon."),
        ("Common.", "Com\u{7}mon."),
    ];
    let mut table = String::new();
    for (good, bad) in cases {
        assert!(GOOD.contains(good), "{good}");
        let error = load(dir.path(), &GOOD.replacen(good, bad, 1))
            .expect_err(bad)
            .to_string();
        let error = error.replace(&format!("{}/", dir.path().display()), "");
        table.push_str(&format!(
            "{good:?} -> {bad:?}\n  {}\n",
            error.replace('\n', "\n  ")
        ));
    }
    insta::assert_snapshot!("bad_libraries", table);
}

#[test]
fn limits_hold_on_both_sides() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let error = |text: &str| load(dir.path(), text).expect_err("refused").to_string();
    let with = |good: &str, bad: &str| GOOD.replacen(good, bad, 1);

    load(dir.path(), &with("Text of g.", &"ä".repeat(8_000))).expect("8,000 characters");
    let text = error(&with("Text of g.", &"ä".repeat(8_001)));
    assert!(
        text.contains("line 10: the text of section `g` has 8001 characters"),
        "{text}"
    );
    load(dir.path(), &with("Common.", &"ä".repeat(8_000))).expect("8,000 characters");
    let text = error(&with("Common.", &"ä".repeat(8_001)));
    assert!(
        text.contains("(preamble): 8001 characters; at most 8000"),
        "{text}"
    );

    let many = |count: usize| {
        let mut text = "---\nboard: T2:b\nfamilies:\n".to_owned();
        (0..count).for_each(|i| text.push_str(&format!("  - {{id: f{i}, title: F}}\n")));
        text.push_str("---\n");
        (0..count).for_each(|i| text.push_str(&format!("## f{i}\nx\n")));
        text
    };
    assert_eq!(
        load(dir.path(), &many(256)).expect("256").families.len(),
        256
    );
    let text = error(&many(257));
    assert!(
        text.ends_with("families: 257 families; give 1 to 256"),
        "{text}"
    );

    // The loader's bound on every file that people write.
    let long = format!("{GOOD}{}", "x\n".repeat(1 << 19));
    let text = error(&long);
    assert!(
        text.ends_with("must be a regular file of at most 1 MiB"),
        "{text}"
    );
}

#[test]
fn coverage_needs_categories() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = repo("configs/runs/diabetes_demo.yaml");
    let config = load_config(&path, &[]).expect("demo");
    let mut board = load_board(&config.board).expect("board");
    check_fit(&path, &config, &board).expect("fits");
    board.categories.clear();
    board.idea_library = dir.path().join("ideas_x.md");
    let run = Path::new("run.yaml");
    let error = check_fit(run, &config, &board).expect_err("nothing to cover");
    let text = error
        .to_string()
        .replace(&dir.path().display().to_string(), "");
    assert_eq!(
        text,
        "run.yaml: draft.policy: `coverage_bandit` goes through the categories of the idea library, \
         but /ideas_x.md: categories: there are none; give every family a category there, or set \
         `round_robin` here"
    );
    let sets = ["draft.policy=round_robin".to_owned()];
    let config = load_config(&path, &sets).expect("demo");
    check_fit(run, &config, &board).expect("round_robin needs none");
}
