//! `vec-attack`: attacks on the sandbox, from inside, each under the product's plan and again with
//! the one protection lifted that is meant to stop it.
//!
//! Invariants: everything happens in a disposable namespace of mounts, processes and IPC with a
//! size-limited file system, entered before the first attack; without one nothing is attempted.
//! An attack whose control does not get through counts as `invalid`, never as `pass`.

mod bench;
mod groups;
mod inside;
mod numbers;
mod place;
mod shapes;
mod special;
mod table;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::verdict::StartMode;

/// Attacks on the sandbox.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// The product's helper.
    #[arg(long)]
    pub(crate) helper: PathBuf,
    /// Its double with protections that can be lifted.
    #[arg(long)]
    pub(crate) lifted: PathBuf,
    /// Where the report goes.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Only these cases.
    #[arg(long = "case")]
    pub(crate) cases: Vec<u8>,
    /// Leaves out what takes seconds each.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Attacks that prove nothing on this kernel are printed and do not count as a failure.
    #[arg(long)]
    pub(crate) tolerate_invalid: bool,
    /// Instead of attacks: so many pairs of starts, beside bwrap.
    #[arg(long)]
    pub(crate) bench: Option<u32>,
    /// Instead of attacks: so many runs in a row.
    #[arg(long)]
    pub(crate) soak: Option<u32>,
    /// Instead of anything else: a program whose cost inside and outside is compared.
    #[arg(long, hide = true)]
    pub(crate) load: Option<bench::Load>,
    /// Set by the program itself once it is in its disposable namespace.
    #[arg(long, hide = true)]
    pub(crate) inside: Option<PathBuf>,
    /// Set by the program itself.
    #[arg(long, hide = true)]
    pub(crate) start: Option<StartMode>,
    /// A plan to run and nothing else, for the attack that kills its supervisor.
    #[arg(long, hide = true)]
    pub(crate) supervise: Option<String>,
}

fn main() -> ExitCode {
    match inside::enter(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            inside::say(&format!("vec-attack: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
