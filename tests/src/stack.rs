//! One data root, one run root, one short runtime directory, one launcher.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::product::{prefix, repository};
use crate::run::WatchedRun;

/// A machine of its own, as far as vec can tell. Ends its launcher when dropped.
#[derive(Debug)]
pub struct Stack {
    prefix: PathBuf,
    runtime: TempDir,
    home: TempDir,
    supervisor: &'static str,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// It ended with status 0.
    pub ok: bool,
    /// Its exit status.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            ok: output.status.success(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// Fails the test unless the command succeeded; returns what it said.
    ///
    /// # Panics
    /// With everything that the command said.
    pub fn expect_ok(self) -> Self {
        assert!(
            self.ok,
            "exit {:?}\n{}\n{}",
            self.code, self.stdout, self.stderr
        );
        self
    }

    /// Fails the test unless the command was refused, with one line that holds every word.
    ///
    /// # Panics
    /// When it succeeded or does not say so.
    pub fn expect_refused(&self, words: &[&str]) {
        assert!(!self.ok, "should be refused: {}", self.stdout);
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is not in: {}",
                self.stderr
            );
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

impl Stack {
    /// A stack without any board.
    ///
    /// # Panics
    /// When temporary directories cannot be made.
    #[must_use]
    pub fn empty() -> Self {
        let runtime = tempfile::Builder::new()
            .prefix("vec")
            .rand_bytes(6)
            .tempdir_in("/tmp")
            .expect("make a runtime directory");
        let home = tempfile::tempdir().expect("make a home directory");
        for name in ["data", "runs"] {
            std::fs::create_dir(home.path().join(name)).expect("make a directory");
        }
        Self {
            prefix: prefix(),
            runtime,
            home,
            supervisor: "auto",
        }
    }

    /// The launcher that the next command starts has this supervisor.
    #[must_use]
    pub const fn supervised_by(mut self, supervisor: &'static str) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Changes it; a launcher that runs keeps its own.
    pub const fn set_supervisor(&mut self, supervisor: &'static str) {
        self.supervisor = supervisor;
    }

    /// A stack with the `diabetes` board built.
    ///
    /// # Panics
    /// When the board cannot be built.
    #[must_use]
    pub fn with_diabetes() -> Self {
        let stack = Self::empty();
        stack
            .build_diabetes(&repository().join("tests/data/diabetes"), &[])
            .expect_ok();
        stack
    }

    /// `vecctl board build` for `diabetes` with raw data from `data`.
    #[must_use]
    pub fn build_diabetes(&self, data: &Path, more: &[&str]) -> Said {
        self.build("diabetes", data, more)
    }

    /// `vecctl board build` for a shipped board.
    #[must_use]
    pub fn build(&self, board: &str, data: &Path, more: &[&str]) -> Said {
        let board = self.config(&format!("boards/{board}.yaml"));
        let mut command = self.vecctl(["board", "build"]);
        command.arg(board).arg("--data").arg(data).args(more);
        said(&mut command)
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// A file of `share/configs`.
    #[must_use]
    pub fn config(&self, name: &str) -> PathBuf {
        self.prefix.join("share/configs").join(name)
    }

    /// `--data-root`.
    #[must_use]
    pub fn data_root(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// `--root`.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.home.path().join("runs")
    }

    /// `--runtime-dir`.
    #[must_use]
    pub fn runtime(&self) -> &Path {
        self.runtime.path()
    }

    /// A directory for the test's own files.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `vecctl` with this stack's directories.
    pub fn vecctl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.prefix.join("bin/vecctl"));
        command
            .arg("--runtime-dir")
            .arg(self.runtime.path())
            .arg("--data-root")
            .arg(self.data_root())
            .arg("--root")
            .arg(self.root())
            .args(arguments)
            .env("VEC_SUPERVISOR", self.supervisor)
            .stdin(Stdio::null());
        command
    }

    /// Runs `vecctl` to its end.
    #[must_use]
    pub fn say<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        said(&mut self.vecctl(arguments))
    }

    /// Launches a configuration of `share/configs/runs` and watches it.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    pub fn launch(&self, config: &str, sets: &[&str]) -> WatchedRun<'_> {
        let path = self.config(&format!("runs/{config}.yaml"));
        let mut command = self.vecctl(["launch"]);
        command.arg(path);
        for set in sets {
            command.arg("--set").arg(set);
        }
        let said = said(&mut command).expect_ok();
        let run = said
            .stdout
            .split_whitespace()
            .find(|word| is_run_id(word))
            .unwrap_or_else(|| panic!("no run id in: {}", said.stdout))
            .to_owned();
        WatchedRun::watch(self, run)
    }

    /// Starts one more launcher by hand and waits for its end.
    #[must_use]
    pub fn another_launcher(&self) -> Said {
        let mut command = Command::new(self.prefix.join("bin/vec-launcher"));
        command
            .env("VEC_SUPERVISOR", self.supervisor)
            .arg("--runtime-dir")
            .arg(self.runtime.path())
            .arg("--data-root")
            .arg(self.home.path().join("data"))
            .arg("--prefix")
            .arg(&self.prefix);
        said(&mut command)
    }

    /// The run's own runtime directory.
    #[must_use]
    pub fn run_runtime(&self, run: &str) -> PathBuf {
        self.runtime.path().join(format!("r/{}", run8(run)))
    }

    /// Pid of a daemon: `launcher`, or a service of a run.
    #[must_use]
    pub fn pid(&self, run: Option<&str>, service: &str) -> Option<u32> {
        let path = match run {
            None => self.runtime.path().join("launcher/pid"),
            Some(run) => self.run_runtime(run).join(service).join("pid"),
        };
        let text = std::fs::read_to_string(path).ok()?;
        let digits: String = text
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    }

    /// SIGKILL for a daemon, as an operator or the OOM killer would. It may still be dying when
    /// this returns.
    ///
    /// # Panics
    /// When there is no such process.
    pub fn kill(&self, run: Option<&str>, service: &str) {
        let pid = self
            .pid(run, service)
            .unwrap_or_else(|| panic!("{service} has no pidfile"));
        let killed = Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
        assert!(
            killed.is_ok_and(|status| status.success()),
            "kill {service} ({pid})"
        );
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let Ok(output) = Command::new("pgrep")
            .args(["-f", &format!("{}", self.runtime.path().display())])
            .output()
        else {
            return;
        };
        for pid in String::from_utf8_lossy(&output.stdout).split_whitespace() {
            if pid != std::process::id().to_string() {
                drop(Command::new("kill").args(["-KILL", pid]).status());
            }
        }
        for service in ["launcher"] {
            if let Some(pid) = self.pid(None, service) {
                drop(
                    Command::new("kill")
                        .arg(pid.to_string())
                        .stderr(Stdio::null())
                        .status(),
                );
            }
        }
    }
}

/// First 8 hex digits of sha256(run id).
fn run8(run: &str) -> String {
    run.parse::<vec_types::RunId>()
        .map(|run| run.run8())
        .unwrap_or_default()
}

fn is_run_id(word: &str) -> bool {
    word.parse::<vec_types::RunId>().is_ok()
}

fn said(command: &mut Command) -> Said {
    command
        .output()
        .unwrap_or_else(|error| panic!("start {command:?}: {error}"))
        .into()
}
