//! The one owner of the scorer's state and journal: a thread that takes commands, applies them,
//! writes and syncs their records as one group, and only then answers. Admission, closing and
//! settling therefore happen one after the other (TOO-05).

mod thread;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use vec_clock::Clock;
use vec_types::{Digest, ScoreReport};

use crate::journal::{Journal, JournalError};
use crate::record::{Outcome, Record};
use crate::state::{Refusal, State};
use thread::Owner;

/// Commands waiting at most: senders wait beyond.
const COMMANDS_MAX: usize = 256;

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OwnerError {
    /// The state forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The owner has ended: the journal failed or the daemon stops.
    #[error("the scorer is stopping")]
    Gone,
}

/// What to do with a scoring of the controller.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Score it and finish or abandon it.
    Run,
    /// It was scored before.
    Stored(Outcome),
    /// It is being scored: wait.
    Wait(oneshot::Receiver<Outcome>),
}

/// An answered query.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) query: u32,
    pub(crate) report: ScoreReport,
    pub(crate) score_bytes: u64,
    pub(crate) elapsed_ms: u64,
}

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// What can happen to one client.
pub(crate) enum ClientVerb {
    /// Let it query `quota` times through `<dir>/scorer.s`.
    Register(PathBuf, u32, Answer<()>),
    /// Charge a query; answers its number.
    Admit(Digest, Answer<u32>),
    /// The query was scored; answers the queries left.
    Finish(Answered, Answer<u32>),
    /// The scorer failed on this query.
    Refund(u32, Answer<()>),
    /// A format check passed by, or (true) a file failed before its query was charged; answers the
    /// queries left.
    NoteCheck(bool, Answer<u32>),
    /// No more queries; answers those in flight.
    Close(Answer<u32>),
    /// Answers the final count once nothing is in flight.
    Settle(Answer<u32>),
}

pub(crate) enum Command {
    Client(String, ClientVerb),
    /// A scoring of the controller begins: request id and what it scores.
    BeginScore(String, Digest, Answer<Begin>),
    /// Its [`Record::Reply`].
    FinishScore(Box<Record>, Answer<()>),
    /// It failed.
    AbandonScore(String),
    /// Scorings answered since the run began.
    Scored(Answer<u64>),
    Stop,
}

/// Sends commands to the owner.
#[derive(Debug, Clone)]
pub(crate) struct OwnerHandle {
    commands: mpsc::Sender<Command>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl OwnerHandle {
    pub(crate) async fn ask<T>(
        &self,
        make: impl FnOnce(Answer<T>) -> Command,
    ) -> Result<T, OwnerError> {
        let (answer, answered) = oneshot::channel();
        self.commands
            .send(make(answer))
            .await
            .map_err(|_| OwnerError::Gone)?;
        Ok(answered.await.map_err(|_| OwnerError::Gone)??)
    }

    /// Asks something about one client.
    pub(crate) async fn client<T>(
        &self,
        client: &str,
        verb: impl FnOnce(Answer<T>) -> ClientVerb,
    ) -> Result<T, OwnerError> {
        let client = client.to_owned();
        self.ask(|answer| Command::Client(client, verb(answer)))
            .await
    }

    /// Ends the owner after everything before it is written and answered.
    pub(crate) async fn stop(&self) {
        if self.commands.send(Command::Stop).await.is_err() {
            tracing::debug!("the owner has ended already");
        }
    }

    /// Forgets a scoring that failed; those who wait for it are told to retry.
    pub(crate) async fn abandon(&self, request: String) {
        if self
            .commands
            .send(Command::AbandonScore(request))
            .await
            .is_err()
        {
            tracing::debug!("the owner is gone; nothing is left to abandon");
        }
    }
}

/// Starts the owner; `failed` is cancelled when the journal cannot be written. The thread ends on
/// [`OwnerHandle::stop`] and when the last handle is dropped.
///
/// # Errors
/// When the thread cannot be started.
pub(crate) fn start(
    state: State,
    journal: Journal,
    clock: Arc<dyn Clock>,
    failed: CancellationToken,
) -> std::io::Result<(OwnerHandle, JoinHandle<Result<(), JournalError>>)> {
    let (commands, received) = mpsc::channel(COMMANDS_MAX);
    let owner = Owner::new(state, journal, Arc::clone(&clock));
    let thread = std::thread::Builder::new()
        .name("scorer-owner".to_owned())
        .spawn(move || {
            let result = owner.run(received);
            if result.is_err() {
                failed.cancel();
            }
            result
        })?;
    Ok((OwnerHandle { commands, clock }, thread))
}
