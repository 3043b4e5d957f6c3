//! Every path of a run (architecture §6), absolute through [`RunLayout`], relative through
//! [`rel`]. Pure: nothing here touches the disk.

pub mod rel;

use std::path::{Path, PathBuf};

use vec_types::{ExecName, NodeId, RelPath, RunId, ViewId};

use crate::StoreError;

/// Where everything of one run lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLayout {
    root: PathBuf,
    run: RunId,
    run_dir: PathBuf,
}

impl RunLayout {
    /// The layout of `run` below `root`.
    #[must_use]
    pub fn new(root: &Path, run: &RunId) -> Self {
        Self {
            root: root.to_owned(),
            run: run.clone(),
            run_dir: root.join(run.as_str()),
        }
    }

    /// The layout of an existing `<root>/<run id>`.
    ///
    /// # Errors
    /// [`StoreError::NotARunDir`] when the last component is not a run id.
    pub fn of_run_dir(run_dir: &Path) -> Result<Self, StoreError> {
        let refused = || StoreError::NotARunDir(run_dir.to_owned());
        let name = run_dir.file_name().and_then(|name| name.to_str());
        let run = name.ok_or_else(refused)?.parse().map_err(|_| refused())?;
        let root = match run_dir.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(refused()),
        };
        Ok(Self::new(root, &run))
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// The directory that holds runs.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The run directory.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// A path of the run directory.
    #[must_use]
    pub fn at(&self, path: &RelPath) -> PathBuf {
        path.under(&self.run_dir)
    }

    fn sub(&self, path: &str) -> PathBuf {
        self.run_dir.join(path)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.root.join(format!("{}.{suffix}", self.run))
    }

    /// The lock document.
    #[must_use]
    pub fn config_lock(&self) -> PathBuf {
        self.sub("config.lock.json")
    }

    /// The configuration as given (LCK-14).
    #[must_use]
    pub fn config_source(&self) -> PathBuf {
        self.sub("config_source.yaml")
    }

    /// Facts about the run that no decision rests on.
    #[must_use]
    pub fn run_meta(&self) -> PathBuf {
        self.sub("run_meta.json")
    }

    /// Why and how the run stopped (STP).
    #[must_use]
    pub fn stop_manifest(&self) -> PathBuf {
        self.sub("stop_manifest.json")
    }

    /// The read-only code snapshot.
    #[must_use]
    pub fn code(&self) -> PathBuf {
        self.sub("code")
    }

    /// A program of the code snapshot.
    #[must_use]
    pub fn code_bin(&self, name: &str) -> PathBuf {
        self.code().join("bin").join(name)
    }

    /// Pinned inputs.
    #[must_use]
    pub fn inputs(&self) -> PathBuf {
        self.sub("inputs")
    }

    /// All views.
    #[must_use]
    pub fn views(&self) -> PathBuf {
        self.sub("views")
    }

    /// One view.
    #[must_use]
    pub fn view(&self, view: &ViewId) -> PathBuf {
        self.views().join(view.as_str())
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.sub(ARCHIVE)
    }

    /// The repository of programs.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.sub(PROGRAMS)
    }

    /// A node's directory.
    #[must_use]
    pub fn node(&self, node: NodeId) -> PathBuf {
        self.at(&rel::node_dir(node))
    }

    /// An execution's directory.
    #[must_use]
    pub fn exec(&self, node: NodeId, exec: ExecName) -> PathBuf {
        self.at(&rel::exec_dir(node, exec))
    }

    /// Content-addressed artifacts.
    #[must_use]
    pub fn artifacts(&self) -> PathBuf {
        self.sub("artifacts")
    }

    /// The answer.
    #[must_use]
    pub fn final_dir(&self) -> PathBuf {
        self.sub("final")
    }

    /// Growing logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.sub(LOGS)
    }

    /// A service's evidence or tracing log.
    #[must_use]
    pub fn log(&self, service: &str) -> PathBuf {
        self.logs().join(format!("{service}.jsonl"))
    }

    /// What a service wrote to stderr.
    #[must_use]
    pub fn log_stderr(&self, service: &str) -> PathBuf {
        self.logs().join(format!("{service}.stderr"))
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.sub(LEDGER)
    }

    /// Scratch outside the ledger (LED-04), empty after close.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.sub(WORK)
    }

    /// What crashes left behind.
    #[must_use]
    pub fn orphans(&self) -> PathBuf {
        self.sub(ORPHANS)
    }

    /// The package, beside the run.
    #[must_use]
    pub fn package_dir(&self) -> PathBuf {
        self.beside("package")
    }

    /// Taint records, beside the run; absent = not tainted.
    #[must_use]
    pub fn taint(&self) -> PathBuf {
        self.beside("taint.json")
    }

    /// Refused resumes of a closed run, beside it.
    #[must_use]
    pub fn refused(&self) -> PathBuf {
        self.beside("refused.jsonl")
    }

    /// Scratch on the run's file system: large files are made here and renamed in.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.root.join(".spool").join(self.run.as_str())
    }

    /// The writer's lock, outside the evidence.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.spool().join("lock")
    }

    /// Where the version in force of a replaced file waits until the ledger knows the new one.
    /// After a crash it may still be here; recovery brings it back.
    #[must_use]
    pub fn undo_of(&self, path: &RelPath) -> PathBuf {
        path.under(&self.spool_undo())
    }

    pub(crate) fn spool_tmp(&self) -> PathBuf {
        self.spool().join("tmp")
    }

    pub(crate) fn spool_undo(&self) -> PathBuf {
        self.spool().join("undo")
    }
}

pub(crate) const ARCHIVE: &str = "archive.sqlite";
pub(crate) const PROGRAMS: &str = "programs.git";
pub(crate) const LEDGER: &str = "ledger.jsonl";
pub(crate) const LOGS: &str = "logs";
pub(crate) const WORK: &str = "work";
pub(crate) const ORPHANS: &str = "orphans";

/// Does an open run write this path without a ledger line? `work/` and the ledger itself always;
/// logs, the archive with its companions and programs.git until `close` registers them.
#[must_use]
pub fn is_exempt_while_open(path: &RelPath) -> bool {
    match path.top() {
        WORK | LOGS | PROGRAMS => path.as_str().contains('/'),
        top => top == LEDGER || top.starts_with(ARCHIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_dir_is_named_by_its_run() {
        let layout = RunLayout::of_run_dir(Path::new("/r/20260101-000000-toy-abcd")).expect("run");
        assert_eq!(layout.root(), Path::new("/r"));
        assert_eq!(
            layout.taint(),
            Path::new("/r/20260101-000000-toy-abcd.taint.json")
        );
        assert_eq!(
            layout.lock_file(),
            Path::new("/r/.spool/20260101-000000-toy-abcd/lock")
        );
        assert!(RunLayout::of_run_dir(Path::new("/r/toy")).is_err());
        assert!(RunLayout::of_run_dir(Path::new("/")).is_err());
    }

    #[test]
    fn only_growing_files_are_exempt() {
        for exempt in [
            "work/x/y",
            "logs/scorer.jsonl",
            "programs.git/HEAD",
            "archive.sqlite-wal",
            "archive.sqlite",
            "ledger.jsonl",
        ] {
            assert!(
                is_exempt_while_open(&exempt.parse().expect("path")),
                "{exempt}"
            );
        }
        for covered in ["work", "logs", "nodes/0/PLAN.json", "orphans/1/x", "code/a"] {
            assert!(
                !is_exempt_while_open(&covered.parse().expect("path")),
                "{covered}"
            );
        }
    }
}
