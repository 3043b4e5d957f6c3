//! A session's surroundings: the brief as the scripted Engineer reads it, its work directory, its
//! event stream.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use vec_types::{NodeId, Plan, ViewId};

use crate::EngineerError;
use crate::deal::Operator;

/// Longest accepted brief in bytes.
const BRIEF_BYTES_MAX: u64 = 16 << 20;

/// What is read of BRIEF.json; other keys are for real agents.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Brief {
    pub(crate) node: NodeId,
    pub(crate) operator: Operator,
    pub(crate) views: Vec<View>,
    pub(crate) python: String,
    pub(crate) tools: Tools,
    pub(crate) score_quota: u32,
    pub(crate) playbook: Book,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct View {
    pub(crate) view: ViewId,
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) limits: Limits,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Limits {
    pub(crate) time_limit_s: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tools {
    pub(crate) score: String,
    pub(crate) check: String,
}

/// Where the playbook is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Book {
    pub(crate) file: PathBuf,
    pub(crate) search_seed: u32,
    pub(crate) trials: u32,
}

/// Reads a JSON file of the brief.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    folder: &Path,
    name: &str,
) -> Result<T, EngineerError> {
    let path = folder.join(name);
    let read = || {
        let bytes = std::fs::metadata(&path)?.len();
        if bytes > BRIEF_BYTES_MAX {
            let what = format!("{bytes} bytes; at most {BRIEF_BYTES_MAX} are accepted");
            return Err(std::io::Error::other(what));
        }
        std::fs::read(&path)
    };
    let bytes = read().map_err(|source| EngineerError::Read {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&bytes).map_err(|error| EngineerError::Brief {
        path,
        problem: error.to_string(),
    })
}

/// The work directory and the event stream.
pub(crate) struct Session<'a> {
    pub(crate) work: &'a Path,
    pub(crate) events: &'a mut dyn Write,
}

impl Session<'_> {
    /// Writes one event line. Events carry no time: the receiver stamps them.
    pub(crate) fn emit(&mut self, event: &Value) -> Result<(), EngineerError> {
        let write = |events: &mut dyn Write| {
            writeln!(events, "{event}")?;
            events.flush()
        };
        write(self.events).map_err(EngineerError::Events)
    }

    pub(crate) fn say(&mut self, text: &str) -> Result<(), EngineerError> {
        self.emit(&json!({"type": "message", "text": text}))
    }

    pub(crate) fn call(&mut self, tool: &str, args: &[String]) -> Result<(), EngineerError> {
        self.emit(&json!({"type": "tool_call", "tool": tool, "args": args}))
    }

    pub(crate) fn result(
        &mut self,
        tool: &str,
        exit: Option<i32>,
        output: &str,
    ) -> Result<(), EngineerError> {
        self.emit(&json!({"type": "tool_result", "tool": tool, "exit": exit, "output": output}))
    }

    /// Path of a file of `solution/`.
    pub(crate) fn solution(&self, name: &str) -> PathBuf {
        self.work.join("solution").join(name)
    }

    /// A file of `solution/`; `None` when it is not there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, EngineerError> {
        let path = self.solution(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(EngineerError::Read { path, source }),
        }
    }

    /// Writes a file of `solution/`.
    pub(crate) fn write(&mut self, name: &str, text: &str) -> Result<(), EngineerError> {
        let path = self.solution(name);
        let write = || {
            std::fs::create_dir_all(self.work.join("solution"))?;
            std::fs::write(&path, text)
        };
        write().map_err(|source| EngineerError::Write {
            path: path.clone(),
            source,
        })?;
        let (path, bytes) = (format!("solution/{name}"), text.len());
        self.emit(&json!({"type": "edit", "path": path, "bytes": bytes}))
    }

    /// Removes a directory of `solution/` that may not be there: weights of another setting or
    /// view would be used instead of being trained.
    pub(crate) fn forget(&mut self, dir: &str) -> Result<(), EngineerError> {
        let path = self.solution(dir);
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(EngineerError::Write { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Removes a file of `solution/`.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), EngineerError> {
        let path = self.solution(name);
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(EngineerError::Write { path, source }),
        }
        self.call("rm", &[format!("solution/{name}")])
    }
}

/// The plan and the brief.
pub(crate) fn read_brief(folder: &Path) -> Result<(Brief, Plan), EngineerError> {
    Ok((
        read_json(folder, "BRIEF.json")?,
        read_json(folder, "PLAN.json")?,
    ))
}
