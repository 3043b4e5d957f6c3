//! Automation: builds, packs, runs and checks the product. Links no product crate; it executes
//! product binaries.

mod attack;
mod ci;
mod demo;
mod dist;
mod flips;
mod kernel;
mod node_table;
mod shell;
mod sim;
mod soak;
mod tamper;
mod tests;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::shell::say;

/// `cargo xtask <verb>`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "build, run and check vec")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a locked search run from launch to a packaged, verified result.
    Demo(demo::DemoArguments),
    /// Run every test.
    Test {
        /// Passed on to the test runner, e.g. a test name.
        filter: Vec<String>,
    },
    /// Everything that must hold before a change lands.
    Ci,
    /// House rules: tiers, who may use what, file heads and sizes.
    Tidy,
    /// Build the product into a prefix.
    Dist {
        /// Where to.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Build with the release profile.
        #[arg(long)]
        release: bool,
    },
    /// Regenerate the committed gRPC code.
    Codegen {
        /// Compare only; exit 1 on a difference.
        #[arg(long)]
        check: bool,
    },
    /// Flip, delete and reorder everything in a closed run; all of it must be found and named.
    Tamper(tamper::TamperArguments),
    /// Attack the sandbox from inside; every attack has a positive control where one is safe.
    Attack(attack::AttackArguments),
    /// Measure start-up of a sandbox beside bwrap.
    Bench(attack::BenchArguments),
    /// Run many sandboxes in a row, and many executions through a controller; nothing may be left.
    Soak(soak::SoakArguments),
    /// Test control groups on a kernel of its own that has version 2 alone.
    Kernel,
    /// Simulate the search core over seeded policies, worlds and mishaps.
    Sim(sim::SimArguments),
    /// Change every stored value of a closed run and rebuild its chains; replay must name each.
    Flips(flips::FlipsArguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Demo(arguments) => demo::demo(&arguments),
        Verb::Test { filter } => tests::test(&filter),
        Verb::Ci => ci::ci(),
        Verb::Tidy => tidy::tidy(),
        Verb::Dist { out, release } => dist::dist(out, release).map(|_| ()),
        Verb::Codegen { check } => ci::codegen(check),
        Verb::Tamper(arguments) => tamper::tamper(&arguments),
        Verb::Attack(arguments) => attack::attack(&arguments),
        Verb::Bench(arguments) => attack::bench(&arguments),
        Verb::Soak(arguments) => soak::soak(&arguments),
        Verb::Kernel => kernel::kernel(),
        Verb::Sim(arguments) => sim::sim(&arguments),
        Verb::Flips(arguments) => flips::flips(&arguments),
    }
}
