//! `solution/ARTIFACTS.json`: large or trained files that a program declares (CTR-03, ENG-10).
//!
//! A list of `{"path", "sha256", "per_view"}`. `per_view: true` (then no `sha256`): the program
//! trains the file at run time, once per view. Otherwise `sha256` names a fixed file of the run's
//! artifact store.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use vec_types::{Digest, RelPath};

use crate::ExecError;

/// Name of the declaration below `solution/`.
pub const ARTIFACTS_FILE: &str = "ARTIFACTS.json";
/// Largest weight file (PVW-05).
pub const WEIGHT_BYTES_MAX: u64 = 8_000_000_000;
/// Longest declaration.
pub(crate) const DECLARATION_BYTES_MAX: u64 = 64 << 10;
/// Most entries.
const ENTRIES_MAX: usize = 64;

/// A declared file with fixed content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedArtifact {
    /// Below `solution/`.
    pub path: RelPath,
    /// Of its content.
    pub sha256: Digest,
}

/// Everything that a program declares; paths are distinct, in sub-directories, and none is a
/// directory of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// Trained by the program, once per view; sorted.
    pub per_view: Vec<RelPath>,
    /// Fixed content; sorted by path.
    pub fixed: Vec<FixedArtifact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    per_view: bool,
}

impl Artifacts {
    /// Reads the declaration of a program's directory; no file, or an empty list = nothing.
    ///
    /// # Errors
    /// [`ExecError::Artifacts`] with the first thing that is wrong; [`ExecError::Io`].
    pub fn read(solution: &Path) -> Result<Self, ExecError> {
        match read_declaration(&solution.join(ARTIFACTS_FILE))? {
            Some(bytes) => Self::parse(&bytes),
            None => Ok(Self::default()),
        }
    }

    /// Parses a declaration.
    ///
    /// # Errors
    /// [`ExecError::Artifacts`] with the first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, ExecError> {
        let bad = |what: String| ExecError::Artifacts(what);
        if bytes.len() as u64 > DECLARATION_BYTES_MAX {
            return Err(bad(format!("is longer than {DECLARATION_BYTES_MAX} bytes")));
        }
        // Objects: serde would take a list for one, too.
        let objects: Result<Vec<Map<String, Value>>, _> = serde_json::from_slice(bytes);
        let entries = objects.and_then(|objects| {
            let entries = objects.into_iter().map(Value::Object);
            entries.map(serde_json::from_value).collect()
        });
        let entries: Vec<Entry> = entries.map_err(|error: serde_json::Error| {
            bad(format!(
                "is not a list of {{\"path\", \"sha256\", \"per_view\"}}: {error}"
            ))
        })?;
        if entries.len() > ENTRIES_MAX {
            let count = entries.len();
            return Err(bad(format!(
                "declares {count} files; {ENTRIES_MAX} at most"
            )));
        }
        let mut artifacts = Self::default();
        for entry in entries {
            artifacts.take(entry)?;
        }
        artifacts.per_view.sort();
        artifacts.fixed.sort_by(|a, b| a.path.cmp(&b.path));
        artifacts.check_paths()?;
        Ok(artifacts)
    }

    /// Does the program declare nothing?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.per_view.is_empty() && self.fixed.is_empty()
    }

    /// Every declared path.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.per_view
            .iter()
            .chain(self.fixed.iter().map(|fixed| &fixed.path))
    }

    fn take(&mut self, entry: Entry) -> Result<(), ExecError> {
        let shown: String = entry.path.chars().take(80).collect();
        let bad = |what: &str| Err(ExecError::Artifacts(format!("{shown:?} {what}")));
        let Ok(path) = entry.path.parse::<RelPath>() else {
            return bad("is not a path below solution/");
        };
        if !path.as_str().contains('/') {
            return bad("must lie in a sub-directory of solution/, e.g. weights/model.bin");
        }
        let odd = |part: &str| part.starts_with(".git") || part == "__pycache__";
        if path.as_str().to_ascii_lowercase().split('/').any(odd) {
            return bad("lies where nothing of a program is kept");
        }
        match (entry.per_view, entry.sha256) {
            (true, None) => self.per_view.push(path),
            (true, Some(_)) => {
                return bad("is per_view, so it cannot have a sha256: leave it null");
            }
            (false, None) => return bad("has neither a sha256 nor per_view: true"),
            (false, Some(text)) => match text.parse() {
                Ok(sha256) => self.fixed.push(FixedArtifact { path, sha256 }),
                Err(_) => return bad("has a sha256 that is not 64 lower-case hex digits"),
            },
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), ExecError> {
        let mut seen = BTreeSet::new();
        for path in self.paths() {
            if !seen.insert(path.as_str()) {
                return Err(ExecError::Artifacts(format!(
                    "\"{path}\" stands there twice"
                )));
            }
        }
        let inside = |path: &str| {
            let mut end = path.len();
            while let Some(at) = path[..end].rfind('/') {
                if seen.contains(&path[..at]) {
                    return true;
                }
                end = at;
            }
            false
        };
        match seen.iter().find(|path| inside(path)) {
            Some(path) => Err(ExecError::Artifacts(format!(
                "\"{path}\" lies below another declared file"
            ))),
            None => Ok(()),
        }
    }
}

/// A small declaration of a program's directory; a link is refused.
pub(crate) fn read_declaration(path: &Path) -> Result<Option<Vec<u8>>, ExecError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bad = |what: &str| {
        if name == ARTIFACTS_FILE {
            ExecError::Artifacts(what.to_owned())
        } else {
            ExecError::Execution(what.to_owned())
        }
    };
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ExecError::io("look at", path)(error)),
    };
    if !meta.is_file() {
        return Err(bad("is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(DECLARATION_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(ExecError::io("read", path))?;
    if bytes.len() as u64 > DECLARATION_BYTES_MAX {
        return Err(bad("is longer than 65536 bytes"));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn good_declarations() {
        let text = format!(
            r#"[{{"path":"w/b.bin","sha256":null,"per_view":true}},
                {{"path":"w/a.bin","per_view":true}},
                {{"path":"fixed/x.npz","sha256":"{SHA}"}}]"#
        );
        let artifacts = Artifacts::parse(text.as_bytes()).expect("good");
        let names: Vec<&str> = artifacts.paths().map(RelPath::as_str).collect();
        assert_eq!(names, ["w/a.bin", "w/b.bin", "fixed/x.npz"]);
        assert!(Artifacts::parse(b"[]").expect("empty").is_empty());
    }

    #[test]
    fn bad_declarations_are_refused_with_one_reason() {
        let many: Vec<String> = (0..65)
            .map(|k| format!(r#"{{"path":"w/{k}","per_view":true}}"#))
            .collect();
        let many = format!("[{}]", many.join(","));
        let one = |path: &str| format!(r#"[{{"path":"{path}","per_view":true}}]"#);
        for (text, reason) in [
            ("{}".to_owned(), "not a list"),
            ("[".to_owned(), "not a list"),
            (r#"[["w/a",null,true]]"#.to_owned(), "not a list"),
            (
                r#"[{"path":"w/a","perview":true}]"#.to_owned(),
                "not a list",
            ),
            (many, "65 files"),
            (one("model.pt"), "sub-directory"),
            (one("../w/a"), "not a path"),
            (one("w/../a"), "not a path"),
            (one("/w/a"), "not a path"),
            (one("w//a"), "not a path"),
            (one("w/\\u0000a"), "not a path"),
            (one(".git/a"), "nothing of a program"),
            (one("w/.GITignore"), "nothing of a program"),
            (
                format!(r#"[{{"path":"w/a","per_view":true,"sha256":"{SHA}"}}]"#),
                "null",
            ),
            (r#"[{"path":"w/a"}]"#.to_owned(), "neither"),
            (r#"[{"path":"w/a","sha256":"AB"}]"#.to_owned(), "64"),
            (
                format!(r#"[{{"path":"w/a","per_view":true}},{{"path":"w/a","sha256":"{SHA}"}}]"#),
                "twice",
            ),
            (
                r#"[{"path":"w/a","per_view":true},{"path":"w/a/b/c","per_view":true}]"#.to_owned(),
                "below another",
            ),
            (" ".repeat(65 << 10), "longer"),
        ] {
            let error = Artifacts::parse(text.as_bytes()).expect_err(reason);
            let said = error.to_string();
            assert!(said.contains(reason) && error.is_candidates(), "{said}");
            assert!(said.starts_with("ARTIFACTS.json: "), "{said}");
        }
    }

    #[test]
    fn a_link_or_directory_is_no_declaration() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert_eq!(
            Artifacts::read(dir.path()).expect("none"),
            Artifacts::default()
        );
        let path = dir.path().join(ARTIFACTS_FILE);
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("link");
        let error = Artifacts::read(dir.path()).expect_err("a link");
        assert!(error.to_string().contains("regular"), "{error}");
        fs::remove_file(&path).expect("rm");
        fs::write(&path, vec![b' '; 70_000]).expect("write");
        let error = Artifacts::read(dir.path()).expect_err("long");
        assert!(error.to_string().contains("longer"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(artifacts) = Artifacts::parse(&bytes) {
                prop_assert!(artifacts.paths().all(|path| path.as_str().contains('/')));
            }
        }

        #[test]
        fn any_path_is_inside_a_sub_directory_or_refused(path in "[a-z./]{1,12}") {
            let text = format!(r#"[{{"path":"{path}","per_view":true}}]"#);
            if let Ok(artifacts) = Artifacts::parse(text.as_bytes()) {
                let parts: Vec<&str> = artifacts.per_view[0].as_str().split('/').collect();
                prop_assert!(parts.len() >= 2 && !parts.contains(&"..") && !parts.contains(&""));
            }
        }
    }
}
