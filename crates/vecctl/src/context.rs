//! Where things are for this call, and the launcher: found, or started when there is none.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tonic::transport::Channel;
use vec_launcher::{DataRoot, RuntimeDir, Surroundings};
use vec_proto::pb::launcher::v1::launcher_client::LauncherClient;
use vec_scope::{SpawnRequest, Supervisor};

use crate::args::Global;
use crate::run_ref::RunRef;

/// Longest wait for a launcher that answers already.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for a launcher that is being started.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// Time between two looks at a launcher that is being started.
const START_POLL: Duration = Duration::from_millis(20);

/// Lines from the end of a launcher's log that are searched for why it did not start.
const CAUSE_LINES_MAX: usize = 10;

/// Variables that a launcher needs.
const LAUNCHER_ENVIRONMENT: [&str; 7] = [
    "PATH",
    "LANG",
    "HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "RUST_BACKTRACE",
    "VEC_SUPERVISOR",
];

/// Directories and habits of this call.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) runtime: PathBuf,
    pub(crate) data: DataRoot,
    /// As given; the launcher chooses where none is.
    pub(crate) root: Option<PathBuf>,
    pub(crate) prefix: PathBuf,
    pub(crate) json: bool,
    surroundings: Surroundings,
}

impl Context {
    /// Fills in what was not given.
    pub(crate) fn new(global: Global) -> Result<Self> {
        let Global {
            runtime_dir,
            data_root,
            root,
            prefix,
            json,
        } = global;
        let surroundings = Surroundings::of_this_process();
        let runtime = runtime_dir.unwrap_or_else(|| surroundings.runtime_dir());
        let data = data_root
            .or_else(|| surroundings.data_root())
            .context("no home directory: pass --data-root")?;
        let prefix = match prefix {
            Some(prefix) => prefix,
            None => {
                vec_launcher::own_prefix().context("find the installed product; pass --prefix")?
            }
        };
        Ok(Self {
            runtime: std::path::absolute(runtime)?,
            data: DataRoot::at(std::path::absolute(data)?),
            root: root.map(std::path::absolute).transpose()?,
            prefix: std::path::absolute(prefix)?,
            json,
            surroundings,
        })
    }

    /// RUN of the command line.
    pub(crate) fn run(&self, text: &str) -> Result<RunRef> {
        let defaults = [false, true]
            .into_iter()
            .filter_map(|formal| self.surroundings.root(formal));
        let roots: Vec<PathBuf> = self.root.iter().cloned().chain(defaults).collect();
        RunRef::parse(text, &roots, &self.data)
    }

    /// A launcher that answers, started if there is none.
    pub(crate) async fn launcher(&self) -> Result<LauncherClient<Channel>> {
        if let Some(client) = self.running_launcher().await {
            return Ok(client);
        }
        self.start_launcher().await
    }

    /// The launcher, if there is one or if runs need one; read-only verbs do without otherwise.
    pub(crate) async fn launcher_if_needed(&self) -> Result<Option<LauncherClient<Channel>>> {
        if let Some(client) = self.running_launcher().await {
            return Ok(Some(client));
        }
        let runs = RuntimeDir::at(self.runtime.clone()).runs();
        let orphaned = std::fs::read_dir(runs).is_ok_and(|mut entries| entries.next().is_some());
        if orphaned {
            return self.start_launcher().await.map(Some);
        }
        Ok(None)
    }

    async fn running_launcher(&self) -> Option<LauncherClient<Channel>> {
        let socket = RuntimeDir::at(self.runtime.clone()).launcher_socket();
        vec_launcher::answering(&socket, CONNECT_TIMEOUT).await
    }

    async fn start_launcher(&self) -> Result<LauncherClient<Channel>> {
        let runtime = RuntimeDir::open(&self.runtime, self.surroundings.uid)?;
        let log = runtime.launcher().join("log");
        let stderr = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .with_context(|| format!("open {}", log.display()))?;
        let words = |path: &std::path::Path| path.display().to_string();
        let request = SpawnRequest {
            name: "vec-launcher".to_owned(),
            program: self.prefix.join("bin/vec-launcher"),
            args: vec![
                "--runtime-dir".to_owned(),
                words(runtime.path()),
                "--data-root".to_owned(),
                words(self.data.path()),
                "--prefix".to_owned(),
                words(&self.prefix),
            ],
            env: environment(),
            cwd: PathBuf::from("/"),
            fds: Vec::new(),
            stderr,
            // Its own pid file is written once it holds the lock.
            pidfile: runtime.launcher().join("spawned"),
        };
        let unit = Supervisor::Plain
            .spawn(request)
            .context("start vec-launcher")?;
        let answers = async {
            loop {
                if let Some(client) = self.running_launcher().await {
                    return client;
                }
                tokio::time::sleep(START_POLL).await;
            }
        };
        tokio::select! {
            client = answers => Ok(client),
            // Another one may have been faster.
            _ = unit.wait() => match self.running_launcher().await {
                Some(client) => Ok(client),
                None => bail!("vec-launcher did not start: {}", last_line(&log)),
            },
            () = tokio::time::sleep(START_TIMEOUT) => {
                bail!("vec-launcher does not answer; see {}", log.display())
            }
        }
    }
}

fn environment() -> BTreeMap<String, String> {
    LAUNCHER_ENVIRONMENT
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect()
}

fn last_line(log: &std::path::Path) -> String {
    cause(&std::fs::read_to_string(log).unwrap_or_default())
}

/// What a launcher that did not start said last: the error of its log line, or the first line of a
/// refused command line.
fn cause(log: &str) -> String {
    let said = |line: &str| {
        let logged = serde_json::from_str::<serde_json::Value>(line).ok();
        let error = logged.as_ref().and_then(|l| l["fields"]["error"].as_str());
        error
            .or_else(|| line.strip_prefix("error: "))
            .map(str::to_owned)
    };
    let mut lines = log.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next().unwrap_or("it said nothing");
    let found = lines.by_ref().take(CAUSE_LINES_MAX).find_map(said);
    found.unwrap_or_else(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_launcher_that_did_not_start() {
        let refused = "old\n\nerror: invalid value 'x' for '--supervisor <NAME>'\n  [possible values: auto]\n\nFor more information, try '--help'.\n";
        assert!(cause(refused).starts_with("invalid value 'x'"));
        let logged =
            r#"{"level":"ERROR","fields":{"message":"cannot start","error":"no home directory"}}"#;
        assert_eq!(
            cause(&format!("error: older\n{logged}\n")),
            "no home directory"
        );
        assert_eq!(cause("panicked\n\n"), "panicked");
        assert_eq!(cause(""), "it said nothing");
    }
}
