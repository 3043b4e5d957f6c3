//! The wire format `openai`: chat completions without streaming.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vec_types::NodeId;

use crate::ChatError;

/// Longest error text that is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// Instructions.
    System,
    /// The harness.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// The text.
    pub content: String,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRequest {
    /// Model id as locked.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Cap of the reply in tokens.
    pub max_tokens: u32,
    /// Role word, for accounting (MOD-02).
    pub role: String,
    /// The node that it is for.
    pub node: NodeId,
    /// Number of the call for this role and node, from 0.
    pub attempt: u32,
    /// Limit for the whole call.
    pub timeout: Duration,
}

impl ChatRequest {
    /// The request body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = json!({
            "model": self.model,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "stream": false,
        });
        body.to_string().into_bytes()
    }
}

/// Tokens of a call, as the provider counts them; 0 where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
}

/// A usable reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatReply {
    /// The assistant's message.
    pub text: String,
    /// Tokens.
    pub usage: Usage,
}

/// The meaning of a reply.
pub(crate) fn parse(status: u16, body: &[u8]) -> Result<ChatReply, ChatError> {
    let value: Result<Value, _> = serde_json::from_slice(body);
    if status != 200 {
        let error = value.ok().map(|mut value| value["error"].take());
        let text = |key: &str| {
            let found = error.as_ref().and_then(|error| error[key].as_str());
            found.map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect::<String>())
        };
        return Err(ChatError::Refused {
            status,
            kind: text("type").unwrap_or_else(|| "unknown".to_owned()),
            message: text("message").unwrap_or_else(|| "no error message".to_owned()),
        });
    }
    let damaged = |why: String| ChatError::Damaged { why };
    let value = value.map_err(|error| damaged(format!("no JSON: {error}")))?;
    let choice = &value["choices"][0];
    let text = choice["message"]["content"]
        .as_str()
        .ok_or_else(|| damaged("choices[0].message.content is no text".to_owned()))?;
    match choice["finish_reason"].as_str() {
        Some("stop") => {}
        Some("length") => return Err(damaged("cut off at the token cap".to_owned())),
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            return Err(damaged(format!("finish_reason is {other:?}, not stop")));
        }
        None => return Err(damaged("no finish_reason".to_owned())),
    }
    if text.trim().is_empty() {
        return Err(damaged("the message is empty".to_owned()));
    }
    let tokens = |key: &str| value["usage"][key].as_u64().unwrap_or(0);
    Ok(ChatReply {
        text: text.to_owned(),
        usage: Usage {
            input_tokens: tokens("prompt_tokens"),
            output_tokens: tokens("completion_tokens"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_mean_what_they_say() {
        let good = r#"{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
        let reply = parse(200, good.as_bytes()).expect("parses");
        assert_eq!(reply.text, "hi");
        assert_eq!(
            (reply.usage.input_tokens, reply.usage.output_tokens),
            (3, 1)
        );
        for (body, why) in [
            ("<html>", "no JSON"),
            ("", "no JSON"),
            ("{}", "is no text"),
            (r#"{"choices":[]}"#, "is no text"),
            (&good.replace("\"hi\"", "null"), "is no text"),
            (&good.replace("\"hi\"", "\" \""), "empty"),
            (&good.replace("\"stop\"", "\"length\""), "token cap"),
            (&good.replace("\"stop\"", "\"tool_calls\""), "tool_calls"),
            (&good.replace("\"stop\"", "null"), "no finish_reason"),
        ] {
            let error = parse(200, body.as_bytes()).expect_err(body);
            assert!(
                matches!(&error, ChatError::Damaged { why: w } if w.contains(why)),
                "{error}"
            );
        }
        let refused = parse(
            429,
            br#"{"error":{"type":"request_quota","message":"no more"}}"#,
        );
        let error = refused.expect_err("refused");
        assert_eq!(
            error.to_string(),
            "model call refused with status 429 (request_quota): no more"
        );
        let bare = parse(502, b"<html>").expect_err("refused");
        assert!(bare.to_string().contains("(unknown)"), "{bare}");
    }
}
