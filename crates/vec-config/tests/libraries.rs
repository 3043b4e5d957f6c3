//! What the shipped idea libraries say, and what they must not say.

use std::path::{Path, PathBuf};

use vec_config::load_ideas;

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn the_t1_library_is_as_designed() {
    let ideas = load_ideas(&repo("prompts/ideas_T1__val.md")).expect("loads");
    assert_eq!(ideas.board.as_str(), "T1:val");
    let of = |category: &str| {
        let families = ideas.families.iter();
        families
            .filter(|f| f.category.as_ref().is_some_and(|c| c.as_str() == category))
            .map(|f| f.id.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("continuous_dynamics"),
        ["ot_cfm", "manifold_ode", "velocity_field", "latent_sde"]
    );
    assert_eq!(
        of("fate_branching"),
        [
            "local_ot",
            "growth_branching",
            "lineage_markov",
            "birth_death"
        ]
    );
    assert_eq!(
        of("distribution_structure"),
        ["composition_program", "covariance_program", "quantile_flow"]
    );
    assert_eq!(ideas.families.len(), 11);
    let categories: Vec<&str> = ideas.categories.iter().map(|c| c.as_str()).collect();
    assert_eq!(
        categories,
        [
            "continuous_dynamics",
            "fate_branching",
            "distribution_structure"
        ]
    );
    for family in &ideas.families {
        let words = family.text.split_whitespace().count();
        assert!((80..=180).contains(&words), "{}: {words} words", family.id);
        for part in [
            "Idea:",
            "Minimal version:",
            "Should beat",
            "May fail",
            "\n`--ablate ",
        ] {
            assert!(family.text.contains(part), "{}: {part}", family.id);
        }
    }
    for needed in [
        "composition_program",
        "local_ot",
        "### Compliance",
        "### Forbidden",
        "tune:",
    ] {
        assert!(ideas.preamble.contains(needed), "{needed}");
    }
}

#[test]
fn shipped_libraries_name_no_result() {
    for name in ["T1__val", "diabetes", "housing"] {
        let path = repo(&format!("prompts/ideas_{name}.md"));
        let ideas = load_ideas(&path).expect(name);
        assert!(!ideas.categories.is_empty(), "{name}");
        let text = std::fs::read_to_string(&path).expect(name);
        assert_eq!(looks_like_result(&text), None, "{name}");
    }
    for bad in [
        "0.5",
        "61.1234",
        "5 %",
        "9%",
        "percent",
        "points",
        "a score of 7",
        "(1.5)",
    ] {
        assert_eq!(looks_like_result(bad), Some(bad.to_owned()), "{bad}");
    }
    assert_eq!(looks_like_result("E8.5 and 1,000. 2. x"), None);
}

/// The first line with a decimal number, a share or a score. Names of stages (`E8.5`) are none.
fn looks_like_result(text: &str) -> Option<String> {
    let score_of = |line: &str| {
        let after = line.split("score of ").skip(1);
        after
            .into_iter()
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    text.lines()
        .find(|line| {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
            let mut numbers = words.map(|word| word.trim_matches('.'));
            let has_word = |word: &str| line.to_lowercase().contains(word);
            numbers.any(|word| word.contains('.') && word.parse::<f64>().is_ok())
                || line.contains('%')
                || has_word("percent")
                || has_word("points")
                || score_of(line)
        })
        .map(str::to_owned)
}
