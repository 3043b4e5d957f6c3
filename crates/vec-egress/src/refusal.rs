//! What a caller can be told instead of a model's reply: one JSON shape,
//! `{"error": {"type", "message"}}`.

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::json;

/// A refused or failed call. `kind` words are stable: callers match on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: StatusCode,
    /// Stable word.
    pub kind: &'static str,
    /// One line for people.
    pub message: String,
}

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn not_found(path: &str) -> Self {
        let path: String = path.chars().take(200).collect();
        let message = format!("{path} is not served; only POST /v1/chat/completions is");
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn method(method: &str) -> Self {
        let method: String = method.chars().take(20).collect();
        let message = format!("{method} is not allowed here; use POST");
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
        )
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn too_large(max: u64) -> Self {
        let message = format!("the request body is longer than {max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub(crate) fn slow_request() -> Self {
        let message = "the request body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
    }

    pub(crate) fn model(model: &str, known: &str) -> Self {
        let model: String = model.chars().take(100).collect();
        let message = format!("model {model:?} is not in the lock; locked are: {known}");
        Self::new(StatusCode::FORBIDDEN, "model_not_allowed", message)
    }

    pub(crate) fn quota(max: u64) -> Self {
        let message = format!("the run has used its {max} model requests");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "request_quota", message)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", message)
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "upstream_malformed", message)
    }

    pub(crate) fn upstream_too_large(max: u64) -> Self {
        let message = format!("the model's reply is longer than {max} bytes");
        Self::new(StatusCode::BAD_GATEWAY, "upstream_too_large", message)
    }

    pub(crate) fn upstream_status(status: u16, message: &str) -> Self {
        let message: String = message.chars().take(300).collect();
        let message = format!("the model answered with status {status}: {message}");
        Self::new(StatusCode::BAD_GATEWAY, "upstream_status", message)
    }

    pub(crate) fn timeout(what: &str, limit_ms: u64) -> Self {
        let message = format!("{what} within {limit_ms} ms");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", message)
    }

    pub(crate) fn evidence() -> Self {
        let message = "the gateway cannot write its log";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "log_unavailable", message)
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> Bytes {
        let body = json!({"error": {"type": self.kind, "message": self.message}});
        Bytes::from(body.to_string())
    }
}
