//! HTTP/1.1 over the gateway's socket, one connection per call.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use vec_types::RunId;

use crate::wire::parse;
use crate::{ChatError, ChatReply, ChatRequest};

/// Longest accepted reply in bytes.
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// Everything about one call. The bytes are what went over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The model asked.
    pub model: String,
    /// Request body.
    pub request: Vec<u8>,
    /// Reply body as far as it came; empty when nothing came.
    pub reply: Vec<u8>,
    /// HTTP status; absent when no reply came.
    pub status: Option<u16>,
    /// How long it took.
    pub wall: Duration,
    /// What it means.
    pub result: Result<ChatReply, ChatError>,
}

/// A client of the run's model gateway.
#[derive(Debug, Clone)]
pub struct ChatClient {
    gateway: PathBuf,
    run: RunId,
}

impl ChatClient {
    /// Calls go to the HTTP socket at `gateway` and carry `run` for accounting.
    #[must_use]
    pub const fn new(gateway: PathBuf, run: RunId) -> Self {
        Self { gateway, run }
    }

    /// The gateway's socket.
    #[must_use]
    pub fn gateway(&self) -> &Path {
        &self.gateway
    }

    /// One call. Never fails itself: the [`Attempt`] says what happened. Dropping the future ends
    /// the call.
    pub async fn chat(&self, request: &ChatRequest) -> Attempt {
        let started = Instant::now();
        let body = request.body();
        let mut received = Received::default();
        let call = self.exchange(request, body.clone(), &mut received);
        let outcome = tokio::time::timeout(request.timeout, call).await;
        let result = match outcome {
            Err(_) => Err(ChatError::TimedOut(request.timeout)),
            Ok(Err(error)) => Err(error),
            Ok(Ok(status)) => parse(status, &received.body),
        };
        if let Err(error) = &result {
            tracing::debug!(model = %request.model, role = %request.role, node = %request.node, %error, "model call failed");
        }
        Attempt {
            model: request.model.clone(),
            request: body,
            reply: received.body,
            status: received.status,
            wall: started.elapsed(),
            result,
        }
    }

    async fn exchange(
        &self,
        request: &ChatRequest,
        body: Vec<u8>,
        received: &mut Received,
    ) -> Result<u16, ChatError> {
        let transport = |what: &str, error: &dyn std::fmt::Display| {
            ChatError::Transport(format!("{what} {}: {error}", self.gateway.display()))
        };
        let stream = UnixStream::connect(&self.gateway)
            .await
            .map_err(|error| transport("connect to", &error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| transport("speak HTTP with", &error))?;
        let http = Request::builder()
            .method(Method::POST)
            .uri("/v1/chat/completions")
            .header(HOST, "gateway")
            .header(CONTENT_TYPE, "application/json")
            .header("x-vec-run", self.run.as_str())
            .header("x-vec-node", request.node.to_string())
            .header("x-vec-role", &request.role)
            .header("x-vec-attempt", request.attempt.to_string())
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| transport("build a request for", &error))?;
        let talk = async {
            let reply = sender
                .send_request(http)
                .await
                .map_err(|error| transport("send to", &error))?;
            received.status = Some(reply.status().as_u16());
            let mut body = Limited::new(reply.into_body(), REPLY_BYTES_MAX);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| transport("read from", &error))?;
                if let Ok(data) = frame.into_data() {
                    received.body.extend_from_slice(&data);
                }
            }
            Ok(received.status.unwrap_or_default())
        };
        // The connection is driven here, not in a task: dropping the call closes it.
        let mut connection = std::pin::pin!(connection);
        tokio::pin!(talk);
        tokio::select! {
            biased;
            result = &mut talk => result,
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "gateway connection ended");
                }
                talk.await
            }
        }
    }
}

#[derive(Debug, Default)]
struct Received {
    status: Option<u16>,
    body: Vec<u8>,
}
