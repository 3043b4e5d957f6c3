//! Builders: the two profiles' layouts, from what a daemon knows and what the host looks like.
//!
//! Invariants: pure. Paths inside are fixed per profile (CONTRACTS "sandbox view of the world");
//! callers give host paths only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vec_types::ViewId;

use super::{
    INSIDE_ID, Limits, OuterIds, OutputCaps, PLAN_SCHEMA, PlanError, Profile, RoBind, SANDBOX_GID,
    SANDBOX_UID, SandboxPlan, SymlinkEntry, TextFile, TimeLimits, TmpfsSize, WorkDir, WorkKind,
};
use crate::host::HostLayout;

/// Size of `/tmp` and `/dev/shm`: enough for spilled scratch, small against a workstation.
const TMP_SIZE: TmpfsSize = TmpfsSize {
    bytes: 256 << 20,
    inodes: 16_384,
};

/// One view shown at `/views/<id>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewBind {
    /// Name of the view.
    pub id: ViewId,
    /// Its directory on the host.
    pub source: PathBuf,
}

/// Where Python comes from when `/usr` is not enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonBinds {
    /// Virtual environment, shown at `/env`.
    pub env: Option<PathBuf>,
    /// Installation prefix of the interpreter, shown at its own path; ignored below `/usr`.
    pub prefix: Option<PathBuf>,
}

/// What a candidate execution needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecInputs {
    /// Host directory shown at `/solution`, read-only.
    pub solution: PathBuf,
    /// Views, read-only.
    pub views: Vec<ViewBind>,
    /// What `/out` is made of: writable, and the working directory.
    pub out: WorkKind,
    /// Python beside `/usr`.
    pub python: PythonBinds,
    /// Program and arguments, as seen inside.
    pub argv: Vec<String>,
    /// Whole environment, see [`candidate_env`].
    pub env: BTreeMap<String, String>,
    /// Resource limits.
    pub limits: Limits,
    /// Deadline and grace.
    pub time: TimeLimits,
    /// Output caps.
    pub output: OutputCaps,
}

/// What an Engineer session needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineerInputs {
    /// What `/box` is made of: writable, and the working directory.
    pub work: WorkKind,
    /// Host directory shown at `/brief`, read-only.
    pub brief: PathBuf,
    /// Views, read-only.
    pub views: Vec<ViewBind>,
    /// Host directory of the client sockets, shown at `/run/vec`, read-only.
    pub client_dir: PathBuf,
    /// Host path of `vec-tool`, shown at `/opt/vec/bin/vec-tool`.
    pub tool: PathBuf,
    /// Names under which the tool can be called too (links beside it).
    pub tool_names: Vec<String>,
    /// Host path of the agent program, shown at `/opt/vec/agent/<its file name>`.
    pub agent: PathBuf,
    /// Python beside `/usr`.
    pub python: PythonBinds,
    /// Loopback ports whose listeners are handed out.
    pub listeners: Vec<u16>,
    /// Program and arguments, as seen inside.
    pub argv: Vec<String>,
    /// Whole environment.
    pub env: BTreeMap<String, String>,
    /// Resource limits.
    pub limits: Limits,
    /// Deadline and grace.
    pub time: TimeLimits,
    /// Output caps.
    pub output: OutputCaps,
}

/// What a worker of our own needs: one program, inputs, one bounded directory for results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerInputs {
    /// Host path of the program, shown at `/worker/<its file name>`, which is executed.
    pub program: PathBuf,
    /// Host files or directories with the names that they have below `/in`, read-only.
    pub inputs: Vec<(String, PathBuf)>,
    /// Bounds of `/out`, which is also the working directory.
    pub out: TmpfsSize,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// Whole environment.
    pub env: BTreeMap<String, String>,
    /// Resource limits.
    pub limits: Limits,
    /// Deadline and grace.
    pub time: TimeLimits,
    /// Output caps.
    pub output: OutputCaps,
}

/// The environment allow-list of a candidate: PATH HOME TMPDIR LANG, thread variables,
/// `OPENBLAS_CORETYPE` where the host sets it, `PYTHONDONTWRITEBYTECODE`.
#[must_use]
pub fn candidate_env(
    threads: u32,
    has_python_env: bool,
    openblas_coretype: Option<&str>,
) -> BTreeMap<String, String> {
    let path = if has_python_env {
        "/env/bin:/usr/local/bin:/usr/bin:/bin"
    } else {
        "/usr/local/bin:/usr/bin:/bin"
    };
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), path.to_owned()),
        ("HOME".to_owned(), "/tmp".to_owned()),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
    ]);
    for library in ["OMP", "OPENBLAS", "MKL", "NUMEXPR"] {
        env.insert(format!("{library}_NUM_THREADS"), threads.to_string());
    }
    if let Some(coretype) = openblas_coretype {
        env.insert("OPENBLAS_CORETYPE".to_owned(), coretype.to_owned());
    }
    env
}

impl SandboxPlan {
    /// Plan of one candidate execution (EXE: no network, view and solution read-only, `/out`).
    ///
    /// # Errors
    /// [`PlanError`], as [`SandboxPlan::check`].
    pub fn exec(inputs: &ExecInputs, host: &HostLayout) -> Result<Self, PlanError> {
        let mut layout = Layout::new(host, &inputs.python);
        layout.bind(&inputs.solution, "/solution");
        layout.views(&inputs.views);
        let plan = Self {
            schema: PLAN_SCHEMA,
            profile: Profile::Exec,
            hostname: "sandbox".to_owned(),
            outer: OUTER,
            ro_binds: layout.binds,
            work: WorkDir {
                dest: PathBuf::from("/out"),
                kind: inputs.out.clone(),
            },
            listeners: Vec::new(),
            tmp: TMP_SIZE,
            shm: TMP_SIZE,
            symlinks: layout.symlinks,
            files: etc_files(),
            argv: inputs.argv.clone(),
            env: inputs.env.clone(),
            cwd: PathBuf::from("/out"),
            limits: inputs.limits,
            time: inputs.time,
            output: inputs.output,
            #[cfg(feature = "lifted")]
            lift: Vec::new(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Plan of one Engineer session.
    ///
    /// # Errors
    /// [`PlanError`], as [`SandboxPlan::check`].
    pub fn engineer(inputs: &EngineerInputs, host: &HostLayout) -> Result<Self, PlanError> {
        let mut layout = Layout::new(host, &inputs.python);
        layout.bind(&inputs.brief, "/brief");
        layout.views(&inputs.views);
        layout.bind(&inputs.client_dir, "/run/vec");
        layout.bind(&inputs.tool, "/opt/vec/bin/vec-tool");
        for name in &inputs.tool_names {
            layout.symlinks.push(SymlinkEntry {
                path: Path::new("/opt/vec/bin").join(name),
                target: PathBuf::from("vec-tool"),
            });
        }
        let agent_name = inputs.agent.file_name().unwrap_or_default();
        layout.bind(&inputs.agent, Path::new("/opt/vec/agent").join(agent_name));
        let plan = Self {
            schema: PLAN_SCHEMA,
            profile: Profile::Engineer,
            hostname: "sandbox".to_owned(),
            outer: OUTER,
            ro_binds: layout.binds,
            work: WorkDir {
                dest: PathBuf::from("/box"),
                kind: inputs.work.clone(),
            },
            listeners: inputs.listeners.clone(),
            tmp: TMP_SIZE,
            shm: TMP_SIZE,
            symlinks: layout.symlinks,
            files: etc_files(),
            argv: inputs.argv.clone(),
            env: inputs.env.clone(),
            cwd: PathBuf::from("/box"),
            limits: inputs.limits,
            time: inputs.time,
            output: inputs.output,
            #[cfg(feature = "lifted")]
            lift: Vec::new(),
        };
        plan.check()?;
        Ok(plan)
    }
}

impl SandboxPlan {
    /// Plan of one worker of our own over untrusted bytes: its program and libraries, its inputs,
    /// `/out`.
    ///
    /// # Errors
    /// [`PlanError`], as [`SandboxPlan::check`].
    pub fn worker(inputs: &WorkerInputs, host: &HostLayout) -> Result<Self, PlanError> {
        let mut layout = Layout::new(host, &PythonBinds::default());
        layout.binds.retain(|bind| is_library(&bind.dest));
        layout.binds.extend(host.libraries.iter().cloned());
        layout.symlinks.retain(|link| is_library(&link.path));
        let name = inputs.program.file_name().unwrap_or_default();
        let program = Path::new("/worker").join(name);
        layout.bind(&inputs.program, &program);
        for (name, source) in &inputs.inputs {
            layout.bind(source, Path::new("/in").join(name));
        }
        let mut argv = vec![program.to_string_lossy().into_owned()];
        argv.extend(inputs.args.iter().cloned());
        let plan = Self {
            schema: PLAN_SCHEMA,
            profile: Profile::Worker,
            hostname: "sandbox".to_owned(),
            outer: OUTER,
            ro_binds: layout.binds,
            work: WorkDir {
                dest: PathBuf::from("/out"),
                kind: WorkKind::Memory {
                    size: inputs.out,
                    fill: None,
                },
            },
            listeners: Vec::new(),
            tmp: WORKER_TMP,
            shm: WORKER_TMP,
            symlinks: layout.symlinks,
            files: Vec::new(),
            argv,
            env: inputs.env.clone(),
            cwd: PathBuf::from("/out"),
            limits: inputs.limits,
            time: inputs.time,
            output: inputs.output,
            #[cfg(feature = "lifted")]
            lift: Vec::new(),
        };
        plan.check()?;
        Ok(plan)
    }
}

/// Is it a directory of libraries beside `/usr`, or the loader's cache?
fn is_library(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.starts_with("/lib") || name == "/etc/ld.so.cache"
}

/// A worker writes its results to `/out` alone.
const WORKER_TMP: TmpfsSize = TmpfsSize {
    bytes: 64 << 10,
    inodes: 16,
};

const OUTER: OuterIds = OuterIds {
    uid: SANDBOX_UID,
    gid: SANDBOX_GID,
};

/// Binds and links under construction.
struct Layout {
    binds: Vec<RoBind>,
    symlinks: Vec<SymlinkEntry>,
}

impl Layout {
    fn new(host: &HostLayout, python: &PythonBinds) -> Self {
        let mut layout = Self {
            binds: host.binds.clone(),
            symlinks: host.symlinks.clone(),
        };
        if let Some(prefix) = &python.prefix
            && !layout.binds.iter().any(|b| prefix.starts_with(&b.dest))
        {
            layout.bind(prefix, prefix);
        }
        if let Some(env) = &python.env {
            layout.bind(env, "/env");
        }
        layout
    }

    fn bind(&mut self, source: &Path, dest: impl Into<PathBuf>) {
        self.binds.push(RoBind {
            source: source.to_owned(),
            dest: dest.into(),
        });
    }

    fn views(&mut self, views: &[ViewBind]) {
        for view in views {
            self.bind(&view.source, Path::new("/views").join(view.id.to_string()));
        }
    }
}

/// The minimal `/etc`: one user, one host, no name service beyond files.
fn etc_files() -> Vec<TextFile> {
    let file = |path: &str, text: String| TextFile {
        path: PathBuf::from(path),
        text,
    };
    vec![
        file(
            "/etc/group",
            format!("u:x:{INSIDE_ID}:\nnogroup:x:65534:\n"),
        ),
        file(
            "/etc/hosts",
            "127.0.0.1 localhost sandbox\n::1 localhost\n".to_owned(),
        ),
        file(
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\n".to_owned(),
        ),
        file(
            "/etc/passwd",
            format!(
                "u:x:{INSIDE_ID}:{INSIDE_ID}:u:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
            ),
        ),
    ]
}
