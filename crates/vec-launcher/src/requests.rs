//! Which launch a request id has led to: a repeated Launch returns the first one's run.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vec_types::RunId;

use crate::files::{FileError, read_json, write_json};

/// Requests that are remembered; the oldest are forgotten.
const REQUESTS_MAX: usize = 256;

/// Longest accepted request id in bytes.
const REQUEST_ID_LEN_MAX: usize = 128;

/// What a launch came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub run_dir: PathBuf,
    /// Reasons against submission; empty = submittable.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    request_id: String,
    launched: Launched,
}

/// `R/launcher/requests.json`.
#[derive(Debug)]
pub struct Requests {
    path: PathBuf,
    entries: VecDeque<Entry>,
}

impl Requests {
    /// Reads what an earlier launcher left.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let entries = match read_json(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => VecDeque::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            entries,
        })
    }

    /// The launch of an earlier request with this id.
    #[must_use]
    pub fn find(&self, request_id: &str) -> Option<&Launched> {
        self.entries
            .iter()
            .find(|entry| entry.request_id == request_id)
            .map(|entry| &entry.launched)
    }

    /// Remembers a launch before its reply goes out.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn remember(&mut self, request_id: String, launched: Launched) -> Result<(), FileError> {
        while self.entries.len() >= REQUESTS_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            request_id,
            launched,
        });
        write_json(&self.path, &self.entries)
    }

    /// Forgets a launch that came to nothing.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn forget(&mut self, request_id: &str) -> Result<(), FileError> {
        self.entries.retain(|entry| entry.request_id != request_id);
        write_json(&self.path, &self.entries)
    }
}

/// Is this a usable request id?
#[must_use]
pub fn is_request_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= REQUEST_ID_LEN_MAX
        && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(k: usize) -> Launched {
        Launched {
            run: "20261130-101010-diabetes-abcd".parse().expect("id"),
            run_dir: PathBuf::from(format!("/runs/{k}")),
            reasons: Vec::new(),
        }
    }

    #[test]
    fn a_repeat_finds_the_first_launch_also_after_a_restart() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("requests.json");
        let mut requests = Requests::open(&path).expect("new");
        assert_eq!(requests.find("a"), None);
        requests
            .remember("a".to_owned(), launched(1))
            .expect("kept");
        let again = Requests::open(&path).expect("read");
        assert_eq!(again.find("a"), Some(&launched(1)));
        requests.forget("a").expect("forgotten");
        assert_eq!(Requests::open(&path).expect("read").find("a"), None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let dir = tempfile::tempdir().expect("dir");
        let mut requests = Requests::open(&dir.path().join("requests.json")).expect("new");
        for k in 0..=REQUESTS_MAX {
            requests.remember(k.to_string(), launched(k)).expect("kept");
        }
        assert_eq!(requests.entries.len(), REQUESTS_MAX);
        assert_eq!(requests.find("0"), None);
        assert!(requests.find("1").is_some());
    }

    #[test]
    fn request_ids_are_bounded() {
        assert!(is_request_id(&"x".repeat(REQUEST_ID_LEN_MAX)));
        for bad in ["", "a b", "a\n", &"x".repeat(REQUEST_ID_LEN_MAX + 1)] {
            assert!(!is_request_id(bad), "{bad:?}");
        }
    }
}
