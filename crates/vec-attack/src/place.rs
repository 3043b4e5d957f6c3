//! Where the attacks happen: directories that the plans show, things of the host that a payload
//! must not reach, and one way to run a probe.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use tokio::sync::oneshot;
use vec_sandbox_lifted::{
    EngineerInputs, ExecInputs, HostLayout, Lift, Limits, OutputCaps, PythonBinds, RunControl,
    RunOptions, Runner, SandboxPlan, SandboxRun, TimeLimits, ViewBind, candidate_env,
};

use crate::verdict::Profile;

/// Nothing takes longer, whatever happens.
const RUN_MAX: Duration = Duration::from_secs(60);
/// A word that only our own payloads have in their command line.
pub(crate) const MARKER: &str = "vec-attack-marker-7f3a";
/// The name of a process outside.
const HOST_MARKER: &str = "vec-attack-outside-5c1d";
/// A word that only the driver's environment holds.
pub(crate) const SECRET: &str = "vec-attack-secret-19c2";
/// Loopback port that init opens in Engineer plans.
pub(crate) const LISTENER: u16 = 18_080;
/// Kept free of any view or work directory.
const PROBES: [(&str, &str); 5] = [
    ("common.py", include_str!("../probes/common.py")),
    ("files.py", include_str!("../probes/files.py")),
    ("network.py", include_str!("../probes/network.py")),
    ("probe.py", include_str!("../probes/probe.py")),
    ("processes.py", include_str!("../probes/processes.py")),
];

/// What a probe answered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Answer {
    /// The attacker got what it wanted.
    pub(crate) got: bool,
    /// What it saw.
    pub(crate) detail: String,
}

/// One probe, run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its last line, if it lived to write one.
    pub(crate) answer: Option<Answer>,
    /// Everything else.
    pub(crate) run: SandboxRun,
}

impl Ran {
    /// What was seen, in words.
    pub(crate) fn words(&self) -> String {
        match &self.answer {
            Some(answer) => answer.detail.clone(),
            None => {
                let stderr = String::from_utf8_lossy(&self.run.stderr.bytes);
                let report = &self.run.report;
                let setup = report.setup_error.as_ref().map(ToString::to_string);
                format!(
                    "no answer: {:?}, ended by {:?} {} {}",
                    report.exit,
                    report.ended_by,
                    setup.unwrap_or_default(),
                    stderr.lines().last().unwrap_or_default()
                )
            }
        }
    }
}

/// Directories and bait of one start mode.
#[derive(Debug)]
pub(crate) struct Place {
    dir: PathBuf,
    host: HostLayout,
    helper: PathBuf,
    lifted: PathBuf,
    /// A process of the host that a payload must not see.
    bait: Child,
    port: u16,
    abstract_name: String,
    shm_key: i32,
}

/// Makes the directories; root does it for both modes, so that it can mount below the view.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    for (name, mode) in [
        ("", 0o755),
        ("probes", 0o755),
        ("view", 0o777),
        ("view/sub", 0o777),
        ("work", 0o777),
        ("client", 0o777),
        ("client2", 0o777),
        ("tool", 0o755),
        ("foreign", 0o700),
    ] {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
    }
    for path in ["view/victim", "client/victim"] {
        let path = dir.join(path);
        std::fs::write(&path, "untouched\n")?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
    }
    for (name, text) in PROBES {
        std::fs::write(dir.join("probes").join(name), text)?;
    }
    std::fs::write(dir.join("probes/syscalls.json"), crate::numbers::json())?;
    std::fs::copy("/bin/true", dir.join("tool/true")).context("copy /bin/true")?;
    Ok(())
}

impl Place {
    /// Opens what a payload must not reach: a TCP listener, an abstract socket, shared memory.
    pub(crate) fn open(dir: &Path, helper: &Path, lifted: &Path) -> Result<Self> {
        let tcp = TcpListener::bind("127.0.0.1:0").context("listen on loopback")?;
        let port = tcp.local_addr()?.port();
        let abstract_name = format!("vec-attack-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name)?;
        let unix = UnixListener::bind_addr(&address).context("listen on an abstract socket")?;
        for client in ["client/s", "client2/s"] {
            let path = dir.join(client);
            let socket = UnixListener::bind(&path).context("listen for a client")?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
            std::thread::spawn(move || greet(|| socket.accept().map(|(stream, _)| stream)));
        }
        std::thread::spawn(move || greet(|| tcp.accept().map(|(stream, _)| stream)));
        std::thread::spawn(move || greet(|| unix.accept().map(|(stream, _)| stream)));
        Ok(Self {
            dir: dir.canonicalize()?,
            host: HostLayout::detect()?,
            helper: helper.to_owned(),
            lifted: lifted.to_owned(),
            bait: Command::new("sleep")
                .arg0(HOST_MARKER)
                .arg("600")
                .spawn()
                .context("start a process to be hidden")?,
            port,
            abstract_name,
            shm_key: crate::numbers::shared_memory()?,
        })
    }

    /// Ends the process that nobody shall see, where nobody looks for it.
    pub(crate) fn without_bait(&mut self) {
        let _ = self.bait.kill();
        let _ = self.bait.wait();
    }

    /// A path of the host side.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// `{…}` in a probe's argument.
    fn fill(&self, profile: Profile, argument: &str) -> String {
        let work = match profile {
            Profile::Exec => "/out",
            Profile::Engineer => "/box",
        };
        argument
            .replace("{view}", "/views/main")
            .replace("{work}", work)
            .replace("{marker}", MARKER)
            .replace("{host_marker}", HOST_MARKER)
            .replace("{secret}", SECRET)
            .replace("{port}", &self.port.to_string())
            .replace("{listener}", &LISTENER.to_string())
            .replace("{abstract}", &self.abstract_name)
            .replace("{shm_key}", &self.shm_key.to_string())
    }

    /// The product's plan for a probe.
    pub(crate) fn plan(&self, profile: Profile, probe: &str, args: &[&str]) -> Result<SandboxPlan> {
        let directory = match profile {
            Profile::Exec => "/solution",
            Profile::Engineer => "/brief",
        };
        let mut argv = vec!["/usr/bin/python3".to_owned(), "-B".to_owned()];
        argv.push(format!("{directory}/probe.py"));
        argv.push(probe.to_owned());
        argv.extend(args.iter().map(|argument| self.fill(profile, argument)));
        let views = vec![ViewBind {
            id: "main".parse()?,
            source: self.path("view"),
        }];
        let env = candidate_env(1, false, None);
        let limits = Limits::of_memory(512 << 20, 16 << 20, 1);
        let time = TimeLimits {
            deadline_ms: 30_000,
            grace_ms: 500,
        };
        let output = OutputCaps::standard();
        let mut plan = match profile {
            Profile::Exec => SandboxPlan::exec(
                &ExecInputs {
                    solution: self.path("probes"),
                    views,
                    out: crate::shapes::work(),
                    python: PythonBinds::default(),
                    argv,
                    env,
                    limits,
                    time,
                    output,
                },
                &self.host,
            ),
            Profile::Engineer => SandboxPlan::engineer(
                &EngineerInputs {
                    work: crate::shapes::work(),
                    brief: self.path("probes"),
                    views,
                    client_dir: self.path("client"),
                    tool: self.path("tool/true"),
                    tool_names: vec!["vec-score".to_owned()],
                    agent: self.path("tool/true"),
                    python: PythonBinds::default(),
                    listeners: vec![LISTENER],
                    argv,
                    env,
                    limits,
                    time,
                    output,
                },
                &self.host,
            ),
        }?;
        plan.resolve_sources()?;
        Ok(plan)
    }

    /// Runs a plan: with nothing lifted by the product's own helper, else by its double.
    pub(crate) async fn run(&self, plan: &SandboxPlan, control: RunControl) -> Result<Ran> {
        let (started, announced) = oneshot::channel();
        let options = RunOptions {
            started: Some(started),
            ..RunOptions::default()
        };
        let ran = self.run_with(plan, control, options).await;
        // Whoever serves a listener keeps it: until here its port is taken.
        drop(announced);
        ran
    }

    /// The same with options.
    pub(crate) async fn run_with(
        &self,
        plan: &SandboxPlan,
        control: RunControl,
        options: RunOptions,
    ) -> Result<Ran> {
        let helper = if plan.lift.is_empty() {
            &self.helper
        } else {
            &self.lifted
        };
        let runner = Runner::new(helper);
        let running = runner.run_with(plan, control, options);
        let run = tokio::time::timeout(RUN_MAX, running)
            .await
            .context("the sandbox did not end in a minute")??;
        let text = String::from_utf8_lossy(&run.stdout.bytes).into_owned();
        let answer = text
            .lines()
            .rev()
            .find_map(|l| serde_json::from_str(l).ok());
        Ok(Ran { answer, run })
    }

    /// The helper that applies a plan.
    pub(crate) fn helper_of(&self, plan: &SandboxPlan) -> &std::ffi::OsStr {
        if plan.lift.is_empty() {
            self.helper.as_os_str()
        } else {
            self.lifted.as_os_str()
        }
    }

    /// Builds and runs the plan of one probe.
    pub(crate) async fn probe(
        &self,
        profile: Profile,
        probe: &str,
        args: &[&str],
        lifts: &[&str],
    ) -> Result<Ran> {
        let mut plan = self.plan(profile, probe, args)?;
        plan.lift = lifts.iter().map(|name| lift(name)).collect::<Result<_>>()?;
        self.run(&plan, RunControl::new()).await
    }

    /// What a payload may not have changed on the host.
    pub(crate) fn is_untouched(&self) -> bool {
        let read = |name: &str| std::fs::read_to_string(self.path(name)).unwrap_or_default();
        let names = |name: &str| {
            let entries = std::fs::read_dir(self.path(name)).into_iter().flatten();
            entries.count()
        };
        read("view/victim") == "untouched\n"
            && read("client/victim") == "untouched\n"
            && names("view") == 2
            && names("view/sub") == 0
            && names("client") == 2
    }

    /// Undoes what a control was allowed to do.
    pub(crate) fn mend(&self) -> Result<()> {
        for directory in ["view", "view/sub", "client"] {
            for entry in std::fs::read_dir(self.path(directory))? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    std::fs::remove_file(entry.path())?;
                }
            }
        }
        for path in ["view/victim", "client/victim"] {
            let path = self.path(path);
            std::fs::write(&path, "untouched\n")?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It ends by itself too.
        let _ = self.bait.kill();
        let _ = self.bait.wait();
    }
}

/// A lift by the name that it has in a plan.
pub(crate) fn lift(name: &str) -> Result<Lift> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .with_context(|| format!("no protection is called {name:?}"))
}

/// Greets whoever comes, for ever.
fn greet<S: std::io::Write>(accept: impl Fn() -> std::io::Result<S>) {
    while let Ok(mut stream) = accept() {
        // The peer may be gone already.
        let _ = stream.write_all(b"hello");
    }
}

/// Live processes whose command line holds `marker`.
pub(crate) fn processes_with(marker: &str) -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let lines = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        std::fs::read(path.join("cmdline")).ok()
    });
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(marker))
        .count()
}
