//! `vec-sim --seeds N [--first-seed K] [--jobs J]`: simulates seeds until one breaks an invariant.
//! Exits 1 on a breach, on a panic, and when a rule never fired in 500 seeds or more.

use std::process::ExitCode;

use clap::Parser;
use vec_sim::batch::{self, Batch};
use vec_sim::report;

/// Whole runs in virtual time, compared after every event with what must hold.
#[derive(Debug, Parser)]
#[command(name = "vec-sim")]
struct Arguments {
    /// Number of seeds.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Threads; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    batch::keep_panics_quiet();
    let outcome = batch::run(
        Batch {
            first: arguments.first_seed,
            seeds: arguments.seeds,
            jobs: arguments.jobs.unwrap_or_else(batch::cores),
        },
        &|| {},
    );
    say(&report::figures(&outcome));
    if let Some(failure) = &outcome.failure {
        say(&report::failure(failure, "cargo xtask sim"));
        return ExitCode::FAILURE;
    }
    say(&report::table(&outcome.tally));
    match report::gaps(&outcome) {
        Some(gaps) => {
            say(&gaps);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the one place where this program prints"
)]
fn say(text: &str) {
    println!("{text}");
}
