//! `cargo xtask demo`: sets itself up and runs the main job on real data: board, environment,
//! launch, watch, package, verify. Says what it does while it does it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::dist::dist;
use crate::node_table;
use crate::shell::{headline, output, root, run, say, target_dir};

/// Arguments of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Board: `diabetes` (data in this repository) or `housing` (needs --data).
    #[arg(long, default_value = "diabetes")]
    board: String,
    /// Directory with the board's raw data.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Nodes instead of the configuration's 16.
    #[arg(long)]
    nodes: Option<u32>,
    /// Run configuration instead of `configs/runs/<board>_demo.yaml`.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Where runs, views, truth and environments go (default `target/demo`).
    #[arg(long)]
    out: Option<PathBuf>,
}

impl DemoArguments {
    /// What CI runs.
    pub(crate) fn short() -> Self {
        Self {
            board: "diabetes".to_owned(),
            data: None,
            nodes: None,
            config: None,
            out: None,
        }
    }

    /// The demo as it is, elsewhere.
    pub(crate) fn whole(out: PathBuf) -> Self {
        Self {
            out: Some(out),
            ..Self::short()
        }
    }

    /// The smallest run that has a file of every kind.
    pub(crate) fn small(out: PathBuf) -> Self {
        Self {
            nodes: Some(2),
            out: Some(out),
            ..Self::short()
        }
    }
}

/// A `vecctl` of a prefix with its directories.
pub(crate) struct Vecctl {
    prefix: PathBuf,
    /// Its runtime directory.
    pub(crate) runtime: PathBuf,
    data_root: PathBuf,
    /// Its runs.
    pub(crate) root: PathBuf,
}

impl Vecctl {
    /// Uses `out/{data,runs}` and a short runtime directory of its own (socket paths are short).
    pub(crate) fn new(prefix: PathBuf, out: &Path) -> Result<Self> {
        let made = output(Command::new("mktemp").args(["-d", "/tmp/vec-XXXXXX"]))?;
        let (data_root, root) = (out.join("data"), out.join("runs"));
        std::fs::create_dir_all(&data_root)?;
        std::fs::create_dir_all(&root)?;
        Ok(Self {
            prefix,
            runtime: PathBuf::from(made.trim()),
            data_root: std::path::absolute(data_root)?,
            root: std::path::absolute(root)?,
        })
    }

    /// `vecctl` with its directories and these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.prefix.join("bin/vecctl"));
        command
            .arg("--runtime-dir")
            .arg(&self.runtime)
            .arg("--data-root")
            .arg(&self.data_root)
            .arg("--root")
            .arg(&self.root)
            .args(arguments);
        command
    }
}

impl Drop for Vecctl {
    // The launcher outlives vecctl by design; this one was started for us.
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.runtime.join("launcher/pid")).unwrap_or_default();
        let digits: String = pid
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        if !digits.is_empty() {
            let ended = Command::new("kill").arg(&digits).status();
            if !ended.is_ok_and(|status| status.success()) {
                say(&format!("the launcher (pid {digits}) had ended already"));
            }
        }
        if let Err(error) = std::fs::remove_dir_all(&self.runtime) {
            say(&format!(
                "could not remove {}: {error}",
                self.runtime.display()
            ));
        }
    }
}

/// The whole demo.
pub(crate) fn demo(arguments: &DemoArguments) -> Result<()> {
    let prefix = dist(None, false)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| target_dir().join("demo"));
    let board = &arguments.board;
    let data = match (&arguments.data, board.as_str()) {
        (Some(data), _) => data.clone(),
        (None, "diabetes") => root().join("tests/data/diabetes"),
        (None, _) => anyhow::bail!("--board {board} needs --data DIR with its raw data"),
    };
    let share = prefix.join("share");
    let vecctl = Vecctl::new(prefix, &out)?;

    headline(&format!("views and hidden truth of board {board}"));
    let definition = share.join(format!("configs/boards/{board}.yaml"));
    run(vecctl
        .command(&["board", "build"])
        .arg(&definition)
        .arg("--data")
        .arg(&data))?;

    if std::fs::read_to_string(&definition)?.contains("kind: venv") {
        headline("Python environment for candidates (the first time needs the package index)");
        run(vecctl
            .command(&["env", "build"])
            .arg(share.join("configs/env/candidate.lock")))?;
    }

    let default = share.join(format!("configs/runs/{board}_demo.yaml"));
    let config = arguments.config.clone().unwrap_or(default);
    headline("launch, and watch the run to its end");
    let mut launch = vecctl.command(&["launch", "--watch"]);
    launch.arg(&config);
    if let Some(nodes) = arguments.nodes {
        launch.arg("--set").arg(format!("budget.max_nodes={nodes}"));
    }
    run(&mut launch)?;

    let id = newest_run(&out.join("runs"))?;
    headline("package");
    run(&mut vecctl.command(&["package", &id]))?;
    headline("verify, with every decision re-derived");
    run(&mut vecctl.command(&["verify", "--replay", &id]))?;

    let program = vecctl.prefix.join("bin/vecctl");
    let run_dir = vecctl.root.join(&id);
    headline("isolation");
    node_table::say_isolation(&run_dir)?;
    headline("nodes: mechanism (ablation control) and view check");
    let shown = output(&mut vecctl.command(&["show", "--json", &id]))?;
    let shown = serde_json::from_str(&shown).context("read what vecctl shows")?;
    node_table::say_nodes(&shown, &run_dir)?;

    headline("next");
    say(&format!(
        "  {} show {}          # the tree, node by node",
        program.display(),
        run_dir.display()
    ));
    say(&format!(
        "  {} show {} 3        # one node: plan, program, scores",
        program.display(),
        run_dir.display()
    ));
    say(&format!(
        "  {} explain {} 3     # why it exists: its draw and its parent",
        program.display(),
        run_dir.display()
    ));
    say(&format!(
        "  less {}",
        run_dir.join("final/SELECTION.md").display()
    ));
    Ok(())
}

/// Id of the newest run below `runs` (ids begin with their time).
pub(crate) fn newest_run(runs: &Path) -> Result<String> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(runs).with_context(|| format!("list {}", runs.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains('.') {
            ids.push(name);
        }
    }
    ids.sort();
    ensure!(!ids.is_empty(), "no run below {}", runs.display());
    ids.pop().context("newest run")
}
