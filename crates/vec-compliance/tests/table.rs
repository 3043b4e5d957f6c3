//! The table of patterns by example: what must go, what must stay.

use vec_compliance::{MARK, PatternKind, Rules, check_plan};
use vec_types::Plan;

fn rules() -> Rules {
    Rules::for_board(&"diabetes".parse().expect("id"), "progression").expect("compiles")
}

fn plan(approach: &str) -> Plan {
    Plan {
        name: "ridge".into(),
        motivation: "Shrinkage should help.".into(),
        approach: approach.into(),
        expected_groups: vec![],
        risks: vec![],
        family_id: None,
        mechanism: None,
        ablate: None,
    }
}

const BAD: [(&str, &str); 18] = [
    ("parent_path", "Open ../other/run.py for reuse."),
    ("parent_path", r"Read ..\secrets first."),
    ("truth_path", "The answers lie in truth/diabetes/A."),
    ("truth_path", "Compare with /truth before writing."),
    ("truth_path", "Load truth.csv as a check."),
    ("system_path", "Look at /etc/shadow."),
    ("system_path", "Parse `/proc/1/environ` for hints."),
    ("system_path", "List (/home) and /root."),
    ("home_path", "Cache weights in ~/cache."),
    ("home_path", "Take the key from os.environ."),
    ("url", "Get it from https://example.org/data.csv."),
    ("url", "Mirror at www.example.org has it."),
    ("download_command", "Run curl to fetch the file."),
    ("download_command", "First pip install xgboost."),
    ("download_command", "Then git clone the repository."),
    ("download_call", "Use urllib to query the service."),
    ("download_call", "fetch_california_housing() has more rows."),
    ("hidden_statistic", "The std of the test set is 77."),
];

#[test]
fn sentences_that_go() {
    let table_of_numbers = (0..24)
        .map(|n| format!("{n}.5"))
        .collect::<Vec<_>>()
        .join(", ");
    let table_of_numbers = format!("Start from {table_of_numbers} as weights.");
    let lines = (0..24)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join("\n");
    let mut cases = BAD.to_vec();
    cases.push(("number_table", &table_of_numbers));
    cases.push(("number_table", &lines));
    let rules = rules();
    for (pattern, sentence) in cases {
        let text = format!("Fit a ridge model. {sentence}\nKeep it small.");
        let checked = check_plan(&plan(&text), &rules);
        assert!(!checked.removed.is_empty(), "nothing removed: {sentence}");
        for removed in &checked.removed {
            assert_eq!(removed.pattern, pattern, "{sentence}");
            assert_eq!(removed.key, "approach");
        }
        assert!(!checked.emptied, "{sentence}");
        let left = checked.plan.approach.replace(MARK, "");
        assert!(left.contains("Keep it small."), "{sentence}");
        assert!(!left.contains(sentence), "{sentence}");
    }
}

#[test]
fn sentences_that_stay() {
    let numbers = (0..23)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let rules = rules();
    for sentence in [
        "Standardise the columns with mean and standard deviation of the training rows.",
        "Use alpha 0.5, 1.5 and 12.0 as penalties.",
        "Read the files that manifest.json names below --data.",
        "Write /out/pred.csv with the columns id,prediction.",
        "The program in /solution/run.py takes --ablate squares.",
        "Predict progression from bmi, bp and s5 with 3 interactions.",
        "Scores moved from 50.0 to 57.3 after adding squares.",
        "Tree depth 3, learning rate 0.1, 200 rounds; the time limit is 6 s.",
        "Cross-validate on 5 folds of the training rows and take the mean error.",
        "Predict the test rows with the mean of 5 models.",
        "Take and/or combinations of s1/s2 ratios.",
        &format!("Try {numbers} in turn."),
    ] {
        let checked = check_plan(&plan(sentence), &rules);
        assert_eq!(checked.removed, [], "{sentence}");
        assert_eq!(checked.plan, plan(sentence));
    }
}

#[test]
fn every_field_is_read() {
    let bad = "See https://example.org now.";
    let rules = rules();
    let full = Plan {
        name: bad.into(),
        motivation: bad.into(),
        approach: bad.into(),
        expected_groups: vec![bad.into()],
        risks: vec!["fine".into(), bad.into()],
        family_id: Some("linear".parse().expect("id")),
        mechanism: Some(bad.into()),
        ablate: Some("../x".into()),
    };
    let checked = check_plan(&full, &rules);
    let keys: Vec<&str> = checked.removed.iter().map(|removed| removed.key).collect();
    assert_eq!(
        keys,
        [
            "name",
            "motivation",
            "approach",
            "mechanism",
            "expected_groups",
            "risks",
            "ablate"
        ]
    );
    assert!(checked.emptied && checked.over_half);
    assert_eq!(checked.plan.risks, ["fine", MARK]);
    assert_eq!(checked.plan.ablate, None);
    assert_eq!(checked.plan.family_id, full.family_id);
    let again = check_plan(&checked.plan, &rules);
    assert_eq!(again.removed, [], "the mark itself is harmless");
    assert!(again.emptied);
}

#[test]
fn shares_of_removed_text() {
    let rules = rules();
    let half = check_plan(
        &plan("Short. Read ../x/y/z and use everything in it."),
        &rules,
    );
    assert!(half.over_half && !half.emptied);
    assert_eq!(half.plan.approach, format!("Short. {MARK}"));
    let little = check_plan(
        &plan("Fit a ridge model on standardised columns with squares. Read ../x."),
        &rules,
    );
    assert!(!little.over_half);
    assert_eq!(little.removed[0].sentence, "Read ../x.");
    let empty = check_plan(&plan("  \n"), &rules);
    assert!(empty.emptied, "an approach of nothing is empty");
}

#[test]
fn kinds_have_patterns_and_words() {
    let rules = rules();
    for kind in [
        PatternKind::Path,
        PatternKind::Download,
        PatternKind::NumberTable,
        PatternKind::HiddenStatistic,
    ] {
        assert!(rules.patterns().iter().any(|pattern| pattern.kind == kind));
        assert!(!kind.as_str().is_empty());
    }
    let long = "x".repeat(201);
    let board = "diabetes".parse().expect("id");
    let error = Rules::for_board(&board, &long).expect_err("too long");
    assert!(Rules::for_board(&board, &long[..200]).is_ok());
    assert!(error.to_string().contains("board diabetes"), "{error}");
}
