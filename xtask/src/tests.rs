//! `cargo xtask test`: every test, with the built product beside it. Tests that cannot run here
//! print `SKIPPED: <reason>`; the closing line counts them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::dist::dist;
use crate::shell::{cargo, has, headline, say, target_dir};

/// Runs every test (or those that `filter` names).
pub(crate) fn test(filter: &[String]) -> Result<()> {
    let prefix = dist(None, false)?;
    headline("test");
    if !has("cargo-nextest", "--version") {
        say(
            "cargo-nextest is not installed (cargo install --locked cargo-nextest); using cargo test",
        );
        return cargo_test(filter, &prefix);
    }
    let mut command = cargo(&["nextest", "run", "--workspace", "--profile", "ci"]);
    command.args(filter).env("VEC_PREFIX", &prefix);
    let status = command.status().context("start cargo nextest")?;
    let junit = target_dir().join("nextest/ci/junit.xml");
    let tally = tally(&fs::read_to_string(&junit).unwrap_or_default());
    for (reason, count) in &tally.skips {
        say(&format!("SKIPPED ({count} tests): {reason}"));
    }
    let skipped: usize = tally.skips.values().sum();
    say(&format!(
        "{} passed, {} failed, {skipped} skipped",
        tally.tests - tally.failures - skipped,
        tally.failures
    ));
    if !status.success() {
        bail!("tests failed ({status})");
    }
    Ok(())
}

fn cargo_test(filter: &[String], prefix: &PathBuf) -> Result<()> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast", "--"]);
    command
        .args(filter)
        .args(["--nocapture"])
        .env("VEC_PREFIX", prefix);
    let status = command.status().context("start cargo test")?;
    if !status.success() {
        bail!("tests failed ({status})");
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    tests: usize,
    failures: usize,
    skips: BTreeMap<String, usize>,
}

// JUnit as nextest writes it: counts stand on the root element, a test's output follows its
// <testcase>. A test counts as skipped once, whatever it prints.
fn tally(junit: &str) -> Tally {
    let mut tally = Tally::default();
    let root = junit
        .split("<testsuites")
        .nth(1)
        .and_then(|rest| rest.split('>').next());
    let count = |name: &str| {
        let text = root?
            .split(&format!("{name}=\""))
            .nth(1)?
            .split('"')
            .next()?;
        text.parse::<usize>().ok()
    };
    tally.tests = count("tests").unwrap_or_default();
    tally.failures = count("failures").unwrap_or_default() + count("errors").unwrap_or_default();
    for case in junit.split("<testcase").skip(1) {
        let case = case.split("</testcase>").next().unwrap_or_default();
        if let Some(reason) = case.split("SKIPPED: ").nth(1) {
            let reason = reason.lines().next().unwrap_or_default().trim().to_owned();
            *tally.skips.entry(reason).or_default() += 1;
        }
    }
    tally
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn counts_come_from_the_root_and_skips_from_the_cases() {
        let junit = r#"<testsuites name="x" tests="3" failures="1" errors="0">
            <testcase name="a"><system-err>SKIPPED: no root
SKIPPED: again</system-err></testcase><testcase name="b"/>
            <testcase name="c"><failure/></testcase></testsuites>"#;
        let tally = tally(junit);
        assert_eq!((tally.tests, tally.failures), (3, 1));
        assert_eq!(tally.skips, BTreeMap::from([("no root".to_owned(), 1)]));
    }
}
