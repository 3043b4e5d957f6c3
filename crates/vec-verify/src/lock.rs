//! The lock, and everything in the run directory that it hashes. The one file that knows the
//! lock's shape.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;
use vec_config::{Limits, Lock, eval_hash, scoring_fingerprint, search_hash};
use vec_programs::tree_id_of_dir;
use vec_search::Event;
use vec_store::{RunLayout, StoreError, hash_file};
use vec_types::{Digest, ManifestEntry, RelPath, canonical_json, manifest_hash};

use crate::replay::KnownEvent;
use crate::report::chain;
use crate::{Check, VerifyReport};

const LOCK: &str = "config.lock.json";

pub(crate) fn check(layout: &RunLayout, events: &[KnownEvent], report: &mut VerifyReport) {
    let lock = match Lock::read(&layout.config_lock()) {
        Ok(lock) => lock,
        Err(error) => {
            report.find(Check::Lock, LOCK, "a readable lock", chain(&error));
            return;
        }
    };
    let mut same = |place: &str, expected: String, found: String| {
        if expected != found {
            report.find(Check::Lock, place, expected, found);
        }
    };
    let run = layout.run();
    same(LOCK, format!("run {run}"), format!("run {}", lock.run_id));
    let submittable = lock.reasons.is_empty();
    same(
        LOCK,
        format!("submittable: {submittable}, as its reasons say"),
        format!("submittable: {}, as its reasons say", lock.submittable),
    );
    same(
        &format!("{LOCK} code_snapshot.tree"),
        lock.hashes.code.to_string(),
        lock.code_snapshot.tree.to_string(),
    );
    let spec = &lock.eval_spec;
    for (name, locked, found) in [
        ("eval_hash", lock.eval_hash, eval_hash(spec)),
        (
            "scoring_fingerprint",
            lock.scoring_fingerprint,
            scoring_fingerprint(spec),
        ),
        ("search_hash", lock.search_hash, search_hash(spec)),
    ] {
        let found = found.map_or_else(|error| error.to_string(), |hash| hash.to_string());
        same(&format!("{LOCK} {name}"), locked.to_string(), found);
    }
    policy(&lock, events, report);
    prompts(&lock, layout, report);
    views(&lock, layout, report);
    code(&lock, layout, report);
    files(&lock, layout, report);
}

/// The decisions' rules are the locked ones.
fn policy(lock: &Lock, events: &[KnownEvent], report: &mut VerifyReport) {
    let Some(first) = events.first() else {
        return;
    };
    let Event::RunStart { run, policy } = &first.event else {
        report.find(Check::Events, "event 1", "run_start", &first.row.kind);
        return;
    };
    if *run != lock.run_id {
        let expected = format!("run {}", lock.run_id);
        report.find(Check::Lock, "event 1", expected, format!("run {run}"));
    }
    let text = |policy: &vec_search::Policy| {
        canonical_json(policy).map_or_else(
            |error| error.to_string(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    };
    let (locked, started) = (text(&vec_config::policy(lock)), text(policy));
    if locked != started {
        let expected = format!("the locked policy {locked}");
        report.find(Check::Lock, "event 1", expected, started);
    }
}

fn code(lock: &Lock, layout: &RunLayout, report: &mut VerifyReport) {
    let found = tree_id_of_dir(&layout.code());
    let found = found.map_or_else(|error| chain(&error), |tree| tree.to_string());
    let expected = lock.code_snapshot.tree.to_string();
    if found != expected {
        let place = "code/";
        report.find(
            Check::Lock,
            place,
            format!("tree {expected}"),
            format!("tree {found}"),
        );
    }
    for (name, expected) in &lock.code_snapshot.binaries {
        let place = format!("code/bin/{name}");
        one(&layout.code_bin(name), &place, *expected, report);
    }
    let source = layout.code().join("source.tar");
    one(
        &source,
        "code/source.tar",
        lock.code_snapshot.source_sha256,
        report,
    );
    let config = layout.config_source();
    one(
        &config,
        "config_source.yaml",
        lock.config_source_sha256,
        report,
    );
}

fn prompts(lock: &Lock, layout: &RunLayout, report: &mut VerifyReport) {
    for (name, expected) in &lock.hashes.prompts {
        let place = format!("code/prompts/{name}");
        match place.parse::<RelPath>() {
            Ok(path) => one(&layout.at(&path), &place, *expected, report),
            Err(error) => report.find(Check::Lock, LOCK, "a relative path", error),
        }
    }
}

/// Each view's content is what gives its scores their meaning (EVS-10).
fn views(lock: &Lock, layout: &RunLayout, report: &mut VerifyReport) {
    for (view, spec) in &lock.eval_spec.views {
        let place = format!("views/{view}");
        let names = lock
            .view_files
            .get(view)
            .into_iter()
            .flat_map(BTreeMap::keys);
        let found = content(&layout.view(view), names).and_then(|content| {
            let limits = limits(&layout.view(view).join("manifest.json"))?;
            Ok((content, limits))
        });
        match found {
            Ok((content, limits)) if content == spec.content && limits == spec.limits => {}
            Ok((content, limits)) => {
                let text = |content, limits| format!("content {content} with limits {limits:?}");
                let expected = text(spec.content, &spec.limits);
                report.find(Check::Lock, place, expected, text(content, &limits));
            }
            Err(error) => report.find(Check::Lock, place, "the locked view", error),
        }
    }
}

fn content<'a>(dir: &Path, names: impl Iterator<Item = &'a String>) -> Result<Digest, String> {
    let mut entries = Vec::new();
    for name in names {
        let path = name
            .parse::<RelPath>()
            .map_err(|error| chain(&error))?
            .under(dir);
        let (size, sha256) = hash_file(&path).map_err(|error| chain(&error))?;
        let meta = std::fs::metadata(&path).map_err(|error| chain(&error))?;
        let mode = meta.permissions().mode() & 0o7777;
        entries.push(ManifestEntry {
            path: name.clone(),
            mode,
            sha256,
            size,
        });
    }
    Ok(manifest_hash(&entries))
}

fn limits(manifest: &Path) -> Result<Limits, String> {
    #[derive(Deserialize)]
    struct Manifest {
        limits: Limits,
    }
    let bytes = std::fs::read(manifest).map_err(|error| chain(&error))?;
    let Manifest { limits } = serde_json::from_slice(&bytes).map_err(|error| chain(&error))?;
    Ok(limits)
}

fn files(lock: &Lock, layout: &RunLayout, report: &mut VerifyReport) {
    for (view, files) in &lock.view_files {
        let dir = layout.view(view);
        for (name, expected) in files {
            let place = format!("views/{view}/{name}");
            // A name with `..` would leave the run directory.
            match name.parse::<RelPath>() {
                Ok(name) => one(&name.under(&dir), &place, *expected, report),
                Err(error) => report.find(Check::Lock, LOCK, "a relative path", error),
            }
        }
    }
    let pinned: BTreeMap<&RelPath, (u64, Digest)> = lock
        .pinned_inputs
        .iter()
        .map(|input| (&input.path, (input.size, input.sha256)))
        .collect();
    for (path, (_, expected)) in pinned {
        one(&layout.at(path), path.as_str(), expected, report);
    }
}

fn one(file: &Path, place: &str, expected: Digest, report: &mut VerifyReport) {
    let found = hash_file(file);
    if matches!(&found, Ok((_, digest)) if *digest == expected) {
        return;
    }
    let found = match found {
        Ok((_, digest)) => format!("sha256 {digest}"),
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            "no such file".to_owned()
        }
        Err(error) => chain(&error),
    };
    let expected = format!("sha256 {expected} as locked");
    report.find(Check::Lock, place, expected, found);
}
