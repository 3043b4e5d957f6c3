//! `cargo xtask sim`: builds and runs the simulator of `vec-search`; with `--prove` its double with
//! planted bugs, each of which must be found.

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, command, headline, run, target_dir};

/// Arguments of the simulator.
#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Number of seeds (with `--prove`: at most so many per bug).
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Threads; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Plant bugs, one at a time, and see each of them found.
    #[arg(long)]
    prove: bool,
    /// Build with the release profile.
    #[arg(long)]
    release: bool,
}

impl SimArguments {
    /// What CI runs: 500 seeds, or every planted bug.
    pub(crate) const fn ci(prove: bool) -> Self {
        Self {
            seeds: 500,
            first_seed: 0,
            jobs: None,
            prove,
            release: false,
        }
    }
}

/// Builds the simulator and runs it.
pub(crate) fn sim(arguments: &SimArguments) -> Result<()> {
    let package = if arguments.prove {
        "vec-sim-planted"
    } else {
        "vec-sim"
    };
    headline(&format!("{package}, {} seeds", arguments.seeds));
    let mut build = vec!["build", "--quiet", "--package", package];
    if arguments.release {
        build.push("--release");
    }
    run(&mut cargo(&build))?;
    let profile = if arguments.release {
        "release"
    } else {
        "debug"
    };
    let program = target_dir().join(profile).join(package);
    let mut simulator = command(program, &[] as &[&str]);
    simulator.args(["--seeds", &arguments.seeds.to_string()]);
    simulator.args(["--first-seed", &arguments.first_seed.to_string()]);
    if let Some(jobs) = arguments.jobs {
        simulator.args(["--jobs", &jobs.to_string()]);
    }
    run(&mut simulator)
}
