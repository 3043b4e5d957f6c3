//! `vec-scorer`: daemon by launch spec (no arguments), `prebuild`, `parse`.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use vec_clock::SystemClock;
use vec_daemon::spec::ScorerSpec;
use vec_daemon::{Exit, InheritError, Inherited, chain};
use vec_scorer::{Deps, Parser, Server, ServerError};

/// Threads of the runtime; the metric runs on blocking threads, parsers in processes.
const THREADS: usize = 2;

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("take over from the launcher")]
    Inherit(#[source] InheritError),
    #[error("the launcher handed over no truth directory as descriptor 7")]
    NoTruth,
    #[error("{what}")]
    System {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("open the scorer")]
    Open(#[source] ServerError),
    #[error("serve")]
    Serve(#[source] ServerError),
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        None => daemon(),
        Some((verb, rest)) if verb == "parse" => vec_scorer::parse_verb(rest),
        Some((verb, [])) if verb == "prebuild" => vec_scorer::prebuild_verb(),
        Some(_) => {
            let usage = "usage: vec-scorer [prebuild | parse <bytes_max> <rows_max>]";
            drop(writeln!(std::io::stderr(), "{usage}"));
            Exit::Usage.into()
        }
    }
}

fn daemon() -> ExitCode {
    // Descriptor 6 is the journal, so tracing goes to stderr, which the launcher keeps as a log.
    vec_daemon::init_tracing(None);
    match open() {
        Ok((mut inherited, server)) => vec_daemon::run(THREADS, |stop| async move {
            let system = |what| move |source| StartError::System { what, source };
            let listener = inherited
                .listener
                .try_clone()
                .map_err(system("use the listener"))?;
            let ready = move || inherited.ready();
            server
                .serve(listener, ready, stop)
                .await
                .map_err(StartError::Serve)
        }),
        Err(error) => {
            tracing::error!(error = %chain(&error), "cannot start");
            Exit::Config.into()
        }
    }
}

fn open() -> Result<(Inherited, Server), StartError> {
    let system = |what| move |source| StartError::System { what, source };
    // Truth is in this memory: no other process of the same user may read it.
    vec_daemon::hide_memory().map_err(system("make this process unreadable to others"))?;
    let mut inherited = Inherited::take().map_err(StartError::Inherit)?;
    let spec: ScorerSpec = inherited.spec().map_err(StartError::Inherit)?;
    let truth = inherited.truth.take().ok_or(StartError::NoTruth)?;
    let journal = inherited
        .log
        .try_clone()
        .map_err(system("use the journal"))?;
    let parser = Parser::of_this_program(spec.prediction_bytes_max)
        .map_err(system("find this program's own file"))?;
    let deps = Deps {
        clock: Arc::new(SystemClock),
        parser,
    };
    let server = Server::open(spec, &truth, journal, deps).map_err(StartError::Open)?;
    Ok((inherited, server))
}
