//! Does the sandbox work here, what does it isolate, and does the candidates' Python run in it?

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use vec_config::{EnvironmentChoice, IsolationLevel};
use vec_daemon::chain;
use vec_sandbox::{
    ExecInputs, HostLayout, Limits, OutputCaps, PythonBinds, RoBind, RunControl, Runner,
    SandboxPlan, TimeLimits, TmpfsSize, WorkKind, candidate_env,
};
use vec_types::Digest;

use crate::files::read_bytes;
use crate::prepare::Prepared;
use crate::runtime_dir::RuntimeDir;

/// What the test program may use.
const TEST_MEMORY_BYTES: u64 = 1 << 30;
const TEST_OUTPUT_BYTES: u64 = 1 << 20;
const TEST_FILES: u64 = 64;
const TEST_DEADLINE_MS: u64 = 20_000;
const TEST_GRACE_MS: u64 = 1_000;

/// Longest stderr tail that is shown.
const STDERR_CHARS_MAX: usize = 300;

/// Runs the helper's own probe.
pub(super) async fn probe(
    prepared: &Prepared,
) -> Result<(BTreeSet<IsolationLevel>, String), String> {
    let helper = prepared.sandbox_helper();
    check_digest(&helper, prepared.build.sandbox.sha256)?;
    let report = vec_sandbox::probe(&helper)
        .await
        .map_err(|error| chain(&error).to_string())?;
    if let Some(problem) = report.problem() {
        return Err(problem);
    }
    let levels = levels(&report.isolation);
    let words: Vec<&str> = levels.iter().map(|level| level.as_str()).collect();
    Ok((levels.clone(), words.join(" ")))
}

fn check_digest(helper: &Path, expected: Digest) -> Result<(), String> {
    let (_, found) = vec_store::hash_file(helper).map_err(|error| chain(&error).to_string())?;
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{} is not the helper of BUILD.json; install again",
        helper.display()
    ))
}

// `no_new_privs` and resource limits are part of every set-up that the probe went through.
fn levels(isolation: &vec_sandbox::Isolation) -> BTreeSet<IsolationLevel> {
    let has = |word: &str| isolation.namespaces.iter().any(|name| name == word);
    let by_word = [
        (IsolationLevel::User, has("user")),
        (IsolationLevel::Mount, has("mount")),
        (IsolationLevel::Pid, has("pid")),
        (IsolationLevel::Net, has("net")),
        (IsolationLevel::Ipc, has("ipc")),
        (IsolationLevel::Uts, has("uts")),
        (IsolationLevel::NoPrivileges, true),
        (IsolationLevel::Seccomp, isolation.seccomp != "none"),
        (IsolationLevel::Rlimits, true),
    ];
    by_word
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(level, _)| level)
        .collect()
}

/// Imports what the board needs, as a candidate would.
pub(super) async fn python(
    prepared: &Prepared,
    runtime: &RuntimeDir,
) -> Result<((), String), String> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    let scratch = Scratch::make(runtime).map_err(io("make a scratch directory"))?;
    let host = HostLayout::detect().map_err(io("look at the host"))?;
    let imports = imports(prepared)?;
    let plan = plan(prepared, &scratch, &host, &program(&imports))?;
    let began = Instant::now();
    let run = Runner::new(prepared.sandbox_helper())
        .run(&plan, RunControl::new())
        .await
        .map_err(|error| chain(&error).to_string())?;
    if let Some(error) = &run.report.setup_error {
        return Err(error.to_string());
    }
    if !run.report.succeeded() {
        let text = String::from_utf8_lossy(&run.stderr.bytes);
        let last = text
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("no message");
        let last: String = last.chars().take(STDERR_CHARS_MAX).collect();
        return Err(format!(
            "Python {} cannot import {} in the sandbox: {last}",
            prepared.python.facts.version,
            imports.join(", ")
        ));
    }
    Ok((
        (),
        format!(
            "Python {} imports {} in {} ms",
            prepared.python.facts.version,
            imports.join(", "),
            began.elapsed().as_millis()
        ),
    ))
}

fn program(imports: &[String]) -> String {
    format!("import {}", imports.join(", "))
}

// The requirements' own names; a distribution that imports under another name is only looked up.
fn imports(prepared: &Prepared) -> Result<Vec<String>, String> {
    let EnvironmentChoice::Venv { lock } = &prepared.board.environment else {
        return Ok(["csv", "json", "math"].map(str::to_owned).to_vec());
    };
    let bytes = read_bytes(lock).map_err(|error| chain(&error).to_string())?;
    Ok(requirement_names(&String::from_utf8_lossy(&bytes)))
}

fn requirement_names(lock: &str) -> Vec<String> {
    lock.lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .filter_map(|line| {
            line.split_once("==")
                .map(|(name, _)| name.trim().replace('-', "_"))
        })
        .collect()
}

fn plan(
    prepared: &Prepared,
    scratch: &Scratch,
    host: &HostLayout,
    program: &str,
) -> Result<SandboxPlan, String> {
    let python = &prepared.python;
    let is_venv = python.dir.is_some();
    let inputs = ExecInputs {
        solution: scratch.0.join("solution"),
        views: Vec::new(),
        out: WorkKind::Memory {
            size: TmpfsSize {
                bytes: TEST_OUTPUT_BYTES,
                inodes: TEST_FILES,
            },
            fill: None,
        },
        python: PythonBinds::default(),
        argv: vec![
            python.argv0.display().to_string(),
            "-c".to_owned(),
            program.to_owned(),
        ],
        env: candidate_env(1, is_venv, None),
        limits: Limits::of_memory(TEST_MEMORY_BYTES, TEST_OUTPUT_BYTES, 1),
        time: TimeLimits {
            deadline_ms: TEST_DEADLINE_MS,
            grace_ms: TEST_GRACE_MS,
        },
        output: OutputCaps::standard(),
    };
    let failed = |error: vec_sandbox::PlanError| chain(&error).to_string();
    let mut plan = SandboxPlan::exec(&inputs, host).map_err(failed)?;
    for (source, dest) in &python.ro_binds {
        plan.ro_binds.push(RoBind {
            source: source.clone(),
            dest: dest.clone(),
        });
    }
    plan.resolve_sources().map_err(failed)?;
    Ok(plan)
}

/// `R/launcher/preflight-<pid>`, gone when dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn make(runtime: &RuntimeDir) -> std::io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let path = runtime.launcher().join("preflight");
        drop(std::fs::remove_dir_all(&path));
        let directory = path.join("solution");
        std::fs::create_dir_all(&directory)?;
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_name_what_is_imported() {
        let lock = "# made by x\nnumpy==2.1.0 \\\n    --hash=sha256:00\nh5py==3.1\n--index-url x\ntyping-extensions==4\n";
        let names = requirement_names(lock);
        assert_eq!(names, ["numpy", "h5py", "typing_extensions"]);
        assert_eq!(program(&names), "import numpy, h5py, typing_extensions");
    }
}
