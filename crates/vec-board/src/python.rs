//! The Python of candidates: which one, what it is, and whether the sandbox's user can read it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use vec_types::Digest;

use crate::command::run;
use crate::error::{BoardError, EnvError};
use crate::tree::hash_file;

/// Least minor version.
const MINOR_MIN: u32 = 11;
/// The distribution's own Python, tried before PATH.
const SYSTEM: &str = "/usr/bin/python3";
/// Asking a Python what it is.
const ASK_LIMIT: Duration = Duration::from_secs(30);
/// What the sandbox always binds.
const ALWAYS_BOUND: &str = "/usr";

const QUESTION: &str = "\
import json, os, sys, sysconfig
print(json.dumps({
    'executable': os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable),
    'prefix': os.path.realpath(sys.base_prefix),
    'stdlib': os.path.realpath(sysconfig.get_path('stdlib')),
    'version': '.'.join(str(part) for part in sys.version_info[:3]),
    'minor': sys.version_info[1] if sys.version_info[0] == 3 else 0,
}))
";

/// A Python as it describes itself, links and shims resolved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Interpreter {
    /// The interpreter's file.
    pub(crate) executable: PathBuf,
    /// Directory that holds it and its library.
    pub(crate) prefix: PathBuf,
    stdlib: PathBuf,
    /// E.g. `3.11.2`.
    pub(crate) version: String,
    minor: u32,
}

impl Interpreter {
    /// The rule of `decisions.md`: the one given, else the system's if new enough, else the
    /// first on `PATH` that is.
    pub(crate) fn choose(given: Option<&Path>) -> Result<Self, EnvError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|dir| dir.join("python3"));
        let candidates: Vec<PathBuf> = match given {
            Some(given) => vec![given.to_owned()],
            None => [PathBuf::from(SYSTEM)].into_iter().chain(on_path).collect(),
        };
        Self::first_of(&candidates)
    }

    fn first_of(candidates: &[PathBuf]) -> Result<Self, EnvError> {
        let mut looked = Vec::new();
        for candidate in candidates {
            if !candidate.exists() {
                looked.push(format!("{} does not exist", candidate.display()));
                continue;
            }
            match Self::ask(candidate) {
                Ok(found) if found.minor >= MINOR_MIN => {
                    found.check_readable()?;
                    return Ok(found);
                }
                Ok(old) => looked.push(format!("{} is {}", candidate.display(), old.version)),
                Err(error) => looked.push(error.to_string()),
            }
        }
        Err(EnvError::NoPython {
            least: MINOR_MIN,
            looked: looked.join("; "),
        })
    }

    fn ask(program: &Path) -> Result<Self, EnvError> {
        let step = "ask a Python what it is";
        let mut command = Command::new(program);
        // Isolated: neither this environment nor a user's site changes the answer.
        command.args(["-I", "-B", "-c", QUESTION]);
        let answer = run(command, step, ASK_LIMIT)?;
        serde_json::from_str(&answer).map_err(|error| EnvError::Command {
            step,
            detail: format!("{} gave no answer: {error}", program.display()),
        })
    }

    /// sha256 of the interpreter's file.
    pub(crate) fn sha256(&self) -> Result<Digest, EnvError> {
        let (sha256, _) =
            hash_file(&self.executable).map_err(BoardError::io("read", &self.executable))?;
        Ok(sha256)
    }

    /// Read-only binds that the sandbox needs beside the system's.
    pub(crate) fn binds(&self) -> Vec<(PathBuf, PathBuf)> {
        if self.prefix.starts_with(ALWAYS_BOUND) {
            Vec::new()
        } else {
            vec![(self.prefix.clone(), self.prefix.clone())]
        }
    }

    // Started by root, the sandbox runs as a user of its own, so "others" must be able to read
    // the prefix and what is below it. Directories above it may be closed: the sandbox binds the
    // prefix itself. Started by a user, the sandbox runs as that user, who has just run this
    // Python.
    fn check_readable(&self) -> Result<(), EnvError> {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        if is_root {
            self.check_readable_by_others()
        } else {
            Ok(())
        }
    }

    fn check_readable_by_others(&self) -> Result<(), EnvError> {
        let parts = |path: &Path| {
            let below = path.strip_prefix(&self.prefix).unwrap_or(Path::new(""));
            let mut part = self.prefix.clone();
            let mut parts = vec![part.clone()];
            for name in below {
                part.push(name);
                parts.push(part.clone());
            }
            parts
        };
        for path in [parts(&self.executable), parts(&self.stdlib)].concat() {
            let meta = std::fs::metadata(&path).map_err(BoardError::io("look at", &path))?;
            let mode = meta.permissions().mode() & 0o7777;
            if mode & 0o005 != 0o005 {
                return Err(EnvError::Unreadable { path, mode });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("write");
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod");
        path
    }

    fn answer(dir: &Path, minor: u32) -> String {
        let dir = dir.display();
        format!(
            "echo '{{\"executable\": \"{dir}/bin/py\", \"prefix\": \"{dir}\", \"stdlib\": \
             \"{dir}/lib\", \"version\": \"3.{minor}.0\", \"minor\": {minor}}}'"
        )
    }

    #[test]
    fn the_first_that_is_new_enough_wins_and_the_rest_is_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = dir.path().canonicalize().expect("canonical");
        for sub in ["bin", "lib"] {
            std::fs::create_dir(root.join(sub)).expect("mkdir");
            std::fs::set_permissions(root.join(sub), Permissions::from_mode(0o755)).expect("chmod");
        }
        std::fs::set_permissions(&root, Permissions::from_mode(0o755)).expect("chmod");
        let good = script(&root, "good", &answer(&root, 12));
        script(&root.join("bin"), "py", "");
        let old = script(&root, "old", &answer(&root, 10));
        let broken = script(&root, "broken", "exit 1");
        let missing = root.join("missing");
        let all = [missing, broken, old, good];
        let found = Interpreter::first_of(&all).expect("found");
        assert_eq!(found.version, "3.12.0");
        let text = Interpreter::first_of(&all[..3])
            .expect_err("none")
            .to_string();
        assert!(text.contains("missing does not exist"), "{text}");
        assert!(
            text.contains("old is 3.10.0") && text.contains("--python"),
            "{text}"
        );

        assert_eq!(found.binds(), [(root.clone(), root.clone())]);
        found.check_readable_by_others().expect("readable");
        std::fs::set_permissions(root.join("lib"), Permissions::from_mode(0o750)).expect("chmod");
        let text = found
            .check_readable_by_others()
            .expect_err("closed")
            .to_string();
        assert!(
            text.starts_with(&format!("{}/lib cannot be read", root.display())),
            "{text}"
        );
    }
}
