//! Which files of the run go where. Raw board data does not: views, inputs and predictions of
//! search stay in the run directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use vec_store::{RunLayout, verify_ledger};
use vec_types::{NodeId, RelPath};

use crate::{PackageError, archive};

/// Files of the run by place in the package.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// `trajectory.zip`: what roles, Engineer and executions said, with plans and analyses.
    pub trajectory: BTreeSet<RelPath>,
    /// `prompts.zip`: prompt snapshot and rendered prompts.
    pub prompts: BTreeSet<RelPath>,
    /// `harness.zip`: lock, ledger, archive, logs, programs, sources and seeds.
    pub harness: BTreeSet<RelPath>,
    /// Plain files: the answer and SELECTION.md.
    pub answer: BTreeSet<RelPath>,
}

enum Place {
    Trajectory,
    Prompts,
    Harness,
    Answer,
    Nowhere,
}

fn place(path: &RelPath) -> Place {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    match parts[..] {
        ["code", "prompts", ..] | ["nodes", _, "prompts", ..] => Place::Prompts,
        // Binaries are rebuilt from the sources; their hashes are in the lock.
        ["code", "bin", ..] => Place::Nowhere,
        ["nodes", _, "trajectory", ..] => Place::Trajectory,
        ["nodes", _, file] if is_text(file) => Place::Trajectory,
        ["nodes", _, _, "stdout" | "stderr" | "report.json"] => Place::Trajectory,
        ["final", _] => Place::Answer,
        ["code" | "logs" | "programs.git", ..] | ["archive.sqlite"] => Place::Harness,
        ["config.lock.json" | "config_source.yaml" | "run_meta.json" | "stop_manifest.json"] => {
            Place::Harness
        }
        _ => Place::Nowhere,
    }
}

fn is_text(file: &str) -> bool {
    [".json", ".md"].iter().any(|end| file.ends_with(end))
}

/// The node that a path belongs to.
pub(crate) fn node_of(path: &RelPath) -> Option<NodeId> {
    let mut parts = path.as_str().split('/');
    (parts.next() == Some("nodes"))
        .then(|| parts.next()?.parse().ok())
        .flatten()
}

impl Content {
    /// Sorts everything that the ledger covers.
    pub(crate) fn of(layout: &RunLayout) -> Result<Self, PackageError> {
        let path = layout.ledger();
        let bytes = fs::read(&path).map_err(PackageError::io("read", &path))?;
        let ledger =
            verify_ledger(&bytes).map_err(|source| PackageError::Ledger { path, source })?;
        if !ledger.closed {
            return Err(PackageError::Open(layout.run_dir().to_owned()));
        }
        let mut content = Self::default();
        for path in ledger.registry.into_keys() {
            let set = match place(&path) {
                Place::Trajectory => &mut content.trajectory,
                Place::Prompts => &mut content.prompts,
                Place::Harness => &mut content.harness,
                Place::Answer => &mut content.answer,
                Place::Nowhere => continue,
            };
            set.insert(path);
        }
        content.harness.insert(vec_store::rel::ledger());
        Ok(content)
    }

    /// Writes archives and answer into `dir`.
    pub(crate) fn write(
        &self,
        layout: &RunLayout,
        dir: &Path,
        bytes_max: u64,
    ) -> Result<(), PackageError> {
        let run_dir = layout.run_dir();
        for (name, entries) in [
            ("trajectory.zip", &self.trajectory),
            ("prompts.zip", &self.prompts),
            ("harness.zip", &self.harness),
        ] {
            archive::write(&dir.join(name), run_dir, entries, bytes_max)?;
        }
        for path in &self.answer {
            let name = path.as_str().rsplit('/').next().unwrap_or_default();
            let target = dir.join(name);
            if target.exists() {
                return Err(PackageError::Twice(name.to_owned()));
            }
            let source = layout.at(path);
            fs::copy(&source, &target).map_err(PackageError::io("copy", &source))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> &'static str {
        match place(&path.parse().expect("path")) {
            Place::Trajectory => "trajectory",
            Place::Prompts => "prompts",
            Place::Harness => "harness",
            Place::Answer => "answer",
            Place::Nowhere => "nowhere",
        }
    }

    #[test]
    fn every_kind_of_file_has_its_place_and_board_data_has_none() {
        for (path, expected) in [
            ("nodes/3/trajectory/engineer/0/events.jsonl", "trajectory"),
            ("nodes/3/PLAN.json", "trajectory"),
            ("nodes/3/METHOD.md", "trajectory"),
            ("nodes/3/seed0/stdout", "trajectory"),
            ("nodes/3/seed0/main/pred.csv", "nowhere"),
            ("nodes/3/prompts/researcher.txt", "prompts"),
            ("code/prompts/analyst.md", "prompts"),
            ("code/bin/vec-scorer", "nowhere"),
            ("code/source.tar", "harness"),
            ("programs.git/objects/aa/bb", "harness"),
            ("logs/scorer.jsonl", "harness"),
            ("archive.sqlite", "harness"),
            ("config.lock.json", "harness"),
            ("final/diabetes.csv", "answer"),
            ("final/SELECTION.md", "answer"),
            ("views/main/train.csv", "nowhere"),
            ("inputs/board.yaml", "nowhere"),
            ("orphans/3/nodes/0/PLAN.json", "nowhere"),
        ] {
            assert_eq!(name(path), expected, "{path}");
        }
    }
}
