//! `R/r/<run8>/run.json`: what a restarted launcher must know about a run. Everything else is in
//! the run directory. Gone after a reboot, as the run's processes are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_types::RunId;

use crate::files::{FileError, read_json, write_json};
use crate::restart::RestartHistory;
use crate::service::Service;

/// How far the launcher has come with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// The run directory is being made; found by a restarted launcher, it is removed.
    Creating,
    /// Its daemons are meant to run.
    Running,
}

/// `run.json`, version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// 1; fields are only ever added.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub run_dir: PathBuf,
    /// The data root that it was launched with.
    pub data_root: PathBuf,
    /// How far it is.
    pub stage: RunStage,
    /// Number of the next start of each daemon.
    pub starts: BTreeMap<Service, u32>,
    /// When each daemon was restarted.
    pub restarts: BTreeMap<Service, RestartHistory>,
}

impl RunRecord {
    /// A record of a run that is being made.
    #[must_use]
    pub fn new(run: RunId, run_dir: PathBuf, data_root: PathBuf) -> Self {
        Self {
            version: 1,
            run,
            run_dir,
            data_root,
            stage: RunStage::Creating,
            starts: BTreeMap::new(),
            restarts: BTreeMap::new(),
        }
    }

    /// Number of this start of a daemon, from 0; the next one gets the next number.
    pub fn take_start(&mut self, service: Service) -> u32 {
        let next = self.starts.entry(service).or_insert(0);
        let this = *next;
        *next = next.saturating_add(1);
        this
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        read_json(path)
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        write_json(path, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_count_up_and_survive() {
        let dir = tempfile::tempdir().expect("dir");
        let run = "20261130-101010-diabetes-abcd".parse().expect("id");
        let mut record = RunRecord::new(run, "/runs/x".into(), "/data".into());
        assert_eq!(record.take_start(Service::Controller), 0);
        assert_eq!(record.take_start(Service::Controller), 1);
        assert_eq!(record.take_start(Service::Scorer), 0);
        let path = dir.path().join("run.json");
        record.write(&path).expect("written");
        let mut read = RunRecord::read(&path).expect("read");
        assert_eq!(read, record);
        assert_eq!(read.take_start(Service::Controller), 2);
    }
}
