//! Both start modes, and a scratch place with a solution, a view and an output directory.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use vec_sandbox::{
    ExecInputs, HostLayout, Limits, OutputCaps, PayloadExit, PythonBinds, RunControl, Runner,
    SandboxPlan, SandboxRun, TimeLimits, ViewBind, WorkKind, candidate_env,
};

pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_vec-sandbox");
/// Neither root, nor the sandbox's own id, nor nobody.
const ORDINARY_UID: u32 = 65_533;
const AS_USER: &str = "VEC_SANDBOX_TEST_HELPER";
/// No test waits longer for anything.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Defines a test that runs as the present user and, when that is root, again as an ordinary one.
macro_rules! both_modes {
    ($(#[$meta:meta])* async fn $name:ident($place:ident) $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            crate::support::in_both_modes(path, async |$place: crate::support::Place| $body);
        }
    };
}
pub(crate) use both_modes;

pub(crate) fn started_by_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// As the present user alone.
pub(crate) fn as_started(body: impl AsyncFnOnce(Place)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(body(Place::new()));
}

pub(crate) fn in_both_modes(path: &str, body: impl AsyncFnOnce(Place)) {
    as_started(body);
    if started_by_root() {
        again_as_user(path);
    } else if std::env::var_os(AS_USER).is_none() {
        eprintln!("SKIPPED for root start: {path} (this is no root)");
    }
}

/// The same test in a process of an ordinary user. Program and helper are copied where that user
/// can reach them, whatever the build directory's modes are.
fn again_as_user(path: &str) {
    let dir = tempfile::Builder::new()
        .permissions(mode(0o755))
        .tempdir()
        .unwrap();
    let copy = |from: &Path, name: &str| {
        let to = dir.path().join(name);
        std::fs::copy(from, &to).unwrap();
        std::fs::set_permissions(&to, mode(0o755)).unwrap();
        to
    };
    let program = copy(&std::env::current_exe().unwrap(), "test");
    let helper = copy(Path::new(HELPER), "vec-sandbox");
    let (_, test) = path.split_once("::").unwrap();
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(AS_USER, helper)
        .current_dir("/")
        .uid(ORDINARY_UID)
        .gid(ORDINARY_UID)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "started by an ordinary user: {stdout}{stderr}"
    );
}

pub(crate) fn mode(bits: u32) -> std::fs::Permissions {
    std::fs::Permissions::from_mode(bits)
}

/// A scratch place on the host.
pub(crate) struct Place {
    dir: TempDir,
    pub(crate) runner: Runner,
    pub(crate) helper: PathBuf,
}

impl Place {
    fn new() -> Self {
        // 0700: what is bound must not depend on its parents.
        let dir = tempfile::Builder::new()
            .permissions(mode(0o700))
            .tempdir()
            .unwrap();
        for name in ["solution", "view", "out"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::set_permissions(dir.path().join(name), mode(0o755)).unwrap();
        }
        std::fs::write(dir.path().join("view/train.csv"), "id,x\n1,2\n").unwrap();
        let helper = std::env::var_os(AS_USER).map_or_else(|| PathBuf::from(HELPER), PathBuf::from);
        Self {
            dir,
            runner: Runner::new(&helper),
            helper,
        }
    }

    /// A second place beside `other`, for sandboxes at the same time.
    pub(crate) fn another(other: &Self) -> Self {
        Self {
            helper: other.helper.clone(),
            ..Self::new()
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.dir.path().join(name.as_ref())
    }

    /// A plan that runs `script` under Python with the given arguments.
    pub(crate) fn plan(&self, script: &str, arguments: &[&str]) -> SandboxPlan {
        std::fs::write(self.path("solution/run.py"), script).unwrap();
        let mut argv = vec!["/usr/bin/python3".to_owned(), "/solution/run.py".to_owned()];
        argv.extend(arguments.iter().map(|&a| a.to_owned()));
        let inputs = ExecInputs {
            solution: self.path("solution"),
            views: vec![ViewBind {
                id: "main".parse().unwrap(),
                source: self.path("view"),
            }],
            out: WorkKind::Host {
                source: self.path("out"),
            },
            python: PythonBinds::default(),
            argv,
            env: candidate_env(1, false, None),
            limits: Limits::of_memory(512 << 20, 16 << 20, 1),
            time: TimeLimits {
                deadline_ms: 20_000,
                grace_ms: 1_000,
            },
            output: OutputCaps::standard(),
        };
        let mut plan = SandboxPlan::exec(&inputs, &HostLayout::detect().unwrap()).unwrap();
        plan.resolve_sources().unwrap();
        plan
    }

    pub(crate) async fn run(&self, plan: &SandboxPlan) -> SandboxRun {
        let run = self.runner.run(plan, RunControl::new());
        tokio::time::timeout(LONG * 2, run).await.unwrap().unwrap()
    }

    /// Runs `script` inside; its stdout is JSON.
    pub(crate) async fn inside(&self, script: &str, arguments: &[&str]) -> Value {
        let run = self.run(&self.plan(script, arguments)).await;
        let stderr = String::from_utf8_lossy(&run.stderr.bytes);
        assert_eq!(
            run.report.exit,
            PayloadExit::Code(0),
            "{:?} {stderr}",
            run.report
        );
        assert!(run.report.tree_gone);
        serde_json::from_slice(&run.stdout.bytes).unwrap()
    }
}

/// Runs `script` on the bare host as a positive control; its stdout is JSON.
pub(crate) fn outside(script: &str, arguments: &[&str]) -> Value {
    let output = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Host processes whose command line holds `marker`.
pub(crate) fn processes_with(marker: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        std::fs::read(path.join("cmdline")).ok()
    });
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(marker))
        .count()
}
