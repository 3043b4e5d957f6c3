//! One module per group of verbs.

mod calls;
mod checks;
mod explain;
mod make;
mod show;
mod watch;

use anyhow::{Context as _, Result};

use crate::args::{Arguments, BoardVerb, EnvVerb, Verb};
use crate::context::Context;

/// Runs the verb that was asked for.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { global, verb } = arguments;
    let context = Context::new(global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(dispatch(&context, verb));
    runtime.shutdown_background();
    result
}

async fn dispatch(context: &Context, verb: Verb) -> Result<()> {
    match verb {
        Verb::Launch { config, watch } => calls::launch(context, config, watch).await,
        Verb::Resume { run } => calls::resume(context, &run).await,
        Verb::Stop { run, why } => calls::stop(context, &run, &why).await,
        Verb::Status { run: Some(run) } => show::status(context, &run).await,
        Verb::Status { run: None } | Verb::List => calls::list(context).await,
        Verb::Watch { run, after } => watch::watch(context, &run, after).await,
        Verb::Show { run, node: None } => show::tree(context, &run).await,
        Verb::Show {
            run,
            node: Some(node),
        } => show::node(context, &run, node).await,
        Verb::Explain { run, node } => explain::explain(context, &run, node).await,
        Verb::Package { run } => checks::package(context, &run).await,
        Verb::Verify {
            run,
            replay,
            open,
            anchor,
        } => {
            let how = checks::How {
                replay,
                open,
                anchor,
            };
            checks::verify(context, &run, how).await
        }
        Verb::Preflight { config } => calls::preflight(context, config).await,
        Verb::Env(EnvVerb::Build { lockfile, python }) => {
            make::env(context, &lockfile, python.as_deref())
        }
        Verb::Board(BoardVerb::Build {
            board,
            data,
            replace,
        }) => make::board(context, &board, &data, replace),
    }
}
