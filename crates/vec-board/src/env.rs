//! The candidates' Python environment: a venv of hashed requirements under the data root, or the
//! host's standard library (`decisions.md`, Python for candidates).
//!
//! `envs/<id>/`: `ENV.json` (identity), `files.json` (every file with mode, size, time, sha256),
//! `venv/` (bound at `/env`). The id is made of the lock's and the interpreter's sha256, so the
//! same wish finds the same environment. No write bits: a changed file is a fault.

mod install;
mod record;

use std::path::{Path, PathBuf};

use vec_config::PythonFacts;
use vec_types::{Digest, ManifestEntry, canonical_json, manifest_hash, pretty_json};

use crate::error::{BoardError, EnvError};
use crate::publish::{Staged, make_dir, write_file};
use crate::python::Interpreter;
use crate::tree::hash_file;
use record::{changed, check_times, file_facts, read_json};

pub use record::{EnvRecord, verify_env};

/// Where a venv stands inside the sandbox.
const INSIDE: &str = "/env";
const RECORD: &str = "ENV.json";
const FILES: &str = "files.json";
const VENV: &str = "venv";

/// A Python as a sandbox uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonEnv {
    /// Interpreter path inside the sandbox.
    pub argv0: PathBuf,
    /// Read-only binds beside the system's: host path, path inside.
    pub ro_binds: Vec<(PathBuf, PathBuf)>,
    /// Identity, for the lock and the evaluation spec.
    pub facts: PythonFacts,
    /// `envs/<id>`; absent for the host's standard library.
    pub dir: Option<PathBuf>,
}

/// The standard library of the Python that the rule chooses.
///
/// # Errors
/// [`EnvError::NoPython`], [`EnvError::Unreadable`].
pub fn stdlib_env(python: Option<&Path>) -> Result<PythonEnv, EnvError> {
    let interpreter = Interpreter::choose(python)?;
    Ok(PythonEnv {
        ro_binds: interpreter.binds(),
        facts: PythonFacts {
            id: "stdlib".to_owned(),
            interpreter_sha256: interpreter.sha256()?,
            version: interpreter.version,
            manifest_hash: None,
            lock_sha256: None,
            argv0: interpreter.executable.clone(),
        },
        argv0: interpreter.executable,
        dir: None,
    })
}

/// Builds the environment of `lock` under `data_root`, or opens it when it is there already.
/// Downloads; called by people and set-up steps, never by a daemon.
///
/// # Errors
/// [`EnvError`]; nothing is left half-made.
pub fn build_env(
    lock: &Path,
    data_root: &Path,
    python: Option<&Path>,
) -> Result<PythonEnv, EnvError> {
    let wish = Wish::new(lock, data_root, python)?;
    if wish.place.exists() {
        return wish.open();
    }
    make_dir(&data_root.join("envs"), 0o755)?;
    let staged = Staged::start(&wish.place, 0o755)?;
    let venv = staged.path().join(VENV);
    install::install(&venv, lock, &wish.interpreter)?;
    install::seal(&venv)?;
    let files = file_facts(&venv)?;
    let encode = |path: PathBuf| move |source| BoardError::Encode { path, source };
    let files_json = canonical_json(&files).map_err(encode(FILES.into()))?;
    let entries = files.iter().map(|(path, facts)| ManifestEntry {
        path: path.clone(),
        mode: facts.mode,
        sha256: facts.sha256,
        size: facts.size,
    });
    let record = EnvRecord {
        schema: 1,
        id: wish.id.clone(),
        lock_sha256: wish.lock_sha256,
        interpreter: wish.interpreter.executable.clone(),
        interpreter_sha256: wish.interpreter_sha256,
        version: wish.interpreter.version.clone(),
        manifest_hash: manifest_hash(&entries.collect::<Vec<_>>()),
        files_sha256: Digest::of(&files_json),
        files: files.len(),
    };
    let record_json = pretty_json(&record).map_err(encode(RECORD.into()))?;
    write_file(&staged.path().join(FILES), &files_json, 0o444)?;
    write_file(&staged.path().join(RECORD), &record_json, 0o444)?;
    staged.publish()?;
    wish.open()
}

/// Opens the environment of `lock` and checks every file's mode, size and time. Without `python`,
/// an environment that was built with another Python than the rule chooses is found as well.
///
/// # Errors
/// [`EnvError::NotBuilt`] when there is none, [`EnvError::Changed`] when a file is not as built.
pub fn open_env(
    lock: &Path,
    data_root: &Path,
    python: Option<&Path>,
) -> Result<PythonEnv, EnvError> {
    let wish = Wish::new(lock, data_root, python)?;
    if python.is_none()
        && !wish.place.exists()
        && let Some(other) = wish.interpreter_of_another(data_root)
    {
        return Wish::new(lock, data_root, Some(&other))?.open();
    }
    wish.open()
}

// What somebody wants: a lock and an interpreter, and where that environment stands.
struct Wish {
    lock: PathBuf,
    lock_sha256: Digest,
    interpreter: Interpreter,
    interpreter_sha256: Digest,
    id: String,
    place: PathBuf,
}

impl Wish {
    fn new(lock: &Path, data_root: &Path, python: Option<&Path>) -> Result<Self, EnvError> {
        let (lock_sha256, _) = hash_file(lock).map_err(BoardError::io("read", lock))?;
        let interpreter = Interpreter::choose(python)?;
        let interpreter_sha256 = interpreter.sha256()?;
        let key = Digest::of(format!("{lock_sha256}\n{interpreter_sha256}\n").as_bytes());
        let stem = lock.file_stem().unwrap_or_default().to_string_lossy();
        let id = format!("{stem}-{}", key.short(16));
        Ok(Self {
            place: data_root.join("envs").join(&id),
            lock: lock.to_owned(),
            lock_sha256,
            interpreter,
            interpreter_sha256,
            id,
        })
    }

    // The Python of the first environment that was built from the same lock.
    fn interpreter_of_another(&self, data_root: &Path) -> Option<PathBuf> {
        let entries = std::fs::read_dir(data_root.join("envs")).ok()?;
        let mut records: Vec<EnvRecord> = entries
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .filter_map(|entry| read_json(&entry.path().join(RECORD)).ok())
            .filter(|record: &EnvRecord| record.lock_sha256 == self.lock_sha256)
            .filter(|record| record.interpreter.exists())
            .collect();
        records.sort_by(|a, b| a.id.cmp(&b.id));
        Some(records.into_iter().next()?.interpreter)
    }

    fn open(&self) -> Result<PythonEnv, EnvError> {
        if !self.place.join(RECORD).exists() {
            return Err(EnvError::NotBuilt {
                path: self.place.clone(),
                lock: self.lock.clone(),
            });
        }
        let record = check_times(&self.place)?;
        if record.id != self.id || record.interpreter_sha256 != self.interpreter_sha256 {
            return Err(changed(
                &self.place,
                self.place.join(RECORD),
                "another environment",
            ));
        }
        let argv0 = Path::new(INSIDE).join("bin/python3");
        let mut ro_binds = vec![(self.place.join(VENV), PathBuf::from(INSIDE))];
        ro_binds.extend(self.interpreter.binds());
        Ok(PythonEnv {
            ro_binds,
            facts: PythonFacts {
                id: record.id,
                version: record.version,
                interpreter_sha256: record.interpreter_sha256,
                manifest_hash: Some(record.manifest_hash),
                lock_sha256: Some(record.lock_sha256),
                argv0: argv0.clone(),
            },
            argv0,
            dir: Some(self.place.clone()),
        })
    }
}
