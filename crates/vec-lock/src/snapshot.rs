//! `code/` of a run (LCK-05, O-LCK-1): the binaries, sources, configs, prompts and seed programs
//! that this run uses, copied from the installed prefix and, where they lie elsewhere, from where
//! the configuration says. Every daemon of the run is started from here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use vec_config::{Board, BuildRecord, CodeSnapshot, Config, EndpointKind, EnvironmentChoice};
use vec_programs::tree_id_of_dir;
use vec_types::{Digest, RelPath};

use crate::copy::{copy_dir, copy_file, files_below, hash};
use crate::error::SnapshotError;
use crate::seeds::check_seeds;

/// What a snapshot is made from.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotInputs<'a> {
    /// The installed product.
    pub prefix: &'a Path,
    /// Its build record.
    pub build: &'a BuildRecord,
    /// The configuration.
    pub config: &'a Config,
    /// The board that `config.board` defines.
    pub board: &'a Board,
}

/// Reads `<prefix>/BUILD.json`.
///
/// # Errors
/// [`SnapshotError::Io`], [`SnapshotError::BuildRecord`].
pub fn read_build_record(prefix: &Path) -> Result<BuildRecord, SnapshotError> {
    let path = prefix.join("BUILD.json");
    let bytes = fs::read(&path).map_err(SnapshotError::io("read", &path))?;
    serde_json::from_slice(&bytes).map_err(|source| SnapshotError::BuildRecord { path, source })
}

/// Copies everything to `code`, read-only, and hashes it. `code` must be missing or empty.
///
/// # Errors
/// [`SnapshotError`]; what was copied by then stays for the caller to remove with the run
/// directory.
pub fn snapshot_code(
    inputs: SnapshotInputs<'_>,
    code: &Path,
) -> Result<CodeSnapshot, SnapshotError> {
    let SnapshotInputs {
        prefix,
        build,
        config,
        board,
    } = inputs;
    if fs::read_dir(code).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(SnapshotError::refused(code, "must be empty"));
    }
    check_seeds(board)?;
    copy_file(&prefix.join("BUILD.json"), &code.join("BUILD.json"))?;
    for (name, expected) in &build.binaries {
        let to = code.join("bin").join(name);
        copy_file(&prefix.join("bin").join(name), &to)?;
        check_digest(&to, *expected)?;
    }
    let source = code.join("source.tar");
    copy_file(&prefix.join("source.tar"), &source)?;
    for share in ["configs", "prompts", "seeds"] {
        copy_dir(&prefix.join("share").join(share), &code.join(share))?;
    }
    let file_name = board.board.file_name();
    let board_path = rel(code, &format!("configs/boards/{file_name}.yaml"))?;
    put_file(&config.board, &board_path.under(code))?;
    let ideas = board.idea_library.file_name().unwrap_or_default();
    let ideas = rel(code, &format!("prompts/{}", ideas.to_string_lossy()))?;
    put_file(&board.idea_library, &ideas.under(code))?;
    let seeds = rel(code, &format!("seeds/{file_name}"))?;
    put_dir(&board.seeds_dir, &seeds.under(code))?;
    if let EnvironmentChoice::Venv { lock } = &board.environment {
        let name = lock.file_name().unwrap_or_default().to_string_lossy();
        put_file(
            lock,
            &rel(code, &format!("configs/env/{name}"))?.under(code),
        )?;
    }
    let playbooks = put_playbooks(config, code)?;
    Ok(CodeSnapshot {
        tree: tree_id(code)?,
        binaries: build.binaries.clone(),
        source_sha256: hash(&source)?.1,
        board: board_path,
        seeds,
        playbooks,
    })
}

/// Checks that `code` is what was locked: every binary, then the whole tree (LCK-06).
///
/// # Errors
/// [`SnapshotError::Digest`] naming the binary, [`SnapshotError::Tree`].
pub fn verify_code(code: &Path, snapshot: &CodeSnapshot) -> Result<(), SnapshotError> {
    for (name, expected) in &snapshot.binaries {
        check_digest(&code.join("bin").join(name), *expected)?;
    }
    let found = tree_id(code)?;
    if found == snapshot.tree {
        return Ok(());
    }
    Err(SnapshotError::Tree {
        path: code.to_owned(),
        expected: snapshot.tree.clone(),
        found,
    })
}

/// sha256 of every prompt file, by its path below `code/prompts` (LCK-02).
///
/// # Errors
/// [`SnapshotError`].
pub fn prompt_hashes(code: &Path) -> Result<BTreeMap<String, Digest>, SnapshotError> {
    let dir = code.join("prompts");
    let mut hashes = BTreeMap::new();
    for file in files_below(&dir)? {
        let (_, sha256) = hash(&dir.join(&file))?;
        hashes.insert(file.to_string_lossy().into_owned(), sha256);
    }
    Ok(hashes)
}

// A playbook `<name>.yaml` and the directory `<name>/` beside it, which holds its programs.
fn put_playbooks(config: &Config, code: &Path) -> Result<BTreeMap<String, RelPath>, SnapshotError> {
    let mut playbooks = BTreeMap::new();
    let mut sources: BTreeMap<RelPath, PathBuf> = BTreeMap::new();
    for (name, endpoint) in &config.models.endpoints {
        let EndpointKind::Playbook { playbook } = &endpoint.kind;
        let file = playbook.file_name().unwrap_or_default().to_string_lossy();
        let place = rel(code, &format!("configs/playbooks/{file}"))?;
        if let Some(other) = sources.insert(place.clone(), playbook.clone())
            && other != *playbook
        {
            let what = format!("another playbook of the same name: {}", other.display());
            return Err(SnapshotError::refused(playbook, what));
        }
        put_file(playbook, &place.under(code))?;
        let programs = playbook.with_extension("");
        if programs.is_dir() {
            put_dir(&programs, &place.under(code).with_extension(""))?;
        }
        playbooks.insert(name.clone(), place);
    }
    Ok(playbooks)
}

// The file in use wins over the prefix's file of the same name.
fn put_file(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    if to.exists() {
        fs::remove_file(to).map_err(SnapshotError::io("replace", to))?;
    }
    copy_file(from, to)
}

fn put_dir(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(SnapshotError::io("replace", to))?;
    }
    copy_dir(from, to)
}

fn rel(code: &Path, text: &str) -> Result<RelPath, SnapshotError> {
    text.parse().map_err(|source| SnapshotError::Name {
        path: code.join(text),
        source,
    })
}

fn check_digest(path: &Path, expected: Digest) -> Result<(), SnapshotError> {
    let (_, found) = hash(path)?;
    if found == expected {
        return Ok(());
    }
    Err(SnapshotError::Digest {
        path: path.to_owned(),
        expected,
        found,
    })
}

fn tree_id(code: &Path) -> Result<vec_types::TreeId, SnapshotError> {
    tree_id_of_dir(code).map_err(|source| SnapshotError::TreeId {
        path: code.to_owned(),
        source,
    })
}
