//! The fallback chain: the same call on the next model when one fails (MOD-03). Breakers that
//! remember failures between calls come later.

use crate::{Attempt, ChatClient, ChatError, ChatReply, ChatRequest};

/// Every attempt of one call, in order; the last one decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainOutcome {
    /// At most one attempt per model; empty only for an empty chain.
    pub attempts: Vec<Attempt>,
}

impl ChainOutcome {
    /// The reply, if a model gave one.
    #[must_use]
    pub fn reply(&self) -> Option<&ChatReply> {
        self.attempts.last()?.result.as_ref().ok()
    }

    /// The last failure, if no model replied.
    #[must_use]
    pub fn error(&self) -> Option<&ChatError> {
        self.attempts.last()?.result.as_ref().err()
    }
}

/// Asks `models` in order until one replies; `request.model` is replaced by each in turn, and
/// each gets the whole of `request.timeout`. A run-wide refusal (request quota) ends the chain:
/// no other model would be let through.
pub async fn chat_chain(
    client: &ChatClient,
    models: &[String],
    request: &ChatRequest,
) -> ChainOutcome {
    let mut attempts = Vec::new();
    for model in models {
        let mut request = request.clone();
        request.model.clone_from(model);
        let attempt = client.chat(&request).await;
        let ends = match &attempt.result {
            Ok(_) => true,
            Err(ChatError::Refused { kind, .. }) => kind == "request_quota",
            Err(_) => false,
        };
        attempts.push(attempt);
        if ends {
            break;
        }
    }
    ChainOutcome { attempts }
}
