//! Accepting connections: bounded in number, checked by uid, drained at stop.

use std::convert::Infallible;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{EvidenceError, Gateway};

/// Connections at a time; more wait in the backlog.
const CONNECTIONS_MAX: usize = 64;
/// Longest wait for a request's header, also between requests on one connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Calls in flight at stop get this long.
const DRAIN: Duration = Duration::from_secs(2);
/// Pause after a failed accept (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The gateway cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// Wrong descriptors or spec.
    #[error("take over what the launcher inherits")]
    Inherit(#[source] vec_daemon::InheritError),
    /// The log.
    #[error("open the evidence log")]
    Evidence(#[source] EvidenceError),
    /// The listener.
    #[error("listen on the inherited socket")]
    Listen(#[source] std::io::Error),
}

/// Serves `listener` until `stop`, then drains.
///
/// # Errors
/// [`EgressError::Listen`] when the listener cannot be registered.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: StdListener,
    stop: CancellationToken,
) -> Result<(), EgressError> {
    listener
        .set_nonblocking(true)
        .map_err(EgressError::Listen)?;
    let listener = UnixListener::from_std(listener).map_err(EgressError::Listen)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (gateway, stop) = (Arc::clone(&gateway), stop.clone());
                connections.spawn(async move {
                    connection(&gateway, stream, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!(left = connections.len(), "calls in flight are cut at stop");
    }
    Ok(())
}

async fn accept(
    listener: &UnixListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(UnixStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn connection(gateway: &Gateway, stream: UnixStream, stop: CancellationToken) {
    match stream.peer_cred() {
        Ok(peer) if gateway.spec().common.peer_uids.contains(&peer.uid()) => {}
        Ok(peer) => {
            tracing::warn!(
                uid = peer.uid(),
                "caller refused: uid is not in the launch spec"
            );
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "caller refused: uid unknown");
            return;
        }
    }
    let service =
        service_fn(|request| async { Ok::<_, Infallible>(gateway.answer(request).await) });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended early");
    }
}
