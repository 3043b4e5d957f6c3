//! Channels over Unix sockets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

/// Longest path of a Unix socket in bytes: `sun_path` holds 108 with its final zero.
pub const SOCKET_PATH_MAX: usize = 107;

/// Why a daemon could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kernel cannot address such a path.
    #[error(
        "socket path {path} has {len} bytes; Unix sockets allow at most {SOCKET_PATH_MAX}: choose a shorter --runtime-dir"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
    /// Nobody listens there, or the peer did not speak gRPC.
    #[error("connect to {path}")]
    Connect {
        /// The path.
        path: PathBuf,
        /// What the transport says.
        #[source]
        source: tonic::transport::Error,
    },
    /// No connection within the time given.
    #[error("connect to {path}: no answer within {timeout_ms} ms")]
    Timeout {
        /// The path.
        path: PathBuf,
        /// The time given.
        timeout_ms: u128,
    },
}

/// Refuses a path that no Unix socket can have.
///
/// # Errors
/// [`ConnectError::PathTooLong`] above [`SOCKET_PATH_MAX`] bytes.
pub fn check_socket_path(path: &Path) -> Result<(), ConnectError> {
    let len = path.as_os_str().len();
    if len > SOCKET_PATH_MAX {
        return Err(ConnectError::PathTooLong {
            path: path.to_owned(),
            len,
        });
    }
    Ok(())
}

/// Connects to the gRPC service at `path` and proves that somebody accepts, within `timeout`.
/// The channel reconnects by itself when the daemon was restarted on the same path. Deadlines of
/// calls are the caller's (`tonic::Request::set_timeout`).
///
/// # Errors
/// [`ConnectError`], naming the path.
pub async fn connect(path: &Path, timeout: Duration) -> Result<Channel, ConnectError> {
    check_socket_path(path)?;
    let endpoint = endpoint();
    let connecting = endpoint.connect_with_connector(connector(path));
    match tokio::time::timeout(timeout, connecting).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(source)) => Err(ConnectError::Connect {
            path: path.to_owned(),
            source,
        }),
        Err(_) => Err(ConnectError::Timeout {
            path: path.to_owned(),
            timeout_ms: timeout.as_millis(),
        }),
    }
}

/// A channel that connects at its first call: for daemons that may be away at the moment. Calls
/// fail with `Unavailable` while nobody listens.
///
/// # Errors
/// [`ConnectError::PathTooLong`].
pub fn connect_lazy(path: &Path) -> Result<Channel, ConnectError> {
    check_socket_path(path)?;
    Ok(endpoint().connect_with_connector_lazy(connector(path)))
}

// The authority is never resolved: the connector ignores it.
fn endpoint() -> Endpoint {
    Endpoint::from_static("http://localhost")
}

fn connector(
    path: &Path,
) -> impl tower::Service<Uri, Response = TokioIo<UnixStream>, Error = std::io::Error, Future: Send>
+ Send
+ use<> {
    let path = path.to_owned();
    service_fn(move |_: Uri| {
        let path = path.clone();
        async move { UnixStream::connect(&path).await.map(TokioIo::new) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_path_is_tried_and_one_byte_more_is_named() {
        let fits = PathBuf::from(format!("/{}", "x".repeat(SOCKET_PATH_MAX - 1)));
        let error = connect(&fits, Duration::from_secs(2)).await;
        assert!(
            matches!(error, Err(ConnectError::Connect { .. })),
            "{error:?}"
        );

        let long = PathBuf::from(format!("/{}", "x".repeat(SOCKET_PATH_MAX)));
        let error = connect(&long, Duration::from_secs(2))
            .await
            .expect_err("long");
        let text = error.to_string();
        assert!(text.contains("108 bytes") && text.contains("107"), "{text}");
        assert!(matches!(
            connect_lazy(&long),
            Err(ConnectError::PathTooLong { .. })
        ));
    }

    #[tokio::test]
    async fn an_absent_daemon_is_named() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("s");
        let error = connect(&path, Duration::from_secs(2))
            .await
            .expect_err("absent");
        assert!(
            error.to_string().contains(path.to_str().expect("text")),
            "{error}"
        );
    }
}
