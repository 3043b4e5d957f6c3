//! `cargo xtask tamper`: every regular file of a closed run × {first, middle, last byte} flipped,
//! each file deleted, each ledger line dropped or swapped with the next. `vecctl verify` must find
//! each one and name the file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use walkdir::WalkDir;

use crate::demo::{DemoArguments, Vecctl, demo, newest_run};
use crate::dist::copy_folder;
use crate::shell::{headline, run, say, target_dir};

/// Arguments of the matrix.
#[derive(Debug, Args)]
pub(crate) struct TamperArguments {
    /// A closed run's directory; without it a demo run is made.
    run_dir: Option<PathBuf>,
}

/// Runs the whole matrix on a copy.
pub(crate) fn tamper(arguments: &TamperArguments) -> Result<()> {
    let out = target_dir().join("tamper");
    let source = match &arguments.run_dir {
        Some(directory) => directory.clone(),
        None => {
            let demo_out = target_dir().join("tamper-demo");
            demo(&DemoArguments::small(demo_out.clone()))?;
            let runs = demo_out.join("runs");
            runs.join(newest_run(&runs)?)
        }
    };
    let name = source.file_name().context("a run directory has a name")?;
    let copy = out.join("runs").join(name);
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_folder(&source, &copy)?;
    let vecctl = Vecctl::new(target_dir().join("dist"), &out)?;
    headline("the untouched copy verifies");
    run(&mut vecctl.command(&["verify", &copy.display().to_string()]))?;
    let mut missed = Vec::new();
    let mut tried = 0;
    for path in files(&copy)? {
        for change in changes(&path)? {
            tried += 1;
            if !is_found(&vecctl, &copy, &path, &change)? {
                missed.push(format!("{} {change:?}", path.display()));
            }
        }
        say(&format!(
            "{tried:6} changes, {} missed: {}",
            missed.len(),
            path.display()
        ));
    }
    for swap in [false, true] {
        tried += ledger_lines(&vecctl, &copy, swap, &mut missed)?;
    }
    say(&format!(
        "{} passed, {} failed",
        tried - missed.len(),
        missed.len()
    ));
    ensure!(
        missed.is_empty(),
        "not found or not named:\n  {}",
        missed.join("\n  ")
    );
    Ok(())
}

#[derive(Debug)]
enum Change {
    Flip(usize),
    Delete,
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkDir::new(root).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.push(entry.path().to_owned());
        }
    }
    Ok(files)
}

fn changes(path: &Path) -> Result<Vec<Change>> {
    let length = usize::try_from(fs::metadata(path)?.len())?;
    let mut changes = vec![Change::Delete];
    let mut places = if length == 0 {
        Vec::new()
    } else {
        vec![0, length / 2, length - 1]
    };
    places.dedup();
    changes.extend(places.into_iter().map(Change::Flip));
    Ok(changes)
}

fn is_found(vecctl: &Vecctl, run_dir: &Path, path: &Path, change: &Change) -> Result<bool> {
    let bytes = fs::read(path)?;
    let permissions = fs::metadata(path)?.permissions();
    fs::remove_file(path)?;
    if let Change::Flip(place) = change {
        let mut changed = bytes.clone();
        if let Some(byte) = changed.get_mut(*place) {
            *byte ^= 0x01;
        }
        fs::write(path, changed)?;
        fs::set_permissions(path, permissions.clone())?;
    }
    let found = verdict_names(vecctl, run_dir, path.strip_prefix(run_dir)?)?;
    if path.exists() {
        fs::remove_file(path)?;
    }
    fs::write(path, bytes)?;
    fs::set_permissions(path, permissions)?;
    Ok(found)
}

// A programs.git object may be named by its object id instead of its path.
fn verdict_names(vecctl: &Vecctl, run_dir: &Path, relative: &Path) -> Result<bool> {
    let output = vecctl
        .command(&["verify", &run_dir.display().to_string()])
        .output()
        .context("start vecctl verify")?;
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let name = relative.display().to_string();
    Ok(!output.status.success() && said.contains(&name))
}

fn ledger_lines(
    vecctl: &Vecctl,
    run_dir: &Path,
    swap: bool,
    missed: &mut Vec<String>,
) -> Result<usize> {
    let path = run_dir.join("ledger.jsonl");
    let text = fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    let count = if swap {
        lines.len().saturating_sub(1)
    } else {
        lines.len()
    };
    for index in 0..count {
        let mut changed = lines.clone();
        if swap {
            changed.swap(index, index + 1);
        } else {
            changed.remove(index);
        }
        fs::remove_file(&path)?;
        fs::write(&path, changed.join("\n") + "\n")?;
        if !verdict_names(vecctl, run_dir, Path::new("ledger.jsonl"))? {
            missed.push(format!(
                "ledger line {} {}",
                index + 1,
                if swap { "swapped" } else { "dropped" }
            ));
        }
    }
    fs::remove_file(&path)?;
    fs::write(&path, text)?;
    if count == 0 {
        bail!("{} has no lines", path.display());
    }
    Ok(count)
}
