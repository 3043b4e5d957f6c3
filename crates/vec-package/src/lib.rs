//! Packages a closed run as evidence, beside the run directory (PKG-01..03, O-PKG-1).
//!
//! Invariants: everything packed is named by the run's ledger; archives are deterministic, so the
//! same run gives the same bytes; the package is built in a temporary directory, the run is then
//! verified with a full replay, and only a verified package gets its name. An open or tainted run
//! is refused; a package is never overwritten; a failure leaves nothing behind.

mod archive;
mod content;
mod error;
mod manifest;
mod progression;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vec_store::{Archive, NodeRow, RunLayout, ScoreRow, hash_file, taint, taint_reasons};
use vec_types::{NodeId, RelPath, UnixMs, pretty_json};
use vec_verify::{VerifyOptions, VerifyReport, verify};

pub use error::PackageError;
pub use manifest::{LineageSegment, MANIFEST_SCHEMA, Manifest, PackagedFile};

use content::Content;

/// Most bytes of one file of a package (EXT-05).
pub const FILE_BYTES_MAX: u64 = 200_000_000;

/// How to package.
#[derive(Debug, Clone)]
pub struct PackageOptions {
    /// Most bytes of one file; [`FILE_BYTES_MAX`] unless a test says otherwise.
    pub file_bytes_max: u64,
}

impl Default for PackageOptions {
    fn default() -> Self {
        Self {
            file_bytes_max: FILE_BYTES_MAX,
        }
    }
}

/// A finished package.
#[derive(Debug, Clone)]
pub struct PackageReport {
    /// `<root>/<run>.package`.
    pub dir: PathBuf,
    /// Its MANIFEST.json.
    pub manifest: Manifest,
    /// The check that it passed.
    pub verified: VerifyReport,
}

/// What the archive says about the run.
pub(crate) struct Facts {
    pub nodes: Vec<NodeRow>,
    pub scores: Vec<ScoreRow>,
    pub meta: BTreeMap<String, String>,
}

/// Packages the run in `run_dir`. `at` is the time of the taint record that a failed check leaves
/// (LED-02).
///
/// # Errors
/// [`PackageError`]; then there is no package.
pub async fn package(
    run_dir: &Path,
    at: UnixMs,
    options: &PackageOptions,
) -> Result<PackageReport, PackageError> {
    let store = |source| PackageError::Store {
        path: run_dir.to_owned(),
        source,
    };
    let layout = RunLayout::of_run_dir(run_dir).map_err(store)?;
    let target = layout.package_dir();
    if target.symlink_metadata().is_ok() {
        return Err(PackageError::Exists(target));
    }
    let reasons = taint_reasons(&layout).map_err(store)?;
    if let Some(first) = reasons.into_iter().next() {
        let path = run_dir.to_owned();
        return Err(PackageError::Tainted { path, first });
    }
    let content = Content::of(&layout)?;
    let facts = facts(&layout).await?;
    let temp = tempfile::Builder::new()
        .prefix(".package-")
        .tempdir_in(layout.root())
        .map_err(PackageError::io("make a directory in", layout.root()))?;
    content.write(&layout, temp.path(), options.file_bytes_max)?;
    progression::write(&facts, &temp.path().join("scores_progression.csv"))?;
    let verified = check(&layout, at).await?;
    let report = pretty_json(&verified).map_err(|source| PackageError::Encode {
        what: "VERIFY.json",
        source,
    })?;
    write(&temp.path().join("VERIFY.json"), &report)?;
    let files = packaged(temp.path(), options.file_bytes_max)?;
    let manifest = Manifest::of(&layout, &content, &facts, &verified, files)?;
    let bytes = pretty_json(&manifest).map_err(|source| PackageError::Encode {
        what: "MANIFEST.json",
        source,
    })?;
    write(&temp.path().join("MANIFEST.json"), &bytes)?;
    publish(temp, &target)?;
    Ok(PackageReport {
        dir: target,
        manifest,
        verified,
    })
}

async fn facts(layout: &RunLayout) -> Result<Facts, PackageError> {
    let store = |source| PackageError::Store {
        path: layout.archive(),
        source,
    };
    let mut reader = Archive::open_read_only(&layout.archive())
        .await
        .map_err(store)?;
    Ok(Facts {
        nodes: reader.nodes().await.map_err(store)?,
        scores: reader.scores().await.map_err(store)?,
        meta: reader.meta().await.map_err(store)?,
    })
}

/// The run must verify, decisions included; if it does not, it is tainted from now on.
async fn check(layout: &RunLayout, at: UnixMs) -> Result<VerifyReport, PackageError> {
    let options = VerifyOptions {
        open: false,
        anchor: None,
        replay: true,
    };
    let report = verify(layout.run_dir(), &options)
        .await
        .map_err(PackageError::Verify)?;
    if report.ok() {
        return Ok(report);
    }
    let reasons: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    taint(layout, at, &reasons).map_err(|source| PackageError::Store {
        path: layout.taint(),
        source,
    })?;
    Err(PackageError::DoesNotVerify {
        path: layout.run_dir().to_owned(),
        report: Box::new(report),
    })
}

fn packaged(dir: &Path, bytes_max: u64) -> Result<BTreeMap<RelPath, PackagedFile>, PackageError> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(PackageError::io("read", dir))? {
        let path = entry.map_err(PackageError::io("read", dir))?.path();
        let (size, sha256) = hash_file(&path).map_err(|source| PackageError::Store {
            path: path.clone(),
            source,
        })?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.parse::<RelPath>().ok());
        let name = name.ok_or_else(|| PackageError::BadName(path.clone()))?;
        if size > bytes_max {
            let limit = bytes_max;
            return Err(PackageError::TooBig {
                name: name.to_string(),
                limit,
            });
        }
        files.insert(name, PackagedFile { size, sha256 });
    }
    Ok(files)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    fs::write(path, bytes).map_err(PackageError::io("write", path))
}

/// Read-only, synced, and only then under its name.
fn publish(temp: TempDir, target: &Path) -> Result<(), PackageError> {
    let dir = temp.path().to_owned();
    for entry in fs::read_dir(&dir).map_err(PackageError::io("read", &dir))? {
        let path = entry.map_err(PackageError::io("read", &dir))?.path();
        fs::set_permissions(&path, Permissions::from_mode(0o444))
            .and_then(|()| File::open(&path)?.sync_all())
            .map_err(PackageError::io("finish", &path))?;
    }
    fs::set_permissions(&dir, Permissions::from_mode(0o755))
        .and_then(|()| File::open(&dir)?.sync_all())
        .map_err(PackageError::io("finish", &dir))?;
    // Somebody else may have been faster: an existing package, even an empty one, stays.
    if target.symlink_metadata().is_ok() {
        return Err(PackageError::Exists(target.to_owned()));
    }
    fs::rename(&dir, target).map_err(PackageError::io("rename to", target))?;
    // It has its name now; nothing of it may be removed any more.
    let _renamed = temp.keep();
    let root = target.parent().unwrap_or(target);
    File::open(root)
        .and_then(|root| root.sync_all())
        .map_err(PackageError::io("sync", root))
}

/// A node id out of a `meta` value.
pub(crate) fn meta_node(facts: &Facts, key: &str) -> Option<NodeId> {
    facts.meta.get(key)?.parse().ok()
}
