//! `cargo xtask tidy`: the house rules that a program can check (architecture §5): tiers, who may
//! use what, a `//!` head in every file, file sizes, no ignored tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::shell::{cargo, output, root, say};

/// Longest source file that is not a test.
const FILE_LINES_MAX: usize = 500;

/// Crates that only these may depend on. A prefix ending in `*` stands for all daemons.
const RESTRICTED: [(&str, &[&str]); 8] = [
    (
        "tonic",
        &["vec-proto", "vec-daemon", "daemon", "vec-tool", "vecctl"],
    ),
    ("sqlx", &["vec-store"]),
    ("gix", &["vec-programs"]),
    ("figment", &["vec-config"]),
    // vec-programs needs syncfs: gix neither syncs nor offers to (deps.md §4).
    (
        "nix",
        &["vec-sandbox", "vec-scope", "vec-daemon", "vec-programs"],
    ),
    ("seccompiler", &["vec-sandbox"]),
    ("hyper", &["vec-llm", "vec-egress", "vec-playbook"]),
    ("zip", &["vec-package"]),
];

/// No crate may use these at all (deps.md: AVOID).
const BANNED: [&str; 6] = [
    "reqwest",
    "aws-lc-rs",
    "openssl",
    "native-tls",
    "tantivy",
    "zbus_systemd",
];

/// Tier of a daemon crate.
const DAEMON_TIER: u64 = 4;

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    metadata: Value,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

impl Package {
    fn tier(&self) -> Option<u64> {
        self.metadata.get("vec")?.get("tier")?.as_u64()
    }

    fn is_dev(&self) -> bool {
        self.metadata
            .get("vec")
            .and_then(|vec| vec.get("tier"))
            .and_then(Value::as_str)
            == Some("dev")
    }
}

/// Checks everything and lists every breach.
pub(crate) fn tidy() -> Result<()> {
    let text = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("read cargo metadata")?;
    let mut breaches = dependencies(&metadata.packages);
    for file in tracked_sources()? {
        let text =
            fs::read_to_string(root().join(&file)).with_context(|| format!("read {file}"))?;
        breaches.extend(source(&file, &text));
    }
    if breaches.is_empty() {
        say(&format!(
            "tidy: {} crates in order",
            metadata.packages.len()
        ));
        return Ok(());
    }
    bail!(
        "{} house rules broken:\n  {}",
        breaches.len(),
        breaches.join("\n  ")
    )
}

fn dependencies(packages: &[Package]) -> Vec<String> {
    let tiers: BTreeMap<&str, u64> = packages
        .iter()
        .filter_map(|p| Some((p.name.as_str(), p.tier()?)))
        .collect();
    let dev: Vec<&str> = packages
        .iter()
        .filter(|package| package.is_dev())
        .map(|package| package.name.as_str())
        .collect();
    let mut breaches = Vec::new();
    for package in packages {
        breaches.extend(product_uses_dev(package, &dev));
        if package.tier().is_none() && !package.is_dev() {
            breaches.push(format!("{}: no [package.metadata.vec] tier", package.name));
        }
        for dependency in &package.dependencies {
            breaches.extend(edge(package, dependency, &tiers));
        }
    }
    breaches
}

/// What only checks the product is no part of it: product crates may use it in tests alone.
fn product_uses_dev(package: &Package, dev: &[&str]) -> Vec<String> {
    let dependencies = package.dependencies.iter().filter(|dependency| {
        let test_only = dependency.kind.as_deref() == Some("dev");
        !package.is_dev() && !test_only && dev.contains(&dependency.name.as_str())
    });
    dependencies
        .map(|dependency| {
            format!(
                "{} depends on {}, which is dev",
                package.name, dependency.name
            )
        })
        .collect()
}

fn edge(package: &Package, dependency: &Dependency, tiers: &BTreeMap<&str, u64>) -> Option<String> {
    let (from, to) = (package.name.as_str(), dependency.name.as_str());
    if BANNED.contains(&to) {
        return Some(format!("{from} uses {to}, which is banned"));
    }
    if package.is_dev() {
        return None;
    }
    let tier = package.tier()?;
    let test_only = dependency.kind.as_deref() == Some("dev");
    if let Some(below) = tiers.get(to) {
        // Tests may use a neighbour, never something above.
        let beside = test_only && *below == tier && tier < DAEMON_TIER;
        let allowed = *below < tier || beside || (from, to) == ("vec-clock", "vec-types");
        return (!allowed).then(|| format!("{from} (tier {tier}) depends on {to} (tier {below})"));
    }
    let (_, users) = RESTRICTED.iter().find(|(name, _)| *name == to)?;
    let daemon = tier == DAEMON_TIER && users.contains(&"daemon");
    let allowed = users.contains(&from) || daemon || test_only;
    (!allowed).then(|| format!("{from} uses {to}; only {} may", users.join(", ")))
}

fn tracked_sources() -> Result<Vec<String>> {
    let list = output(&mut crate::shell::command(
        "git",
        &[
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.rs",
        ],
    ))?;
    let there = |file: &&str| Path::new(&root().join(file)).exists();
    Ok(list.lines().filter(there).map(str::to_owned).collect())
}

fn source(file: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    if file.contains("/src/pb/") {
        return breaches;
    }
    if !text.starts_with("//!") {
        breaches.push(format!("{file}: starts without a `//!` head"));
    }
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lines = code.lines().count();
    let is_test = file.contains("/tests/") || file.contains("/it/") || file.ends_with("tests.rs");
    if lines > FILE_LINES_MAX && !is_test {
        breaches.push(format!("{file}: {lines} lines (at most {FILE_LINES_MAX})"));
    }
    // Written in two pieces so that this file does not break its own rule.
    if text.contains(concat!("#[ig", "nore")) {
        breaches.push(format!(
            "{file}: an ignored test is no test; skip loudly with a reason"
        ));
    }
    if file.ends_with("/mod.rs") {
        breaches.push(format!("{file}: use foo.rs beside foo/, never mod.rs"));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, tier: impl Into<Value>, on: &[&str]) -> Package {
        let dependencies = on
            .iter()
            .map(|name| Dependency {
                name: (*name).to_owned(),
                kind: None,
            })
            .collect();
        let metadata = serde_json::json!({ "vec": { "tier": tier.into() } });
        Package {
            name: name.to_owned(),
            metadata,
            dependencies,
        }
    }

    #[test]
    fn edges_go_strictly_down_and_tools_stay_where_they_belong() {
        let packages = [
            package("vec-types", 0, &["serde"]),
            package("vec-clock", 0, &["vec-types"]),
            package("vec-store", 2, &["vec-types", "sqlx"]),
            package("vec-scorer", 4, &["vec-types", "tonic"]),
            package("tests", "dev", &["vec-scorer", "sqlx"]),
        ];
        assert_eq!(dependencies(&packages), Vec::<String>::new());
        let wrong = [
            package("vec-a", 2, &["vec-b", "sqlx", "reqwest"]),
            package("vec-b", 2, &["tonic"]),
            package("vec-c", Value::Null, &[]),
            package("vec-sim", "dev", &["vec-b"]),
            package("vec-d", 3, &["vec-sim"]),
        ];
        assert_eq!(dependencies(&wrong).len(), 6);
    }

    #[test]
    fn heads_sizes_and_ignored_tests_are_seen() {
        assert_eq!(
            source("crates/a/src/lib.rs", "//! Head.\n"),
            Vec::<String>::new()
        );
        let long = format!("{}{}", "//! Head.\n", "x\n".repeat(FILE_LINES_MAX + 1));
        assert_eq!(source("crates/a/src/lib.rs", &long).len(), 1);
        let ignored = concat!("fn a() {}\n#[ig", "nore]\n");
        assert_eq!(source("crates/a/src/mod.rs", ignored).len(), 3);
    }
}
