//! One call of a model: HTTP/1.1 over the upstream's socket, bounded in time and size, and the
//! check that the reply is a reply.

use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;
use vec_daemon::spec::UpstreamSpec;

use crate::Refusal;

/// Limits of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) body_bytes_max: u64,
    pub(crate) total_ms: u64,
    pub(crate) idle_ms: u64,
}

/// A checked reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) body: Bytes,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// A failed call, with what had come so far.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) refusal: Refusal,
    pub(crate) received: Bytes,
}

/// Headers that go through.
pub(crate) const FORWARDED: [HeaderName; 4] = [
    HeaderName::from_static("x-vec-run"),
    HeaderName::from_static("x-vec-node"),
    HeaderName::from_static("x-vec-role"),
    HeaderName::from_static("x-vec-attempt"),
];

/// Sends `body` to `upstream` and checks the reply.
pub(crate) async fn call(
    upstream: &UpstreamSpec,
    headers: &HeaderMap,
    body: Bytes,
    limits: Limits,
) -> Result<Reply, Failed> {
    let UpstreamSpec::Playbook { socket } = upstream;
    let mut received = BytesMut::new();
    let exchange = exchange(socket, headers, body, limits, &mut received);
    let outcome = match timeout(Duration::from_millis(limits.total_ms), exchange).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Refusal::timeout(
            "the model did not finish",
            limits.total_ms,
        )),
    };
    let received = received.freeze();
    outcome
        .and_then(|status| check(status, &received))
        .map(|(input_tokens, output_tokens)| Reply {
            body: received.clone(),
            input_tokens,
            output_tokens,
        })
        .map_err(|refusal| Failed { refusal, received })
}

async fn exchange(
    socket: &Path,
    headers: &HeaderMap,
    body: Bytes,
    limits: Limits,
    received: &mut BytesMut,
) -> Result<StatusCode, Refusal> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| Refusal::unreachable(format!("cannot connect to the model: {error}")))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Refusal::unreachable(format!("cannot speak HTTP: {error}")))?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header(HOST, "upstream")
        .header(CONTENT_TYPE, "application/json");
    for name in &FORWARDED {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    let request = request
        .body(Full::new(body))
        .map_err(|error| Refusal::invalid(format!("cannot be forwarded: {error}")))?;
    let idle = Duration::from_millis(limits.idle_ms);
    let silent = || Refusal::timeout("the model sent nothing", limits.idle_ms);
    let talk = async {
        let reply = timeout(idle, sender.send_request(request))
            .await
            .map_err(|_| silent())?
            .map_err(|error| Refusal::malformed(format!("the model's reply broke: {error}")))?;
        let status = reply.status();
        let mut body = reply.into_body();
        loop {
            let Some(frame) = timeout(idle, body.frame()).await.map_err(|_| silent())? else {
                return Ok(status);
            };
            let frame = frame
                .map_err(|error| Refusal::malformed(format!("the model's reply broke: {error}")))?;
            if let Ok(data) = frame.into_data() {
                if (received.len() + data.len()) as u64 > limits.body_bytes_max {
                    return Err(Refusal::upstream_too_large(limits.body_bytes_max));
                }
                received.extend_from_slice(&data);
            }
        }
    };
    // Driven here instead of in a task: when this future is dropped, the connection closes.
    tokio::pin!(talk, connection);
    tokio::select! {
        biased;
        outcome = &mut talk => outcome,
        ended = &mut connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "upstream connection ended");
            }
            talk.await
        }
    }
}

/// A reply that a client can use: JSON, a text, and a finish reason (a stream without one makes
/// agents loop for ever).
fn check(status: StatusCode, body: &[u8]) -> Result<(Option<u64>, Option<u64>), Refusal> {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(_) if status != StatusCode::OK => {
            return Err(Refusal::upstream_status(status.as_u16(), "no JSON body"));
        }
        Err(_) if body.trim_ascii().is_empty() => {
            return Err(Refusal::malformed("the model's reply is empty"));
        }
        Err(error) => {
            let message = format!("the model's reply is no JSON: {error}");
            return Err(Refusal::malformed(message));
        }
    };
    if status != StatusCode::OK {
        let message = value["error"]["message"].as_str().unwrap_or("no message");
        return Err(Refusal::upstream_status(status.as_u16(), message));
    }
    let choice = &value["choices"][0];
    if !choice["message"]["content"].is_string() {
        let message = "the model's reply has no choices[0].message.content";
        return Err(Refusal::malformed(message));
    }
    if !choice["finish_reason"].is_string() {
        return Err(Refusal::malformed("the model's reply has no finish_reason"));
    }
    let tokens = |key: &str| value["usage"][key].as_u64();
    Ok((tokens("prompt_tokens"), tokens("completion_tokens")))
}
