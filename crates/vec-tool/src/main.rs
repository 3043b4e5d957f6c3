//! The one binary that is bound into Engineer sandboxes, called as `vec-score` or `vec-check` (by
//! its own name or as first argument).
//!
//! Invariants: no state, no retries (a query is charged once), every wait bounded; one clear line
//! per error. Exit codes: 0 done, 2 the prediction is not valid, 3 quota exhausted, 1 all else.

mod args;
mod call;
mod files;
mod show;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Args, ArgsError, Request};

/// Exit code of everything that has no code of its own.
const EXIT_OTHER: u8 = 1;

fn main() -> ExitCode {
    let all: Vec<OsString> = std::env::args_os().collect();
    match Args::parse(&all) {
        Ok(Request::Help) => show::out(args::USAGE).into(),
        Ok(Request::Run(args)) => run(&args),
        Err(error) => other_error(&error),
    }
}

fn run(args: &Args) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let answer = match runtime {
        Ok(runtime) => runtime.block_on(call::call(args)),
        Err(error) => return other_error(&error),
    };
    let (text, code) = if args.json {
        show::json(args.verb, &answer)
    } else {
        show::table(args.verb, &answer)
    };
    let shown = if code == 0 || args.json {
        show::out(&text)
    } else {
        show::err(&text)
    };
    if shown == 0 {
        code.into()
    } else {
        shown.into()
    }
}

fn other_error(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    let usage = if error.is::<ArgsError>() {
        args::USAGE
    } else {
        ""
    };
    show::err(&format!("vec-tool: {error}\n{usage}"));
    EXIT_OTHER.into()
}
