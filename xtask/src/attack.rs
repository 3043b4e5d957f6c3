//! `cargo xtask attack`: builds the sandbox helper, its double with protections that can be lifted, and
//! the attacks, and runs them. Exit status 1 when an attack got through or proves nothing.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, command, has, headline, run, say, target_dir};

/// Arguments of the attacks.
#[derive(Debug, Args)]
pub(crate) struct AttackArguments {
    /// Only this case; may be repeated.
    #[arg(long = "case")]
    cases: Vec<u8>,
    /// Leaves out what takes seconds each.
    #[arg(long)]
    quick: bool,
    /// Prints what proves nothing on this kernel instead of failing for it.
    #[arg(long)]
    tolerate_invalid: bool,
    /// Where `attack.json` and `attack.md` go; default: `attack` in the target directory.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl AttackArguments {
    /// What CI runs.
    pub(crate) const fn ci() -> Self {
        Self {
            cases: Vec::new(),
            quick: true,
            tolerate_invalid: true,
            out: None,
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Bench {
    /// Start-up of a sandbox beside `bwrap`.
    Sandbox,
}

/// Arguments of the start-up comparison.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// What to measure.
    what: Bench,
    /// Pairs of runs.
    #[arg(long, default_value_t = 200)]
    pairs: u32,
}

/// Start-up beside `bwrap` and what being inside costs, in the release profile.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<()> {
    let Bench::Sandbox = arguments.what;
    headline("start-up of a sandbox");
    if !has("bwrap", "--version") {
        say("SKIPPED: bwrap is not installed (Debian, Ubuntu: apt install bubblewrap)");
        return Ok(());
    }
    measured("--bench", arguments.pairs)
}

/// Many runs in a row, in the release profile.
pub(crate) fn soak(runs: u32) -> Result<()> {
    headline(&format!("{runs} sandbox runs in a row"));
    measured("--soak", runs)
}

fn measured(flag: &str, number: u32) -> Result<()> {
    run(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "vec-sandbox",
        "--package",
        "vec-attack",
    ]))?;
    let binary = |name: &str| {
        target_dir()
            .join("release")
            .join(name)
            .display()
            .to_string()
    };
    let mut words = words(&binary("vec-sandbox"), &binary("vec-sandbox"));
    // Nothing is written there.
    let out = target_dir().join("attack").display().to_string();
    words.extend(["--out".to_owned(), out, flag.to_owned(), number.to_string()]);
    run(&mut command(binary("vec-attack"), &words))
}

fn words(helper: &str, lifted: &str) -> Vec<String> {
    ["--helper", helper, "--lifted", lifted]
        .map(str::to_owned)
        .to_vec()
}

/// Builds everything and runs the attacks.
pub(crate) fn attack(arguments: &AttackArguments) -> Result<()> {
    headline("attacks on the sandbox");
    let packages = ["vec-sandbox", "vec-sandbox-lifted", "vec-attack"];
    for package in packages {
        run(&mut cargo(&["build", "--quiet", "--package", package]))?;
    }
    let binary = |name: &str| target_dir().join("debug").join(name).display().to_string();
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| target_dir().join("attack"));
    let mut words = words(&binary("vec-sandbox"), &binary("vec-sandbox-lifted"));
    words.extend(["--out".to_owned(), out.display().to_string()]);
    if arguments.quick {
        words.push("--quick".to_owned());
    }
    if arguments.tolerate_invalid {
        words.push("--tolerate-invalid".to_owned());
    }
    for case in &arguments.cases {
        words.extend(["--case".to_owned(), case.to_string()]);
    }
    run(&mut command(binary("vec-attack"), &words))
}
