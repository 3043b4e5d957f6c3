//! One call to a role's chain of models, with every attempt kept as trajectory (REC-01).

use vec_config::Role;
use vec_llm::{ChainOutcome, ChatRequest, Message, MessageRole, chat_chain};
use vec_roles::Prompt;
use vec_store::{NewFile, rel};
use vec_types::NodeId;

use crate::context::Context;
use crate::effects::{EffectError, Limits};
use std::time::Duration;

/// Longest reply that is asked for, in tokens.
const REPLY_TOKENS_MAX: u32 = 4_096;

/// What a call brought.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The reply's text; absent when every model of the chain failed.
    pub(crate) text: Option<String>,
    /// Why there is none.
    pub(crate) error: Option<String>,
    /// Trajectory files.
    pub(crate) files: Vec<NewFile>,
    /// Time spent waiting for models.
    pub(crate) waited: Duration,
}

/// Which call this is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) role: Role,
    pub(crate) node: NodeId,
    /// Attempt of the role on this node, from 0; it also names the trajectory directory.
    pub(crate) attempt: u32,
    /// Longest wait for one model.
    pub(crate) timeout: Duration,
}

/// Asks the models of the role in order until one answers.
///
/// # Errors
/// Only when a trajectory path cannot be formed; failing models are an [`Answer`] without text.
pub(crate) async fn ask(
    context: &Context,
    call: Call,
    prompt: Prompt,
    limits: &Limits,
) -> Result<Option<Answer>, EffectError> {
    let message = |role, content| Message { role, content };
    let request = ChatRequest {
        model: String::new(),
        messages: vec![
            message(MessageRole::System, prompt.system),
            message(MessageRole::User, prompt.user),
        ],
        max_tokens: REPLY_TOKENS_MAX,
        role: call.role.as_str().to_owned(),
        node: call.node,
        attempt: call.attempt,
        timeout: limits.at_most(call.timeout),
    };
    let models = context.chain(call.role);
    let outcome = tokio::select! {
        outcome = chat_chain(&context.chat, &models, &request) => outcome,
        () = limits.cancel.cancelled() => return Ok(None),
    };
    Ok(Some(Answer {
        text: outcome.reply().map(|reply| reply.text.clone()),
        error: outcome
            .error()
            .map(|error| vec_daemon::chain(error).to_string()),
        waited: outcome.attempts.iter().map(|attempt| attempt.wall).sum(),
        files: trajectory(call, outcome)?,
    }))
}

fn trajectory(call: Call, outcome: ChainOutcome) -> Result<Vec<NewFile>, EffectError> {
    let bad = |error: vec_types::PathError| EffectError::failed("name a trajectory file", &error);
    let mut files = Vec::new();
    for (index, attempt) in outcome.attempts.into_iter().enumerate() {
        let directory =
            rel::trajectory(call.node, call.role.as_str(), call.attempt).map_err(bad)?;
        // Fall-backs of one call lie beside the first model's attempt.
        let directory = if index == 0 {
            directory
        } else {
            rel::join(&directory, &format!("fallback{index}")).map_err(bad)?
        };
        files.push(NewFile::create(
            rel::join(&directory, "request.json").map_err(bad)?,
            attempt.request,
        ));
        if !attempt.reply.is_empty() {
            files.push(NewFile::create(
                rel::join(&directory, "reply.json").map_err(bad)?,
                attempt.reply,
            ));
        }
        if let Err(error) = &attempt.result {
            let text = format!("{}: {}\n", attempt.model, vec_daemon::chain(error));
            files.push(NewFile::create(
                rel::join(&directory, "error.txt").map_err(bad)?,
                text,
            ));
        }
    }
    Ok(files)
}
