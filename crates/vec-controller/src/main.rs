//! `vec-controller`: started by the launcher only, with everything on inherited descriptors.

use std::process::ExitCode;

use vec_controller::{ControllerError, serve};
use vec_daemon::{Exit, Inherited, chain, init_tracing};

fn main() -> ExitCode {
    let inherited = match Inherited::take() {
        Ok(inherited) => inherited,
        Err(error) => {
            init_tracing(None);
            tracing::error!(error = %chain(&error), "cannot start");
            return Exit::Config.into();
        }
    };
    init_tracing(inherited.log.try_clone().ok());
    vec_daemon::run(2, |stop| async move {
        let served: Result<(), ControllerError> = serve(inherited, stop).await;
        served
    })
}
