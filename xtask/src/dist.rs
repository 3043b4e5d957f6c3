//! `cargo xtask dist`: an installable prefix. Binaries are copied and stripped, never linked from
//! `target/`; BUILD.json is all that the launcher knows about where they came from
//! (decisions.md, Build record).

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use crate::shell::{cargo, command, has, headline, output, root, run, say, target_dir};

/// Binaries of `<prefix>/bin`.
const BINARIES: [&str; 7] = [
    "vecctl",
    "vec-launcher",
    "vec-controller",
    "vec-scorer",
    "vec-egress",
    "vec-playbook",
    "vec-tool",
];

/// The helper has a directory of its own, named by its hash (architecture §2).
const HELPER: &str = "vec-sandbox";

/// Raw board data stays out of the source archive, the source tree hash and every run.
const LEFT_OUT: &str = "tests/data";

/// BUILD.json.
#[derive(Debug, Serialize)]
struct BuildRecord {
    commit: String,
    dirty: bool,
    source_tree: String,
    rustc: String,
    binaries: BTreeMap<String, String>,
    sandbox: SandboxRecord,
}

#[derive(Debug, Serialize)]
struct SandboxRecord {
    path: String,
    sha256: String,
}

/// Builds into `out` (default `target/dist`) and returns the prefix.
pub(crate) fn dist(out: Option<PathBuf>, release: bool) -> Result<PathBuf> {
    let prefix = out.unwrap_or_else(|| target_dir().join("dist"));
    headline(&format!("build into {}", prefix.display()));
    let mut arguments = vec!["build", "--workspace", "--bins"];
    if release {
        arguments.push("--release");
    }
    run(&mut cargo(&arguments))?;
    let built = target_dir().join(if release { "release" } else { "debug" });
    assemble(&built, &prefix).with_context(|| format!("make {}", prefix.display()))?;
    Ok(prefix)
}

// Made beside and renamed into place, so that a run that starts meanwhile sees one whole prefix.
fn assemble(built: &Path, prefix: &Path) -> Result<()> {
    let fresh = prefix.with_extension(format!("new-{}", std::process::id()));
    remove_tree(&fresh)?;
    fs::create_dir_all(fresh.join("bin"))?;
    let mut binaries = BTreeMap::new();
    for name in BINARIES {
        let digest = copy_stripped(&built.join(name), &fresh.join("bin").join(name))?;
        binaries.insert(name.to_owned(), digest);
    }
    let sandbox = install_helper(built, &fresh, prefix)?;
    for folder in ["configs", "prompts", "seeds"] {
        copy_folder(&root().join(folder), &fresh.join("share").join(folder))?;
    }
    let source = archive_source(&fresh.join("source.tar"))?;
    let record = BuildRecord {
        commit: source.commit,
        dirty: source.dirty,
        source_tree: source.tree,
        rustc: output(&mut command("rustc", &["--version"]))?
            .trim()
            .to_owned(),
        binaries,
        sandbox,
    };
    fs::write(
        fresh.join("BUILD.json"),
        serde_json::to_vec_pretty(&record)?,
    )?;
    let old = prefix.with_extension(format!("old-{}", std::process::id()));
    if prefix.exists() {
        fs::rename(prefix, &old)?;
    }
    fs::rename(&fresh, prefix)?;
    remove_tree(&old)?;
    say(&format!(
        "{} binaries, commit {}, dirty: {}",
        BINARIES.len() + 1,
        record.commit,
        record.dirty
    ));
    Ok(())
}

// Helpers of earlier builds stay: an unfinished run's lock may name them.
fn install_helper(built: &Path, fresh: &Path, prefix: &Path) -> Result<SandboxRecord> {
    let old = prefix.join("sandbox");
    if old.is_dir() {
        copy_folder(&old, &fresh.join("sandbox"))?;
    }
    let staged = fresh.join(HELPER);
    let sha256 = copy_stripped(&built.join(HELPER), &staged)?;
    let directory = format!("sandbox/{}", sha256.get(..16).unwrap_or(&sha256));
    fs::create_dir_all(fresh.join(&directory))?;
    let path = format!("{directory}/{HELPER}");
    fs::rename(&staged, fresh.join(&path))?;
    Ok(SandboxRecord { path, sha256 })
}

fn copy_stripped(from: &Path, to: &Path) -> Result<String> {
    fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
    if has("strip", "--version") {
        run(command("strip", &["--strip-all"]).arg(to))?;
    }
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    file_sha256(to)
}

/// sha256 of a file, in hex.
pub(crate) fn file_sha256(path: &Path) -> Result<String> {
    let mut file = fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Copies a folder without Python caches.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from).sort_by_file_name() {
        let entry = entry?;
        if entry
            .path()
            .components()
            .any(|part| part.as_os_str() == "__pycache__")
        {
            continue;
        }
        let target = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

struct Source {
    commit: String,
    dirty: bool,
    tree: String,
}

// The tree of what is on disk (ignored files aside) without tests/data, made in an index of its
// own so that the person's index is left alone.
fn archive_source(to: &Path) -> Result<Source> {
    let index = to.with_extension("index");
    let git = |arguments: &[&str]| {
        let mut git = command("git", arguments);
        git.env("GIT_INDEX_FILE", &index);
        git
    };
    let head = output(&mut command("git", &["rev-parse", "--verify", "HEAD"]));
    let commit = head
        .context("find the commit (is this a git clone?)")?
        .trim()
        .to_owned();
    run(&mut git(&["read-tree", "HEAD"]))?;
    run(&mut git(&["add", "--all", "--", "."]))?;
    run(&mut git(&[
        "rm",
        "-r",
        "--quiet",
        "--cached",
        "--ignore-unmatch",
        LEFT_OUT,
    ]))?;
    let tree = output(&mut git(&["write-tree"]))?.trim().to_owned();
    let dirty = !output(&mut command("git", &["status", "--porcelain"]))?
        .trim()
        .is_empty();
    let archive = to.to_str().context("the prefix must be UTF-8")?.to_owned();
    run(&mut git(&[
        "archive",
        "--format=tar",
        "--mtime=1970-01-01T00:00:00Z",
        "--output",
        &archive,
        &tree,
    ]))?;
    fs::remove_file(&index)?;
    Ok(Source {
        commit,
        dirty,
        tree,
    })
}
