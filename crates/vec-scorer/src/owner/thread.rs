//! The owner's side of its channel: decide, apply, write, sync, answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use vec_clock::Clock;
use vec_types::Digest;

use super::{Answer, Answered, Begin, ClientVerb, Command};
use crate::journal::{Journal, JournalError};
use crate::record::{Outcome, Record};
use crate::state::{Client, Refusal, State};

/// Commands written and synced as one group at most.
const GROUP_MAX: usize = 64;

struct Running {
    input: Digest,
    waiting: Vec<oneshot::Sender<Outcome>>,
}

pub(super) struct Owner {
    state: State,
    journal: Journal,
    clock: Arc<dyn Clock>,
    running: BTreeMap<String, Running>,
    settling: Vec<(String, Answer<u32>)>,
    lines: Vec<u8>,
    answers: Vec<Box<dyn FnOnce() + Send>>,
    stopping: bool,
}

impl Owner {
    pub(super) const fn new(state: State, journal: Journal, clock: Arc<dyn Clock>) -> Self {
        Self {
            state,
            journal,
            clock,
            running: BTreeMap::new(),
            settling: Vec::new(),
            lines: Vec::new(),
            answers: Vec::new(),
            stopping: false,
        }
    }

    pub(super) fn run(mut self, mut received: mpsc::Receiver<Command>) -> Result<(), JournalError> {
        while !self.stopping
            && let Some(first) = received.blocking_recv()
        {
            self.handle(first)?;
            for _ in 1..GROUP_MAX {
                let Ok(next) = received.try_recv() else { break };
                self.handle(next)?;
            }
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), JournalError> {
        if !self.lines.is_empty() {
            self.journal.append(&self.lines)?;
            self.lines.clear();
        }
        for answer in self.answers.drain(..) {
            answer();
        }
        Ok(())
    }

    fn handle(&mut self, command: Command) -> Result<(), JournalError> {
        match command {
            Command::Client(client, verb) => self.handle_client(client, verb)?,
            Command::BeginScore(request, input, answer) => {
                let begun = self.begin(request, input);
                self.answer(answer, begun);
            }
            Command::FinishScore(reply, answer) => self.finish_score(&reply, answer)?,
            Command::AbandonScore(request) => drop(self.running.remove(&request)),
            Command::Scored(answer) => {
                let scored = self.state.scored;
                self.answer(answer, Ok(scored));
            }
            Command::Stop => self.stopping = true,
        }
        Ok(())
    }

    fn handle_client(&mut self, client: String, verb: ClientVerb) -> Result<(), JournalError> {
        let at = self.clock.now();
        match verb {
            ClientVerb::Register(dir, quota, answer) => {
                let result = self.state.may_register(&client, &dir, quota);
                if result == Ok(true) {
                    self.commit(&Record::Register {
                        at,
                        client,
                        dir,
                        quota,
                    })?;
                }
                self.answer(answer, result.map(drop));
            }
            ClientVerb::Admit(input, answer) => {
                let result = self.state.may_query(&client);
                if let Ok(query) = result {
                    self.commit(&Record::Charge {
                        at,
                        client,
                        query,
                        input,
                    })?;
                }
                self.answer(answer, result);
            }
            ClientVerb::Finish(answered, answer) => self.finish_query(client, answered, answer)?,
            ClientVerb::Refund(query, answer) => {
                self.commit(&Record::Refund { at, client, query })?;
                self.answer(answer, Ok(()));
                self.settle_waiting()?;
            }
            ClientVerb::NoteCheck(refused, answer) => {
                let remaining = self.state.open_client(&client).map(Client::remaining);
                self.state.note_check(&client, refused);
                self.answer(answer, remaining);
            }
            ClientVerb::Close(answer) => self.close(client, answer)?,
            ClientVerb::Settle(answer) => match self.state.settlement(&client) {
                Err(refusal) => self.answer(answer, Err(refusal)),
                Ok(_) => {
                    self.settling.push((client, answer));
                    self.settle_waiting()?;
                }
            },
        }
        Ok(())
    }

    fn finish_query(
        &mut self,
        client: String,
        answered: Answered,
        answer: Answer<u32>,
    ) -> Result<(), JournalError> {
        let Answered {
            query,
            report,
            score_bytes,
            elapsed_ms,
        } = answered;
        let (at, name) = (self.clock.now(), client.clone());
        self.commit(&Record::Query {
            at,
            client,
            query,
            report,
            score_bytes,
            elapsed_ms,
        })?;
        let remaining = self.state.client(&name).map(Client::remaining);
        self.answer(answer, remaining);
        self.settle_waiting()
    }

    fn close(&mut self, client: String, answer: Answer<u32>) -> Result<(), JournalError> {
        let in_flight = self.state.in_flight(&client);
        if let (Ok(in_flight), Ok(_)) = (&in_flight, self.state.open_client(&client)) {
            let (in_flight, at) = (*in_flight, self.clock.now());
            let (checks, refused) = self.state.check_counts(&client);
            self.commit(&Record::Close {
                at,
                client,
                in_flight,
                checks,
                refused,
            })?;
        }
        self.answer(answer, in_flight);
        Ok(())
    }

    fn begin(&mut self, request: String, input: Digest) -> Result<Begin, Refusal> {
        if let Some(outcome) = self.state.stored(&request, input)? {
            return Ok(Begin::Stored(outcome.clone()));
        }
        if let Some(running) = self.running.get_mut(&request) {
            if running.input != input {
                return Err(Refusal::InputDiffers(request));
            }
            let (outcome, wait) = oneshot::channel();
            running.waiting.push(outcome);
            return Ok(Begin::Wait(wait));
        }
        let waiting = Vec::new();
        self.running.insert(request, Running { input, waiting });
        Ok(Begin::Run)
    }

    fn finish_score(&mut self, reply: &Record, answer: Answer<()>) -> Result<(), JournalError> {
        self.commit(reply)?;
        if let Record::Reply {
            request, outcome, ..
        } = reply
            && let Some(running) = self.running.remove(request)
        {
            for waiting in running.waiting {
                let outcome = outcome.clone();
                self.answers
                    .push(Box::new(move || drop(waiting.send(outcome))));
            }
        }
        self.answer(answer, Ok(()));
        Ok(())
    }

    /// Answers every settlement whose client has nothing in flight any more. A caller that gave
    /// up is forgotten without a record.
    fn settle_waiting(&mut self) -> Result<(), JournalError> {
        for (client, answer) in std::mem::take(&mut self.settling) {
            if answer.is_closed() {
                continue;
            }
            match self.state.settlement(&client) {
                Ok(None) => self.settling.push((client, answer)),
                Ok(Some((used, score_bytes, issued))) => {
                    if !issued {
                        let at = self.clock.now();
                        self.commit(&Record::Settle {
                            at,
                            client,
                            used,
                            score_bytes,
                        })?;
                    }
                    self.answer(answer, Ok(used));
                }
                Err(refusal) => self.answer(answer, Err(refusal)),
            }
        }
        Ok(())
    }

    /// Applies a record and queues its line. The decision before it makes `apply` succeed; where it
    /// does not, our own logic is broken and nothing more may be answered.
    fn commit(&mut self, record: &Record) -> Result<(), JournalError> {
        self.state
            .apply(record)
            .map_err(|source| JournalError::Corrupt { line: 0, source })?;
        self.lines.extend_from_slice(&Journal::line(record)?);
        Ok(())
    }

    fn answer<T: Send + 'static>(&mut self, answer: Answer<T>, result: Result<T, Refusal>) {
        // The asker may have gone; what was decided stands.
        self.answers
            .push(Box::new(move || drop(answer.send(result))));
    }
}

#[cfg(test)]
mod tests;
