//! RUN on the command line: a run id, searched in the roots, or the path of a run directory.

use std::path::{Path, PathBuf};

use anyhow::Result;
use vec_launcher::DataRoot;
use vec_types::RunId;

use crate::failure::Usage;

/// A run by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRef {
    /// Its id.
    pub(crate) id: RunId,
    /// Its directory, if found.
    pub(crate) dir: Option<PathBuf>,
}

impl RunRef {
    /// Reads RUN. An id needs not be found here: the launcher may know it.
    pub(crate) fn parse(text: &str, roots: &[PathBuf], data: &DataRoot) -> Result<Self> {
        if let Ok(id) = text.parse::<RunId>() {
            let mut dir = roots
                .iter()
                .map(|root| root.join(id.as_str()))
                .find(|dir| dir.is_dir());
            if dir.is_none() {
                dir = data.find_run(&id, None)?;
            }
            return Ok(Self { id, dir });
        }
        let path = Path::new(text);
        let not_a_run = || {
            Usage(format!(
                "{text:?} is neither a run id (YYYYMMDD-HHMMSS-<board>-<4 letters>) nor a run directory"
            ))
        };
        let dir = std::path::absolute(path).map_err(|_| not_a_run())?;
        let name = dir
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let id = name.parse().map_err(|_| not_a_run())?;
        if !dir.is_dir() {
            return Err(not_a_run().into());
        }
        Ok(Self { id, dir: Some(dir) })
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> Result<&Path> {
        self.dir.as_deref().ok_or_else(|| {
            anyhow::anyhow!(
                "run {} is in none of the known roots: pass --root, or the run directory itself",
                self.id
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "20261130-101010-diabetes-abcd";

    #[test]
    fn an_id_is_searched_and_a_path_is_taken() {
        let dir = tempfile::tempdir().expect("dir");
        let data = DataRoot::at(dir.path().join("data"));
        let roots = [dir.path().join("runs")];
        let missing = RunRef::parse(ID, &roots, &data).expect("an id");
        let error = missing.dir().expect_err("not there").to_string();
        assert!(error.contains(ID) && error.contains("--root"), "{error}");

        let path = roots[0].join(ID);
        std::fs::create_dir_all(&path).expect("run");
        let by_id = RunRef::parse(ID, &roots, &data).expect("id");
        let text = path.to_str().expect("text");
        assert_eq!(by_id, RunRef::parse(text, &[], &data).expect("path"));
        assert_eq!(by_id.dir().expect("there"), path);
        assert_eq!(
            by_id,
            RunRef::parse(&format!("{text}/"), &[], &data).expect("slash")
        );

        data.remember(&roots[0]).expect("known");
        assert_eq!(by_id, RunRef::parse(ID, &[], &data).expect("known root"));
    }

    #[test]
    fn anything_else_is_wrong_usage() {
        let dir = tempfile::tempdir().expect("dir");
        let data = DataRoot::at(dir.path().to_owned());
        for text in [
            "",
            "nonsense",
            "/",
            "/nowhere/20261130-101010-diabetes-abcd",
        ] {
            let error = RunRef::parse(text, &[], &data).expect_err(text);
            assert_eq!(
                crate::failure::exit_of(&error),
                vec_daemon::Exit::Usage,
                "{text:?}"
            );
        }
    }
}
