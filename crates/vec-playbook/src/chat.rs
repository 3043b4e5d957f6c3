//! Chat completions, OpenAI-shaped: the request's last user message in, one choice out.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::{Context, Role};
use crate::{Playbook, analyst, researcher, reviewer};

/// Characters that count as one token in the usage figures.
const CHARS_PER_TOKEN: usize = 4;

/// A request that cannot be answered; becomes status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChatFault(String);

#[derive(Debug, Deserialize)]
struct Request {
    model: String,
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// The reply to a request body. A pure function.
///
/// # Errors
/// [`ChatFault`] when the body is no chat request or has no context block.
pub fn answer(playbook: &Playbook, search_seed: u32, body: &[u8]) -> Result<Value, ChatFault> {
    let request: Request =
        serde_json::from_slice(body).map_err(|error| ChatFault(format!("request: {error}")))?;
    let prompt = request
        .messages
        .iter()
        .rfind(|message| message.role == "user")
        .ok_or_else(|| ChatFault("the request has no user message".to_owned()))?;
    let context = Context::read(&prompt.content).map_err(ChatFault)?;
    let text = match context.role {
        Role::Researcher => researcher::reply(playbook, search_seed, &context),
        Role::Analyst => analyst::reply(&context),
        Role::Reviewer => reviewer::reply(&prompt.content),
    };
    let tokens = |chars: usize| chars.div_ceil(CHARS_PER_TOKEN);
    let asked = request
        .messages
        .iter()
        .map(|message| message.content.chars().count())
        .sum();
    let (input, output) = (tokens(asked), tokens(text.chars().count()));
    Ok(json!({
        "id": format!("playbook-{}-{}", context.node, context.attempt),
        "object": "chat.completion",
        "model": request.model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
        },
    }))
}
