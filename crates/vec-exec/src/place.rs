//! A checked-out program before its run: registered weights put in their place, or the places of
//! weights made writable; and the weights taken out afterwards (PVW-03, PVW-04).
//!
//! `/solution` is read-only inside. The sub-directory of a weight that is to be trained becomes a
//! link into the execution's work directory, whose beginning is a private copy of what the
//! sub-directory holds; nothing of the store can be reached through it.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use vec_sandbox::collect::CollectError;
use vec_store::RunLayout;
use vec_types::{Digest, RelPath};

use crate::weights::{artifact_path, verify};
use crate::{ExecError, FixedArtifact, Index, WEIGHT_BYTES_MAX, WeightFile, Weights};

/// Directory of the weights in the work directory.
const WEIGHTS_DIR: &str = ".weights";

/// Puts verified registered weights at their paths, read-only (PVW-03).
///
/// # Errors
/// [`ExecError::Damaged`]; [`ExecError::Io`].
pub fn place_registered(
    solution: &Path,
    index: &Index,
    layout: &RunLayout,
) -> Result<(), ExecError> {
    for file in &index.files {
        let source = artifact_path(layout, file.sha256);
        put(solution, &file.path, &source)?;
        // The name in the store and the one in place are one file, or the copy is checked itself.
        verify(&file.path.under(solution), Some(file.bytes), file.sha256).map_err(|error| {
            match error {
                ExecError::Damaged { what, .. } => ExecError::damaged(&source, what),
                other => other,
            }
        })?;
    }
    Ok(())
}

/// Puts declared fixed artifacts at their paths, unless the program brings them itself (ENG-10).
///
/// # Errors
/// [`ExecError::Artifacts`] for content that nobody ever stored; [`ExecError::Damaged`] for stored
/// content that is not as it was; [`ExecError::Io`].
pub fn place_fixed(
    solution: &Path,
    fixed: &[FixedArtifact],
    weights: &Weights,
) -> Result<(), ExecError> {
    for artifact in fixed {
        let at = artifact.path.under(solution);
        if verify(&at, None, artifact.sha256).is_ok() {
            continue;
        }
        if !weights.has_artifact(artifact.sha256) {
            let what = format!(
                "\"{}\": no file with its sha256 was ever stored",
                artifact.path
            );
            return Err(ExecError::Artifacts(what));
        }
        let source = artifact_path(weights.layout(), artifact.sha256);
        put(solution, &artifact.path, &source)?;
        verify(&at, None, artifact.sha256)?;
    }
    Ok(())
}

/// Puts private, writable copies of stored fixed artifacts at their paths, for a session that may
/// change them. What was never stored is left out.
///
/// # Errors
/// [`ExecError::Damaged`]; [`ExecError::Io`].
pub fn place_copies(
    solution: &Path,
    fixed: &[FixedArtifact],
    weights: &Weights,
) -> Result<(), ExecError> {
    for artifact in fixed {
        let (at, sha256) = (artifact.path.under(solution), artifact.sha256);
        if !weights.has_artifact(sha256) || at.symlink_metadata().is_ok() {
            continue;
        }
        let source = artifact_path(weights.layout(), sha256);
        make_parents(solution, &artifact.path)?;
        fs::copy(&source, &at).map_err(ExecError::io("copy", &source))?;
        fs::set_permissions(&at, Permissions::from_mode(0o644))
            .map_err(ExecError::io("chmod", &at))?;
        verify(&at, None, sha256)?;
    }
    Ok(())
}

fn put(solution: &Path, path: &RelPath, source: &Path) -> Result<(), ExecError> {
    let at = path.under(solution);
    if source.symlink_metadata().is_err() {
        return Err(ExecError::damaged(source, "is missing"));
    }
    make_parents(solution, path)?;
    remove_file(&at)?;
    if fs::hard_link(source, &at).is_ok() {
        return Ok(());
    }
    // Another file system, or a file with too many names.
    fs::copy(source, &at).map_err(ExecError::io("copy", source))?;
    fs::set_permissions(&at, Permissions::from_mode(0o444)).map_err(ExecError::io("chmod", &at))
}

// Directories of a checkout, open for the payload's user. A file or link in the way is refused.
fn make_parents(solution: &Path, path: &RelPath) -> Result<(), ExecError> {
    let mut dir = solution.to_owned();
    let mut parts: Vec<&str> = path.as_str().split('/').collect();
    parts.pop();
    for part in parts {
        dir.push(part);
        match dir.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                let what = format!("\"{path}\": {part} is not a directory in the program");
                return Err(ExecError::Artifacts(what));
            }
            Err(_) => fs::create_dir(&dir)
                .and_then(|()| fs::set_permissions(&dir, Permissions::from_mode(0o755)))
                .map_err(ExecError::io("make", &dir))?,
        }
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<(), ExecError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ExecError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Where a program will write its declared weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Training {
    /// Declared path and the same file below the work directory.
    places: Vec<(RelPath, RelPath)>,
}

/// A weight taken out of the work directory, not yet registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// What it is.
    pub weight: WeightFile,
    /// Where it lies in the run's spool.
    pub at: PathBuf,
}

/// Makes the sub-directories of `declared` writable: their content moves to `fill` (what the work
/// directory starts with) and links into `work` (its path inside) take their place. A declared
/// file that lies there already is left out: it is trained anew.
///
/// # Errors
/// [`ExecError::Artifacts`] where a sub-directory cannot be one; [`ExecError::Io`].
pub fn prepare_training(
    solution: &Path,
    fill: &Path,
    work: &Path,
    declared: &[RelPath],
) -> Result<Training, ExecError> {
    let tops = tops(declared);
    let mut places = Vec::with_capacity(declared.len());
    for (top, number) in &tops {
        let name = format!("{WEIGHTS_DIR}/{number}");
        let (from, to) = (solution.join(top), fill.join(&name));
        make_open_dir(&fill.join(WEIGHTS_DIR))?;
        make_open_dir(&to)?;
        for path in declared {
            if let Some(rest) = path.as_str().strip_prefix(&format!("{top}/")) {
                make_parents(solution, path)?;
                remove_file(&path.under(solution))?;
                let inside = format!("{name}/{rest}")
                    .parse()
                    .map_err(|_| ExecError::Artifacts(format!("\"{path}\" is too long a path")))?;
                places.push((path.clone(), inside));
            }
        }
        copy_dir(&from, &to)?;
        fs::remove_dir_all(&from).map_err(ExecError::io("remove", &from))?;
        symlink(work.join(&name), &from).map_err(ExecError::io("link", &from))?;
    }
    places.sort();
    Ok(Training { places })
}

// The outermost sub-directories, numbered: `a/b` is within `a`.
fn tops(declared: &[RelPath]) -> BTreeMap<String, usize> {
    let mut dirs: Vec<String> = declared
        .iter()
        .filter_map(|path| Some(path.as_str().rsplit_once('/')?.0.to_owned()))
        .collect();
    dirs.sort();
    dirs.dedup();
    let within = |dir: &String| {
        dirs.iter()
            .any(|other| dir.starts_with(&format!("{other}/")))
    };
    let outer = dirs.iter().filter(|dir| !within(dir)).cloned();
    outer.zip(0..).collect()
}

fn make_open_dir(dir: &Path) -> Result<(), ExecError> {
    fs::create_dir_all(dir)
        .and_then(|()| fs::set_permissions(dir, Permissions::from_mode(0o755)))
        .map_err(ExecError::io("make", dir))
}

// A private copy: regular files and directories only, which is all that a checkout holds.
fn copy_dir(from: &Path, to: &Path) -> Result<(), ExecError> {
    for entry in fs::read_dir(from).map_err(ExecError::io("list", from))? {
        let entry = entry.map_err(ExecError::io("list", from))?;
        let (source, dest) = (entry.path(), to.join(entry.file_name()));
        let kind = entry
            .file_type()
            .map_err(ExecError::io("look at", &source))?;
        if kind.is_dir() {
            make_open_dir(&dest)?;
            copy_dir(&source, &dest)?;
        } else if kind.is_file() {
            fs::copy(&source, &dest).map_err(ExecError::io("copy", &source))?;
            fs::set_permissions(&dest, Permissions::from_mode(0o644))
                .map_err(ExecError::io("chmod", &dest))?;
        }
    }
    Ok(())
}

impl Training {
    /// Takes the declared weights out of the work directory into `dest` (in the run's spool), and
    /// validates them: each exists, is a regular file, has at most 8 GB (PVW-05). `copy` copies one
    /// file of the work directory to a new file within a cap, once everything inside is dead.
    ///
    /// # Errors
    /// [`ExecError::Untrained`], the program's fault; [`ExecError::Io`].
    pub fn collect(
        &self,
        dest: &Path,
        copy: impl Fn(&RelPath, &Path, u64) -> Result<u64, CollectError>,
    ) -> Result<Vec<Collected>, ExecError> {
        let mut collected = Vec::with_capacity(self.places.len());
        for (number, (path, inside)) in self.places.iter().enumerate() {
            let at = dest.join(format!("weight-{number}"));
            copy(inside, &at, WEIGHT_BYTES_MAX).map_err(|error| refused(path, error))?;
            let (bytes, sha256) = hash(&at)?;
            collected.push(Collected {
                weight: WeightFile {
                    path: path.clone(),
                    sha256,
                    bytes,
                },
                at,
            });
        }
        Ok(collected)
    }
}

fn refused(path: &RelPath, error: CollectError) -> ExecError {
    let untrained = |what: &str| ExecError::Untrained {
        path: path.to_string(),
        what: what.to_owned(),
    };
    match error {
        CollectError::Missing { .. } => untrained("was not written"),
        CollectError::NotRegular { .. } => untrained("is not a regular file"),
        CollectError::Escapes { .. } => untrained("leads through a link"),
        CollectError::TooLarge { .. } => untrained("is larger than 8 GB"),
        CollectError::Io {
            action: _, source, ..
        } => ExecError::Io {
            action: "collect the weight",
            path: PathBuf::from(path.as_str()),
            source,
        },
    }
}

fn hash(path: &Path) -> Result<(u64, Digest), ExecError> {
    vec_store::hash_file(path).map_err(|error| ExecError::Io {
        action: "hash",
        path: path.to_owned(),
        source: io::Error::other(error.to_string()),
    })
}

/// Gives a path the times of another (views in disguise must not look younger).
pub(crate) fn same_times(of: &fs::Metadata, path: &Path) -> Result<(), ExecError> {
    let times = || {
        let times = FileTimes::new()
            .set_modified(of.modified()?)
            .set_accessed(of.accessed()?);
        File::open(path)?.set_times(times)
    };
    times().map_err(ExecError::io("set the times of", path))
}
