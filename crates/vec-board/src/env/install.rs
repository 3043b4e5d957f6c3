//! Filling a venv with hashed wheels and sealing it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::INSIDE;
use crate::command::run;
use crate::error::{BoardError, EnvError};
use crate::python::Interpreter;
use crate::tree::regular_files;

/// Downloads on a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(1_800);
/// Everything without downloads.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// Makes `venv` and installs the lock's wheels, each checked against its hash.
pub(super) fn install(venv: &Path, lock: &Path, interpreter: &Interpreter) -> Result<(), EnvError> {
    let mut command = Command::new(&interpreter.executable);
    command
        .args(["-I", "-m", "venv", "--without-pip", "--symlinks"])
        .arg(venv);
    run(command, "make a venv", STEP_LIMIT)?;
    let target = venv.join("bin/python3");
    let mut pip = find_pip(interpreter)?;
    pip.arg("--python").arg(&target).args([
        "install",
        "--require-hashes",
        "--only-binary=:all:",
        "--no-compile",
        "--no-input",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ]);
    pip.arg(lock);
    run(pip, "install the requirements", INSTALL_LIMIT)?;
    forget_place(venv)?;
    let mut compile = Command::new(&target);
    // A fixed hash seed: the order of set constants is in the bytecode.
    compile.env("PYTHONHASHSEED", "0");
    compile.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    compile.args(["-s", "-m", "compileall", "-q", "-f"]);
    // By hash, unchecked: no times in the files; and paths as the sandbox sees them.
    compile.args(["--invalidation-mode", "unchecked-hash"]);
    compile
        .arg("-s")
        .arg(venv)
        .args(["-p", INSIDE])
        .arg(venv.join("lib"));
    run(compile, "compile to bytecode", STEP_LIMIT)?;
    Ok(())
}

// The base Python's own pip, else one on PATH; both can install into another Python.
fn find_pip(interpreter: &Interpreter) -> Result<Command, EnvError> {
    let mut tried = Vec::new();
    for (program, module) in [
        (interpreter.executable.clone(), true),
        (PathBuf::from("pip3"), false),
    ] {
        let make = || {
            let mut command = Command::new(&program);
            if module {
                command.args(["-I", "-m", "pip"]);
            }
            command
        };
        let mut ask = make();
        ask.arg("--help");
        match run(ask, "ask pip what it can do", STEP_LIMIT) {
            Ok(help) if help.contains("--python") => return Ok(make()),
            Ok(_) => tried.push(format!("{} is too old", program.display())),
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(EnvError::NoPip {
        tried: tried.join("; "),
    })
}

// The same lock and interpreter must give the same bytes under every data root, so whatever
// names this venv's place goes: scripts (programs only import), their lines in RECORD, and the
// command in pyvenv.cfg.
fn forget_place(venv: &Path) -> Result<(), EnvError> {
    let bin = venv.join("bin");
    for entry in fs::read_dir(&bin).map_err(BoardError::io("list", &bin))? {
        let path = entry.map_err(BoardError::io("list", &bin))?.path();
        let is_python = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("python"));
        if !is_python {
            fs::remove_file(&path).map_err(BoardError::io("remove", &path))?;
        }
    }
    keep_lines(&venv.join("pyvenv.cfg"), |line| {
        !line.starts_with("command")
    })?;
    for path in regular_files(venv)? {
        if path.ends_with("RECORD") && path.parent().is_some_and(is_dist_info) {
            keep_lines(&path, |line| !line.starts_with("../../../bin/"))?;
        }
    }
    Ok(())
}

fn is_dist_info(dir: &Path) -> bool {
    dir.extension()
        .is_some_and(|extension| extension == "dist-info")
}

fn keep_lines(path: &Path, keep: impl Fn(&str) -> bool) -> Result<(), EnvError> {
    let text = fs::read_to_string(path).map_err(BoardError::io("read", path))?;
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| keep(line))
        .collect();
    Ok(fs::write(path, kept).map_err(BoardError::io("write", path))?)
}

/// Removes write bits and makes everything readable for everybody.
pub(super) fn seal(dir: &Path) -> Result<(), EnvError> {
    for entry in fs::read_dir(dir).map_err(BoardError::io("list", dir))? {
        let entry = entry.map_err(BoardError::io("list", dir))?;
        let path = entry.path();
        let kind = entry
            .file_type()
            .map_err(BoardError::io("look at", &path))?;
        if kind.is_dir() {
            seal(&path)?;
        } else if kind.is_file() {
            let meta = entry.metadata().map_err(BoardError::io("look at", &path))?;
            let is_executable = meta.permissions().mode() & 0o100 != 0;
            set_mode(&path, if is_executable { 0o555 } else { 0o444 })?;
        }
    }
    set_mode(dir, 0o555)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), EnvError> {
    let set = fs::set_permissions(path, Permissions::from_mode(mode));
    Ok(set.map_err(BoardError::io("set the mode of", path))?)
}
