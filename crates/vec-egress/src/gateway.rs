//! One request: check, count, log, forward, log, answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use vec_clock::Clock;
use vec_daemon::spec::{EgressSpec, UpstreamSpec};

use crate::evidence::{Caller, Line, Sealed};
use crate::upstream::{self, FORWARDED, Limits};
use crate::{Evidence, Refusal};

/// Longest accounting header in bytes.
const HEADER_BYTES_MAX: usize = 128;

/// What every connection shares.
pub struct Gateway {
    spec: EgressSpec,
    evidence: Evidence,
    calls: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("run", &self.spec.common.run)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

/// A request that may go out.
struct Admitted<'a> {
    model: String,
    upstream: &'a UpstreamSpec,
    body: Bytes,
}

/// How a call ended: what the log says and what the caller gets.
struct Ended {
    status: StatusCode,
    error: Option<&'static str>,
    received: Sealed,
    tokens: (Option<u64>, Option<u64>),
    answer: Bytes,
}

impl Ended {
    fn of(outcome: Result<upstream::Reply, upstream::Failed>) -> Self {
        match outcome {
            Ok(done) => Self {
                status: StatusCode::OK,
                error: None,
                received: Sealed::of(&done.body),
                tokens: (done.input_tokens, done.output_tokens),
                answer: done.body,
            },
            Err(failed) => Self {
                status: failed.refusal.status,
                error: Some(failed.refusal.kind),
                received: Sealed::of(&failed.received),
                tokens: (None, None),
                answer: failed.refusal.body(),
            },
        }
    }
}

impl Gateway {
    /// A gateway by `spec` that has made `calls` calls before (from [`Evidence::open`]).
    #[must_use]
    pub fn new(spec: EgressSpec, evidence: Evidence, calls: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            spec,
            evidence,
            calls: AtomicU64::new(calls),
            clock,
        }
    }

    /// The spec.
    #[must_use]
    pub const fn spec(&self) -> &EgressSpec {
        &self.spec
    }

    /// Answers one request. Never fails: every failure is a JSON reply.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == "/healthz" {
            return self.health();
        }
        let (parts, body) = request.into_parts();
        let caller = caller(&parts.headers);
        let allowed = if parts.uri.path() != "/v1/chat/completions" {
            Err(Refusal::not_found(parts.uri.path()))
        } else if parts.method != Method::POST {
            Err(Refusal::method(parts.method.as_str()))
        } else {
            Ok(())
        };
        let read = match allowed {
            Ok(()) => self.read(body).await,
            Err(refusal) => Err(refusal),
        };
        let body = match read {
            Ok(body) => body,
            Err(refusal) => return self.refuse(caller, None, b"", refusal).await,
        };
        match self.admit(&body) {
            Ok(admitted) => self.forward(caller, &parts.headers, admitted).await,
            Err((model, refusal)) => self.refuse(caller, model, &body, refusal).await,
        }
    }

    fn health(&self) -> Response<Full<Bytes>> {
        let models: Vec<&String> = self.spec.models.keys().collect();
        let body = json!({
            "ok": true,
            "models": models,
            "requests": self.calls.load(Ordering::Relaxed).min(self.spec.requests_max),
            "requests_max": self.spec.requests_max,
        });
        reply(StatusCode::OK, Bytes::from(body.to_string()))
    }

    /// The whole body, bounded in size and time.
    async fn read(&self, mut body: Incoming) -> Result<Bytes, Refusal> {
        let max = self.spec.body_bytes_max;
        if body.size_hint().lower() > max {
            return Err(Refusal::too_large(max));
        }
        let collect = async {
            let mut bytes = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| {
                    Refusal::invalid(format!("the request body broke off: {error}"))
                })?;
                if let Ok(data) = frame.into_data() {
                    if (bytes.len() + data.len()) as u64 > max {
                        return Err(Refusal::too_large(max));
                    }
                    bytes.extend_from_slice(&data);
                }
            }
            Ok(bytes.freeze())
        };
        let limit = Duration::from_millis(self.spec.idle_timeout_ms);
        tokio::time::timeout(limit, collect)
            .await
            .unwrap_or_else(|_| Err(Refusal::slow_request()))
    }

    fn admit(&self, body: &Bytes) -> Result<Admitted<'_>, (Option<String>, Refusal)> {
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            (
                None,
                Refusal::invalid(format!("the body is no JSON: {error}")),
            )
        })?;
        let Some(model) = value["model"].as_str() else {
            return Err((None, Refusal::invalid("key `model` must be a string")));
        };
        let model = model.to_owned();
        let Some(upstream) = self.spec.models.get(&model) else {
            let known: Vec<&str> = self.spec.models.keys().map(String::as_str).collect();
            let refusal = Refusal::model(&model, &known.join(", "));
            let model = model.chars().take(100).collect();
            return Err((Some(model), refusal));
        };
        if value["messages"].as_array().is_none_or(Vec::is_empty) {
            let refusal = Refusal::invalid("key `messages` must be a list with at least one entry");
            return Err((Some(model), refusal));
        }
        if value["stream"] == json!(true) {
            let refusal = Refusal::invalid("streaming is not served; leave `stream` out");
            return Err((Some(model), refusal));
        }
        Ok(Admitted {
            model,
            upstream,
            body: body.clone(),
        })
    }

    async fn forward(
        &self,
        caller: Caller,
        headers: &HeaderMap,
        admitted: Admitted<'_>,
    ) -> Response<Full<Bytes>> {
        let Admitted {
            model,
            upstream,
            body,
        } = admitted;
        let max = self.spec.requests_max;
        let taken = self
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| {
                (calls < max).then_some(calls + 1)
            });
        let Ok(call_number) = taken else {
            let refusal = Refusal::quota(max);
            return self.refuse(caller, Some(model), &body, refusal).await;
        };
        let request = Sealed::of(&body);
        let start = Line::Start {
            at: self.clock.now(),
            call: call_number,
            model: model.clone(),
            caller: caller.clone(),
            request: request.clone(),
        };
        if let Some(response) = self.log(&start).await {
            return response;
        }
        let limits = Limits {
            body_bytes_max: self.spec.body_bytes_max,
            total_ms: self.spec.total_timeout_ms,
            idle_ms: self.spec.idle_timeout_ms,
        };
        let began = std::time::Instant::now();
        let outcome = upstream::call(upstream, headers, body, limits).await;
        let ended = Ended::of(outcome);
        let end = Line::End {
            at: self.clock.now(),
            call: call_number,
            model,
            caller,
            status: ended.status.as_u16(),
            error: ended.error,
            request,
            reply: ended.received,
            input_tokens: ended.tokens.0,
            output_tokens: ended.tokens.1,
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        match self.log(&end).await {
            Some(response) => response,
            None => reply(ended.status, ended.answer),
        }
    }

    async fn refuse(
        &self,
        caller: Caller,
        model: Option<String>,
        body: &[u8],
        refusal: Refusal,
    ) -> Response<Full<Bytes>> {
        let line = Line::Refused {
            at: self.clock.now(),
            caller,
            status: refusal.status.as_u16(),
            error: refusal.kind,
            model,
            request: Sealed::of(body),
        };
        match self.log(&line).await {
            Some(response) => response,
            None => reply(refusal.status, refusal.body()),
        }
    }

    /// Writes a line; a reply only when it could not be written: no evidence, no answer.
    async fn log(&self, line: &Line) -> Option<Response<Full<Bytes>>> {
        let error = self.evidence.append(line).await.err()?;
        tracing::error!(error = %vec_daemon::chain(&error), "no evidence, no answer");
        let refusal = Refusal::evidence();
        Some(reply(refusal.status, refusal.body()))
    }
}

fn caller(headers: &HeaderMap) -> Caller {
    let text = |index: usize| {
        let value = headers.get(&FORWARDED[index])?.to_str().ok()?;
        (value.len() <= HEADER_BYTES_MAX).then(|| value.to_owned())
    };
    Caller {
        run: text(0),
        node: text(1),
        role: text(2),
        attempt: text(3),
    }
}

fn reply(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
