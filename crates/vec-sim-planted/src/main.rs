//! `vec-sim-planted --seeds N`: plants one bug after another in the search core and simulates up to N
//! seeds with each. Every bug must be found, and nothing must be found without one.

use std::process::ExitCode;

use clap::Parser;
use vec_search::planted::{Bug, plant};
use vec_sim_planted::batch::{self, Batch, Outcome};
use vec_sim_planted::report;

/// The simulator's proof of itself.
#[derive(Debug, Parser)]
#[command(name = "vec-sim-planted")]
struct Arguments {
    /// Seeds per bug.
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
    let mut holds = is_clean(&arguments);
    for bug in Bug::ALL {
        holds &= is_found(&arguments, bug);
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn simulate(arguments: &Arguments, bug: Option<Bug>) -> Outcome {
    batch::run(
        Batch {
            first: arguments.first_seed,
            seeds: arguments.seeds,
            jobs: arguments.jobs.unwrap_or_else(batch::cores),
        },
        &|| plant(bug),
    )
}

/// Without a bug the switch changes nothing.
fn is_clean(arguments: &Arguments) -> bool {
    let outcome = simulate(arguments, None);
    match &outcome.failure {
        Some(failure) => say(&report::failure(failure, "cargo xtask sim --prove")),
        None => say(&format!("no bug → {}", report::figures(&outcome))),
    }
    outcome.failure.is_none()
}

fn is_found(arguments: &Arguments, bug: Bug) -> bool {
    let outcome = simulate(arguments, Some(bug));
    match &outcome.failure {
        Some(failure) => say(&format!(
            "{bug:?} → found at seed {} by {}: {}",
            failure.seed,
            failure.invariant,
            report::first_chars(&failure.what)
        )),
        None => say(&format!("{bug:?} → NOT FOUND in {} seeds", outcome.seeds)),
    }
    outcome.failure.is_some()
}

#[expect(
    clippy::print_stdout,
    reason = "the one place where this program prints"
)]
fn say(text: &str) {
    println!("{text}");
}
