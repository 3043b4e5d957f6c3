//! Exit codes, the error chain in logs, and the frame around a daemon's life.

use std::fmt;
use std::future::Future;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How a process ends (also used by `vecctl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Anything that is not below.
    Failure = 1,
    /// Wrong arguments (EX_USAGE).
    Usage = 64,
    /// Wrong configuration or launch spec (EX_CONFIG).
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with its sources, joined by `: `.
pub struct ErrorChain<'a>(&'a (dyn std::error::Error + 'static));

impl fmt::Debug for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// `error` with its sources, for one log field.
#[must_use]
pub fn chain<'a>(error: &'a (dyn std::error::Error + 'static)) -> ErrorChain<'a> {
    ErrorChain(error)
}

/// Runs a daemon: builds the runtime, turns SIGTERM and SIGINT into a cancelled token (a second
/// one ends the process at once), logs a failure once and returns its exit code.
pub fn run<F, E>(threads: usize, body: impl FnOnce(CancellationToken) -> F) -> ExitCode
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error + 'static,
{
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(error = %chain(&error), "cannot start the runtime");
            return Exit::Failure.into();
        }
    };
    let code = runtime.block_on(async {
        let stop = CancellationToken::new();
        let watcher = tokio::spawn(cancel_on_signal(stop.clone()));
        let result = body(stop).await;
        watcher.abort();
        match result {
            Ok(()) => Exit::Ok,
            Err(error) => {
                tracing::error!(error = %chain(&error), "daemon failed");
                last_words(&error);
                Exit::Failure
            }
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    code.into()
}

// Tracing may go to a log; whoever started the daemon reads stderr.
fn last_words(error: &(dyn std::error::Error + 'static)) {
    use std::io::Write as _;
    let written = writeln!(std::io::stderr(), "{}", chain(error));
    if let Err(error) = written {
        tracing::debug!(%error, "nobody reads stderr");
    }
}

/// Ends this process with SIGKILL, as a crash test or an operator would from outside: nothing is
/// flushed, nothing cleaned up.
pub fn kill_self() -> ! {
    let sent = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    tracing::error!(?sent, "SIGKILL did not end this process");
    std::process::abort()
}

/// The effective uid of this process.
#[must_use]
pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

async fn cancel_on_signal(stop: CancellationToken) {
    let (Ok(mut term), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!("cannot install signal handlers; stopping");
        stop.cancel();
        return;
    };
    let mut seen = 0;
    loop {
        tokio::select! {
            received = term.recv() => if received.is_none() { return },
            received = interrupt.recv() => if received.is_none() { return },
        }
        seen += 1;
        if seen == 1 {
            stop.cancel();
        } else {
            tracing::warn!("second signal: ending at once");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("open the door")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn chains_print_every_source_once() {
        let error = Outer(std::io::Error::other("no key"));
        assert_eq!(chain(&error).to_string(), "open the door: no key");
    }
}
