//! `cargo xtask flips`: changes every stored value of a closed run, one at a time, rebuilds every
//! chain over the change, and wants `verify --replay` to name it. Where `tamper` asks whether a
//! changed byte is found, this asks whether a changed *fact* is, by somebody who can hash.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::demo::{DemoArguments, demo, newest_run};
use crate::shell::{cargo, headline, run, target_dir};

/// Arguments of the flip check.
#[derive(Debug, Args)]
pub(crate) struct FlipsArguments {
    /// A closed run's directory; without it a demo run is made.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

/// Prints the table; fails if a single change goes unnoticed.
pub(crate) fn flips(arguments: &FlipsArguments) -> Result<()> {
    let run_dir = match &arguments.run {
        Some(directory) => std::path::absolute(directory)?,
        None => {
            let out = target_dir().join("flips-demo");
            demo(&DemoArguments::whole(out.clone()))?;
            let runs = out.join("runs");
            runs.join(newest_run(&runs)?)
        }
    };
    headline("every stored value of the run, changed");
    let example = [
        "run",
        "--quiet",
        "--package",
        "vec-verify",
        "--example",
        "flips",
        "--",
    ];
    run(cargo(&example).arg(&run_dir))
}
