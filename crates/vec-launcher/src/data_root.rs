//! What the launcher keeps below the data root D: the known roots of runs, and the names of
//! everything that others put there.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, RunId};

use crate::files::{FileError, read_json, write_json};

/// Most roots that are remembered; the oldest by name are kept.
const ROOTS_MAX: usize = 256;

/// D.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRoot(PathBuf);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Roots {
    roots: BTreeSet<PathBuf>,
}

impl DataRoot {
    /// D at `path`.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// D itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The hidden truth of a board: `truth/<board>`.
    #[must_use]
    pub fn truth(&self, board: &BoardId) -> PathBuf {
        self.0.join("truth").join(board.file_name())
    }

    /// Cached preflight results.
    #[must_use]
    pub fn preflight(&self) -> PathBuf {
        self.0.join("preflight")
    }

    fn roots_file(&self) -> PathBuf {
        self.0.join("roots.json")
    }

    /// Known roots, sorted; empty if none was ever used.
    ///
    /// # Errors
    /// [`FileError`] when `roots.json` cannot be read.
    pub fn roots(&self) -> Result<Vec<PathBuf>, FileError> {
        match read_json::<Roots>(&self.roots_file()) {
            Ok(found) => Ok(found.roots.into_iter().collect()),
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Remembers a root.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn remember(&self, root: &Path) -> Result<(), FileError> {
        let mut roots: BTreeSet<PathBuf> = self.roots()?.into_iter().collect();
        if roots.len() >= ROOTS_MAX || !roots.insert(root.to_owned()) {
            return Ok(());
        }
        write_json(&self.roots_file(), &Roots { roots })
    }

    /// The directory of a run, searched in `first` and then in the known roots.
    ///
    /// # Errors
    /// [`FileError`] when `roots.json` cannot be read.
    pub fn find_run(
        &self,
        run: &RunId,
        first: Option<&Path>,
    ) -> Result<Option<PathBuf>, FileError> {
        let known = self.roots()?;
        let mut all = first.into_iter().map(Path::to_owned).chain(known);
        Ok(all.find_map(|root| {
            let dir = root.join(run.as_str());
            dir.is_dir().then_some(dir)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_remembered_once_and_runs_found_in_them() {
        let dir = tempfile::tempdir().expect("dir");
        let data = DataRoot::at(dir.path().join("data"));
        assert!(data.roots().expect("none").is_empty());
        let root = dir.path().join("runs");
        for _ in 0..2 {
            data.remember(&root).expect("remembered");
        }
        assert_eq!(data.roots().expect("one"), std::slice::from_ref(&root));

        let run: RunId = "20261130-101010-diabetes-abcd".parse().expect("id");
        assert_eq!(data.find_run(&run, None).expect("search"), None);
        std::fs::create_dir_all(root.join(run.as_str())).expect("run");
        assert_eq!(
            data.find_run(&run, None).expect("search"),
            Some(root.join(run.as_str()))
        );
    }

    #[test]
    fn no_more_roots_than_the_limit() {
        let dir = tempfile::tempdir().expect("dir");
        let data = DataRoot::at(dir.path().to_owned());
        let roots = (0..ROOTS_MAX)
            .map(|k| PathBuf::from(format!("/r{k}")))
            .collect();
        write_json(&data.roots_file(), &Roots { roots }).expect("written");
        data.remember(Path::new("/one-more")).expect("ignored");
        assert_eq!(data.roots().expect("roots").len(), ROOTS_MAX);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().expect("dir");
        let data = DataRoot::at(dir.path().to_owned());
        std::fs::write(data.roots_file(), "{").expect("written");
        let error = data.roots().expect_err("damaged");
        assert!(error.to_string().contains("roots.json"), "{error}");
    }
}
