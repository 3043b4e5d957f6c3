//! The launcher as a process: claims its runtime directory, takes over what an earlier launcher
//! left, serves until it is told to stop. Runs outlive it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use vec_daemon::{PeerCheck, Peers};
use vec_proto::pb::launcher::v1::launcher_server::LauncherServer;

use crate::deps::Deps;
use crate::files::FileError;
use crate::instance::{Claim, Instance, InstanceError};
use crate::launcher::Launcher;
use crate::rpc::Rpc;

/// Largest accepted message: a launch request is small.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Why the launcher ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot be the launcher here.
    #[error("become the launcher")]
    Instance(#[source] InstanceError),
    /// Its books are damaged.
    #[error("read the books of the launcher before")]
    Books(#[source] FileError),
    /// Its listener failed.
    #[error("serve")]
    Listener(#[source] std::io::Error),
    /// The server failed.
    #[error("serve")]
    Serve(#[source] tonic::transport::Error),
}

/// Serves until `stop`. Returns at once, without error, when another launcher answers already.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(deps: Deps, stop: CancellationToken) -> Result<(), ServeError> {
    let claim = Instance::claim(&deps.runtime).await;
    let instance = match claim.map_err(ServeError::Instance)? {
        Claim::Ours(instance) => instance,
        Claim::Running => {
            tracing::info!(runtime = %deps.runtime.path().display(), "another launcher answers already");
            return Ok(());
        }
    };
    let peers = Peers::Uids(vec![deps.surroundings.uid]);
    let launcher = Arc::new(Launcher::new(deps).map_err(ServeError::Books)?);
    let listener = instance
        .listener
        .try_clone()
        .map_err(ServeError::Listener)?;
    let incoming = vec_daemon::incoming(listener).map_err(ServeError::Listener)?;
    // Calls wait meanwhile: a run must not be unknown because its launcher was restarted.
    launcher.adopt_all().await;
    let service = LauncherServer::new(Rpc(launcher)).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let service =
        tonic::service::interceptor::InterceptedService::new(service, PeerCheck::new(peers));
    tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await
        .map_err(ServeError::Serve)?;
    drop(instance);
    Ok(())
}
