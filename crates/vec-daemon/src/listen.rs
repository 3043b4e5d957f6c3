//! gRPC listeners on Unix sockets with a check of the peer's uid.

use std::os::unix::net::UnixListener as StdListener;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Status};

/// Who may call a daemon listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peers {
    /// These uids only (SO_PEERCRED at connect).
    Uids(Vec<u32>),
    /// Anybody who can reach the socket: client listeners, where the socket is the identity.
    Anyone,
}

/// A tonic interceptor that refuses other peers.
#[derive(Debug, Clone)]
pub struct PeerCheck(Peers);

impl PeerCheck {
    /// Lets `peers` pass.
    #[must_use]
    pub const fn new(peers: Peers) -> Self {
        Self(peers)
    }
}

impl tonic::service::Interceptor for PeerCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Peers::Uids(allowed) = &self.0 else {
            return Ok(request);
        };
        let uid = request
            .extensions()
            .get::<UdsConnectInfo>()
            .and_then(|info| info.peer_cred)
            .map(|credentials| credentials.uid());
        match uid {
            Some(uid) if allowed.contains(&uid) => Ok(request),
            Some(uid) => Err(Status::permission_denied(format!(
                "uid {uid} may not call this socket; allowed: {allowed:?}"
            ))),
            None => Err(Status::permission_denied("peer credentials are unknown")),
        }
    }
}

/// The accept stream of an inherited or bound listener.
///
/// # Errors
/// When the listener cannot be made non-blocking or registered with the runtime.
pub fn incoming(listener: StdListener) -> std::io::Result<UnixListenerStream> {
    listener.set_nonblocking(true)?;
    Ok(UnixListenerStream::new(UnixListener::from_std(listener)?))
}
