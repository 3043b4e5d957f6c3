//! `vec-egress`: started by the launcher, one per run.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use vec_clock::SystemClock;
use vec_daemon::spec::EgressSpec;
use vec_daemon::{InheritError, Inherited};
use vec_egress::{EgressError, Evidence, Gateway, serve};

/// Worker threads: calls wait most of the time.
const THREADS: usize = 2;

fn main() -> ExitCode {
    // The inherited log is evidence; tracing goes to stderr.
    vec_daemon::init_tracing(None);
    // Before the runtime: it would open descriptors where the launcher's should be.
    let inherited = Inherited::take();
    vec_daemon::run(THREADS, |stop| run(inherited, stop))
}

async fn run(
    inherited: Result<Inherited, InheritError>,
    stop: CancellationToken,
) -> Result<(), EgressError> {
    let mut inherited = inherited.map_err(EgressError::Inherit)?;
    let spec: EgressSpec = inherited.spec().map_err(EgressError::Inherit)?;
    let log = inherited.log.try_clone().map_err(EgressError::Listen)?;
    let listener = inherited
        .listener
        .try_clone()
        .map_err(EgressError::Listen)?;
    let (evidence, calls) = Evidence::open(log).map_err(EgressError::Evidence)?;
    tracing::info!(run = %spec.common.run, start = spec.common.start, calls, "model gateway starts");
    let gateway = Arc::new(Gateway::new(spec, evidence, calls, Arc::new(SystemClock)));
    inherited.ready().map_err(EgressError::Inherit)?;
    drop(inherited);
    serve(gateway, listener, stop).await
}
