//! HTTP/1.1 on the inherited listener: `POST /v1/chat/completions` and `GET /healthz`.

use std::convert::Infallible;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Playbook, PlaybookError, answer};

/// Longest accepted request in bytes.
const BODY_BYTES_MAX: usize = 8 << 20;
/// Longest wait for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Calls in flight at stop get this long.
const DRAIN: Duration = Duration::from_secs(1);
/// Connections at a time; the gateway is the only caller.
const CONNECTIONS_MAX: usize = 128;

/// The scripted model cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Wrong descriptors or spec.
    #[error("take over what the launcher inherits")]
    Inherit(#[source] vec_daemon::InheritError),
    /// The playbook.
    #[error("load the playbook")]
    Playbook(#[source] PlaybookError),
    /// The listener.
    #[error("listen on the inherited socket")]
    Listen(#[source] std::io::Error),
}

/// Serves until `stop`; peers are checked against `peer_uids`.
///
/// # Errors
/// [`ServeError::Listen`] when the listener cannot be registered.
pub async fn serve(
    playbook: Playbook,
    search_seed: u32,
    peer_uids: Vec<u32>,
    listener: StdListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    let listener = UnixListener::from_std(listener).map_err(ServeError::Listen)?;
    let model = Arc::new(Model {
        playbook,
        search_seed,
        peer_uids,
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    let (model, stop) = (Arc::clone(&model), stop.clone());
                    connections.spawn(async move { model.connection(stream, stop).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN, drained).await;
    Ok(())
}

struct Model {
    playbook: Playbook,
    search_seed: u32,
    peer_uids: Vec<u32>,
}

impl Model {
    async fn connection(&self, stream: UnixStream, stop: CancellationToken) {
        let uid = stream.peer_cred().map(|peer| peer.uid());
        if !uid.as_ref().is_ok_and(|uid| self.peer_uids.contains(uid)) {
            tracing::warn!(?uid, "caller refused: uid is not in the launch spec");
            return;
        }
        let service =
            service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
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

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => reply(
                StatusCode::OK,
                &json!({"ok": true, "board": self.playbook.board}),
            ),
            (&Method::POST, "/v1/chat/completions") => {
                let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
                let body = match tokio::time::timeout(REQUEST_TIMEOUT, body).await {
                    Ok(Ok(body)) => body.to_bytes(),
                    Ok(Err(error)) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
                    Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "no body in time"),
                };
                match answer(&self.playbook, self.search_seed, &body) {
                    Ok(value) => reply(StatusCode::OK, &value),
                    Err(fault) => refuse(StatusCode::BAD_REQUEST, &fault.to_string()),
                }
            }
            _ => refuse(
                StatusCode::NOT_FOUND,
                "only POST /v1/chat/completions is served",
            ),
        }
    }
}

fn refuse(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    reply(
        status,
        &json!({"error": {"type": "invalid_request", "message": message}}),
    )
}

fn reply(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
