//! Client sockets: bound on registration as `<dir>/scorer.s` (0666: the directory decides who
//! reaches it), unlinked on close, bound again after a restart.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::Connected;
use vec_daemon::{PeerCheck, Peers, chain};
use vec_proto::pb::scorer::v1::client_server::ClientServer;
use vec_proto::{ConnectError, UPLOAD_PIECE_BYTES, check_socket_path};

use crate::client_service::{ClientService, Shared};

/// Socket name in a client directory.
pub const SOCKET_NAME: &str = "scorer.s";

/// Connections of one client at a time; more are closed at once.
pub const CLIENT_CONNECTIONS_MAX: usize = 64;

/// Calls on one connection at a time.
const STREAMS_PER_CONNECTION_MAX: u32 = 8;

/// Room for the message around one piece.
pub(crate) const MESSAGE_BYTES_MAX: usize = UPLOAD_PIECE_BYTES + (64 << 10);

/// Longest request headers of a client.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// Why a client's socket is not there.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The directory is not one of this run.
    #[error("client directory {dir} is not an existing directory below {clients_dir}")]
    Directory {
        /// What was asked for.
        dir: PathBuf,
        /// Where client directories are.
        clients_dir: PathBuf,
    },
    /// The path is too long for a Unix socket.
    #[error(transparent)]
    Path(ConnectError),
    /// The socket cannot be made.
    #[error("bind client socket {path}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    stop: CancellationToken,
}

/// All open client sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    clients_dir: PathBuf,
    shared: Shared,
    open: Mutex<BTreeMap<String, Open>>,
}

impl Listeners {
    pub(crate) fn new(clients_dir: PathBuf, shared: Shared) -> Self {
        Self {
            clients_dir,
            shared,
            open: Mutex::default(),
        }
    }

    /// May a client's socket stand in `dir`?
    ///
    /// # Errors
    /// [`ListenError::Directory`] and [`ListenError::Path`].
    pub(crate) fn check_dir(&self, dir: &Path) -> Result<PathBuf, ListenError> {
        let path = dir.join(SOCKET_NAME);
        check_socket_path(&path).map_err(ListenError::Path)?;
        let below = || -> io::Result<bool> {
            let (dir, parent) = (dir.canonicalize()?, self.clients_dir.canonicalize()?);
            Ok(dir.is_dir() && dir != parent && dir.starts_with(parent))
        };
        if dir.is_absolute() && below().unwrap_or(false) {
            Ok(path)
        } else {
            let clients_dir = self.clients_dir.clone();
            Err(ListenError::Directory {
                dir: dir.to_owned(),
                clients_dir,
            })
        }
    }

    /// Binds the socket of `client` unless it is bound.
    ///
    /// # Errors
    /// [`ListenError`].
    pub(crate) fn open(&self, client: &str, dir: &Path) -> Result<(), ListenError> {
        let path = self.check_dir(dir)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(client) {
            return Ok(());
        }
        let bound = bind(&path).and_then(vec_daemon::incoming);
        let incoming = bound.map_err(|source| ListenError::Bind {
            path: path.clone(),
            source,
        })?;
        let connections = Arc::new(Semaphore::new(CLIENT_CONNECTIONS_MAX));
        let incoming = incoming.filter_map(move |stream| match stream {
            Ok(stream) => match Arc::clone(&connections).try_acquire_owned() {
                Ok(place) => Some(Ok(Connection {
                    stream,
                    _place: place,
                })),
                // Dropping the stream closes it.
                Err(_) => None,
            },
            Err(error) => Some(Err(error)),
        });
        let stop = CancellationToken::new();
        let service = ClientService::new(self.shared.clone(), client.to_owned());
        let service = ClientServer::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let checked = tonic::service::interceptor::InterceptedService::new(
            service,
            PeerCheck::new(Peers::Anyone),
        );
        let serving = Server::builder()
            .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .add_service(checked)
            .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let name = client.to_owned();
        self.shared.tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::warn!(client = %name, error = %chain(&error), "client listener failed");
            }
        });
        open.insert(client.to_owned(), Open { path, stop });
        Ok(())
    }

    /// Unlinks the socket of `client` and lets its connections end.
    pub(crate) fn close(&self, client: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.remove(client) {
            end(client, &open);
        }
    }

    /// Unlinks every socket.
    pub(crate) fn close_all(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, open) in std::mem::take(&mut *open) {
            end(&client, &open);
        }
    }
}

fn end(client: &str, open: &Open) {
    open.stop.cancel();
    // The controller may have removed the directory already.
    if let Err(error) = fs::remove_file(&open.path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(client, %error, "cannot unlink a client socket");
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    // A socket left by a killed scorer; anything else in its place is not ours to remove.
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// A client's connection, counted while it lives.
struct Connection {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
