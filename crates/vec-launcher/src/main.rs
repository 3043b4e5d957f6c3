//! `vec-launcher`: one per machine and user. Not a daemon of a run, so it has arguments of its
//! own. Its log goes to stderr; `vecctl`, or the service manager, says where that is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use vec_clock::SystemClock;
use vec_daemon::Exit;
use vec_launcher::{
    DataRoot, Deps, RuntimeDir, Supervision, SupervisorChoice, Surroundings, serve,
};

/// Worker threads: launches are mostly waiting.
const THREADS: usize = 2;

/// Starts, restarts and re-adopts runs.
#[derive(Debug, Parser)]
#[command(name = "vec-launcher", version)]
struct Arguments {
    /// Runtime directory [default: $XDG_RUNTIME_DIR/vec, /run/vec as root, /tmp/vec-<uid>]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Views, truth and environments [default: $XDG_DATA_HOME/vec or ~/.local/share/vec]
    #[arg(long, value_name = "DIR")]
    data_root: Option<PathBuf>,
    /// Installed product [default: the parent of this program's directory]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Who keeps the processes of an execution together [default: VEC_SUPERVISOR, else auto]
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        env = "VEC_SUPERVISOR",
        hide_env = true
    )]
    supervisor: Option<SupervisorChoice>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            drop(error.print());
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            };
            return exit.into();
        }
    };
    vec_daemon::init_tracing(None);
    let deps = match deps(arguments) {
        Ok(deps) => deps,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "vec-launcher cannot start");
            return Exit::Config.into();
        }
    };
    vec_daemon::run(THREADS, |stop| serve(deps, stop))
}

fn deps(arguments: Arguments) -> Result<Deps> {
    let Arguments {
        runtime_dir,
        data_root,
        prefix,
        supervisor,
    } = arguments;
    let supervision = Supervision::choose(supervisor.unwrap_or(SupervisorChoice::Auto))
        .context("the supervisor `cgroup` cannot be had here; `auto` does without")?;
    tracing::info!(supervisor = supervision.words(), "process trees");
    let surroundings = Surroundings::of_this_process();
    let runtime = runtime_dir.unwrap_or_else(|| surroundings.runtime_dir());
    let data_root = data_root
        .or_else(|| surroundings.data_root())
        .context("no home directory: pass --data-root")?;
    let prefix = match prefix {
        Some(prefix) => prefix,
        None => vec_launcher::own_prefix().context("find the installed product; pass --prefix")?,
    };
    Ok(Deps {
        runtime: RuntimeDir::open(&std::path::absolute(runtime)?, surroundings.uid)?,
        data_root: DataRoot::at(std::path::absolute(data_root)?),
        prefix: std::path::absolute(prefix)?,
        surroundings,
        clock: Arc::new(SystemClock),
        supervision,
    })
}
