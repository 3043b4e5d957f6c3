//! `vecctl`: the command line. Verbs that change something are one call to the launcher each;
//! read-only verbs open the run directory themselves and trust no daemon (architecture §2).
//!
//! Exit codes: 0 done, 1 failed, 64 wrong arguments, 78 wrong configuration.

mod args;
mod context;
mod explain;
mod failure;
mod output;
mod render;
mod run_ref;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use vec_daemon::Exit;

fn main() -> ExitCode {
    let arguments = match args::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            };
            output::clap(&error);
            return exit.into();
        }
    };
    match verbs::run(arguments) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => {
            output::error(&error);
            failure::exit_of(&error).into()
        }
    }
}
