//! The event stream of an Engineer session: one JSON object per line on the agent's stdout. The
//! adapter for the scripted Engineer; real agents get theirs later. The bytes are stored as
//! received by the controller; this is only what is understood of them.

use serde::{Deserialize, Serialize};

/// Longest line that is parsed in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The session began.
    SessionStart {
        /// Name of the agent.
        agent: String,
    },
    /// Text for people.
    Message {
        /// The text.
        text: String,
    },
    /// A file of `solution/` was written.
    Edit {
        /// Path relative to the work directory.
        path: String,
        /// Its new size.
        bytes: u64,
    },
    /// A tool was called.
    ToolCall {
        /// Name.
        tool: String,
        /// Arguments.
        args: Vec<String>,
    },
    /// A tool answered.
    ToolResult {
        /// Name.
        tool: String,
        /// Exit status; absent when it had to be ended.
        exit: Option<i32>,
        /// Begin of its output.
        output: String,
    },
    /// The agent ends by itself: without this, exit 0 is a provider fault (issue 6).
    Finish {
        /// Why.
        reason: String,
    },
}

/// A parsed stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentLog {
    /// What was understood, in order.
    pub events: Vec<AgentEvent>,
    /// Lines that were not: too long, no JSON, unknown type.
    pub unknown_lines: usize,
    /// The last message.
    pub last_message: Option<String>,
    /// Did the stream end with [`AgentEvent::Finish`].
    pub finished: bool,
}

impl AgentLog {
    /// Parses a whole stdout. A last line without newline is torn and counts as unknown unless
    /// it parses.
    #[must_use]
    pub fn parse(stdout: &[u8]) -> Self {
        let mut log = Self::default();
        for line in stdout.split(|byte| *byte == b'\n') {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let event = (line.len() <= LINE_BYTES_MAX)
                .then(|| serde_json::from_slice::<AgentEvent>(line).ok())
                .flatten();
            match event {
                Some(event) => {
                    if let AgentEvent::Message { text } = &event {
                        log.last_message = Some(text.clone());
                    }
                    log.finished = matches!(event, AgentEvent::Finish { .. });
                    log.events.push(event);
                }
                None => log.unknown_lines += 1,
            }
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_as_far_as_they_are_understood() {
        let text = b"{\"type\":\"session_start\",\"agent\":\"x\"}\n\n{\"type\":\"message\",\"text\":\"a\"}\nnoise\n{\"type\":\"new\"}\n{\"type\":\"finish\",\"reason\":\"stop\"}\n";
        let log = AgentLog::parse(text);
        assert_eq!((log.events.len(), log.unknown_lines), (3, 2));
        assert_eq!(log.last_message.as_deref(), Some("a"));
        assert!(log.finished);
        let torn = AgentLog::parse(&text[..text.len() - 5]);
        assert_eq!((torn.finished, torn.unknown_lines), (false, 3));
        let long = format!(
            "{{\"type\":\"message\",\"text\":\"{}\"}}",
            "x".repeat(LINE_BYTES_MAX)
        );
        assert_eq!(AgentLog::parse(long.as_bytes()).unknown_lines, 1);
        assert_eq!(AgentLog::parse(b""), AgentLog::default());
    }
}
