//! `vec-playbook serve` (daemon, started by the launcher) and `vec-playbook engineer` (agent,
//! started inside the Engineer sandbox).

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;
use vec_daemon::spec::PlaybookSpec;
use vec_daemon::{Exit, InheritError, Inherited, chain};
use vec_playbook::{Playbook, ServeError, engineer, serve};

/// The scripted model and Engineer: an offline double.
#[derive(Debug, Parser)]
#[command(name = "vec-playbook", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the scripted model; descriptors and spec are inherited from vec-launcher.
    Serve,
    /// Play one Engineer session in the current directory, which holds solution/.
    Engineer {
        /// Directory with BRIEF.json and PLAN.json.
        #[arg(long, default_value = "/brief")]
        brief: PathBuf,
    },
}

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => match arguments.verb {
            Verb::Serve => {
                // Before the runtime: it would open descriptors where the launcher's should be.
                let inherited = Inherited::take();
                let log = inherited.as_ref().ok().and_then(|i| i.log.try_clone().ok());
                vec_daemon::init_tracing(log);
                vec_daemon::run(1, |stop| run_serve(inherited, stop))
            }
            Verb::Engineer { brief } => run_engineer(&brief),
        },
        Err(error) => {
            let is_help = error.exit_code() == 0;
            let _ = error.print();
            if is_help { Exit::Ok } else { Exit::Usage }.into()
        }
    }
}

async fn run_serve(
    inherited: Result<Inherited, InheritError>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let mut inherited = inherited.map_err(ServeError::Inherit)?;
    let spec: PlaybookSpec = inherited.spec().map_err(ServeError::Inherit)?;
    let playbook = Playbook::load(&spec.playbook).map_err(ServeError::Playbook)?;
    let listener = inherited.listener.try_clone().map_err(ServeError::Listen)?;
    tracing::info!(run = %spec.common.run, board = %playbook.board, "scripted model starts");
    inherited.ready().map_err(ServeError::Inherit)?;
    drop(inherited);
    let uids = spec.common.peer_uids;
    serve(playbook, spec.search_seed, uids, listener, stop).await
}

fn run_engineer(brief: &std::path::Path) -> ExitCode {
    let scratch = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match (runtime, std::env::current_dir()) {
        (Ok(runtime), Ok(work)) => {
            let mut events = std::io::stdout().lock();
            runtime
                .block_on(engineer(brief, &work, &scratch, &mut events))
                .map_err(|error| chain(&error).to_string())
        }
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    match result {
        Ok(()) => Exit::Ok.into(),
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "vec-playbook engineer: {problem}");
            Exit::Failure.into()
        }
    }
}
