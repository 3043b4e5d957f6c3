//! How a chat call can fail.

use std::time::Duration;

/// A failed attempt. None of these is the candidate's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    /// The gateway cannot be reached, or the connection broke.
    #[error("model gateway: {0}")]
    Transport(String),
    /// The gateway or the model refused.
    #[error("model call refused with status {status} ({kind}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// `error.type` of the reply, or `unknown`.
        kind: String,
        /// `error.message` of the reply, shortened.
        message: String,
    },
    /// Status 200, but no usable message in it.
    #[error("model reply is damaged: {why}")]
    Damaged {
        /// What is wrong.
        why: String,
    },
    /// The time limit passed.
    #[error("model call did not end within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}
