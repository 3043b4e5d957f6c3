//! The chat seam of the single-call roles: OpenAI-shaped chat completions over the model gateway's
//! Unix socket, and the fallback chain (MOD-03, MOD-05).
//!
//! Invariants: no key, no TLS, no address is known here; the gateway is the only way out. Every
//! attempt returns its raw request and reply bytes, whatever became of it, so that the caller can
//! store them. Every wait is bounded by the request's time limit. Breakers and prices come later.

mod chain;
mod client;
mod error;
mod wire;

pub use chain::{ChainOutcome, chat_chain};
pub use client::{Attempt, ChatClient, REPLY_BYTES_MAX};
pub use error::ChatError;
pub use wire::{ChatReply, ChatRequest, Message, MessageRole, Usage};
