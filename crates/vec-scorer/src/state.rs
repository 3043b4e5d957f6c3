//! What the scorer remembers, as a fold over its journal: clients with quotas, charges in flight,
//! and the stored replies. Pure: decisions return the record to write, [`State::apply`] is the
//! only way anything changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vec_types::Digest;

use crate::record::{Outcome, Record};

/// Most clients registered and not closed at a time.
pub const CLIENTS_OPEN_MAX: usize = 256;

/// Largest quota of one client.
pub const QUOTA_MAX: u32 = 1_000;

/// A client and its count.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    /// Directory of its socket.
    pub dir: PathBuf,
    /// Queries it may make.
    pub quota: u32,
    /// Queries charged and not refunded.
    pub used: u32,
    /// Number of the next query.
    next_query: u32,
    /// Queries admitted and not ended.
    in_flight: BTreeSet<u32>,
    /// Refuses queries.
    pub closed: bool,
    /// The final count, once issued.
    settled: bool,
    /// Score bytes given to it.
    score_bytes: u64,
    /// Format checks and refused files, not journaled one by one.
    checks: u64,
    refused: u64,
}

impl Client {
    /// Queries left.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.quota.saturating_sub(self.used)
    }
}

/// A stored reply of the controller's scoring.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    /// sha256 over what was scored.
    pub(crate) input: Digest,
    /// The answer.
    pub(crate) outcome: Outcome,
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Never registered.
    #[error("client {0} is not registered")]
    Unknown(String),
    /// Closed.
    #[error("client {0} is closed")]
    Closed(String),
    /// Asked for the final count of an open client.
    #[error("client {0} is not closed; close it before settling")]
    NotClosed(String),
    /// Registered with other values.
    #[error("client {0} is registered with another directory or quota")]
    Differs(String),
    /// The quota is used up.
    #[error("quota exhausted: all {quota} queries are used")]
    Exhausted {
        /// The quota.
        quota: u32,
    },
    /// [`CLIENTS_OPEN_MAX`] reached.
    #[error("{CLIENTS_OPEN_MAX} clients are open already")]
    TooManyClients,
    /// Above [`QUOTA_MAX`].
    #[error("quota {0} is above {QUOTA_MAX}")]
    Quota(u32),
    /// A known request id with other bytes.
    #[error("request {0} was scored before with other bytes")]
    InputDiffers(String),
}

/// A journal line that cannot follow those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CorruptJournal(String);

fn corrupt<T>(text: String) -> Result<T, CorruptJournal> {
    Err(CorruptJournal(text))
}

/// The fold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    clients: BTreeMap<String, Client>,
    replies: BTreeMap<String, Stored>,
    /// Scorings answered, queries included.
    pub scored: u64,
}

impl State {
    /// Applies one line.
    ///
    /// # Errors
    /// [`CorruptJournal`] when the line cannot follow those before it.
    pub fn apply(&mut self, record: &Record) -> Result<(), CorruptJournal> {
        match record {
            Record::Start { .. } => {
                for client in self.clients.values_mut() {
                    client.in_flight.clear();
                }
            }
            Record::Register {
                client, dir, quota, ..
            } => self.apply_register(client, dir, *quota)?,
            Record::Charge { client, query, .. } => {
                let known = self.known(client)?;
                if known.closed || known.used >= known.quota || *query != known.next_query {
                    return corrupt(format!(
                        "charge {query} of client {client} was not admissible"
                    ));
                }
                known.used += 1;
                known.next_query += 1;
                known.in_flight.insert(*query);
            }
            Record::Refund { client, query, .. } => {
                self.end_query(client, *query)?.used -= 1;
            }
            Record::Query {
                client,
                query,
                score_bytes,
                ..
            } => {
                self.end_query(client, *query)?.score_bytes += score_bytes;
                self.scored += 1;
            }
            Record::Reply {
                request,
                input,
                outcome,
                ..
            } => {
                let stored = Stored {
                    input: *input,
                    outcome: outcome.clone(),
                };
                if self.replies.insert(request.clone(), stored).is_some() {
                    return corrupt(format!("request {request} was answered twice"));
                }
                self.scored += 1;
            }
            Record::Close { client, .. } => self.known(client)?.closed = true,
            Record::Settle { client, used, .. } => {
                let known = self.known(client)?;
                if !known.closed || known.used != *used {
                    return corrupt(format!(
                        "client {client} cannot be settled with {used} used"
                    ));
                }
                known.settled = true;
            }
        }
        Ok(())
    }

    fn apply_register(&mut self, name: &str, dir: &Path, quota: u32) -> Result<(), CorruptJournal> {
        let client = Client {
            dir: dir.to_owned(),
            quota,
            used: 0,
            next_query: 0,
            in_flight: BTreeSet::new(),
            closed: false,
            settled: false,
            score_bytes: 0,
            checks: 0,
            refused: 0,
        };
        match self.clients.insert(name.to_owned(), client) {
            Some(_) => corrupt(format!("client {name} was registered twice")),
            None => Ok(()),
        }
    }

    fn known(&mut self, client: &str) -> Result<&mut Client, CorruptJournal> {
        let missing = || CorruptJournal(format!("client {client} was never registered"));
        self.clients.get_mut(client).ok_or_else(missing)
    }

    fn end_query(&mut self, name: &str, query: u32) -> Result<&mut Client, CorruptJournal> {
        let client = self.known(name)?;
        if !client.in_flight.remove(&query) {
            return corrupt(format!("query {query} of client {name} was not in flight"));
        }
        Ok(client)
    }

    /// The client.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    pub fn client(&self, name: &str) -> Result<&Client, Refusal> {
        self.clients
            .get(name)
            .ok_or_else(|| Refusal::Unknown(name.to_owned()))
    }

    /// Clients that may query, with their directories.
    pub fn open_clients(&self) -> impl Iterator<Item = (&String, &Client)> {
        self.clients.iter().filter(|(_, client)| !client.closed)
    }

    /// May `name` be registered? `Ok(false)`: it is, with the same values.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn may_register(&self, name: &str, dir: &Path, quota: u32) -> Result<bool, Refusal> {
        if quota > QUOTA_MAX {
            return Err(Refusal::Quota(quota));
        }
        match self.clients.get(name) {
            Some(client) if client.closed => Err(Refusal::Closed(name.to_owned())),
            Some(client) if client.dir == dir && client.quota == quota => Ok(false),
            Some(_) => Err(Refusal::Differs(name.to_owned())),
            None if self.open_clients().count() >= CLIENTS_OPEN_MAX => Err(Refusal::TooManyClients),
            None => Ok(true),
        }
    }

    /// The client, if it may still ask anything.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] and [`Refusal::Closed`].
    pub fn open_client(&self, name: &str) -> Result<&Client, Refusal> {
        match self.client(name)? {
            client if client.closed => Err(Refusal::Closed(name.to_owned())),
            client => Ok(client),
        }
    }

    /// Number of the query that `name` may make now.
    ///
    /// # Errors
    /// [`Refusal`], [`Refusal::Exhausted`] among them.
    pub fn may_query(&self, name: &str) -> Result<u32, Refusal> {
        let client = self.open_client(name)?;
        if client.remaining() == 0 {
            return Err(Refusal::Exhausted {
                quota: client.quota,
            });
        }
        Ok(client.next_query)
    }

    /// Queries of `name` that were admitted and have not ended.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    pub fn in_flight(&self, name: &str) -> Result<u32, Refusal> {
        Ok(u32::try_from(self.client(name)?.in_flight.len()).unwrap_or(u32::MAX))
    }

    /// Counts a format check (`refused`: a file that failed before its query was charged).
    /// In memory only: checks are unlimited and must not grow the journal.
    pub fn note_check(&mut self, name: &str, refused: bool) {
        if let Some(client) = self.clients.get_mut(name) {
            if refused {
                client.refused += 1;
            } else {
                client.checks += 1;
            }
        }
    }

    /// Format checks and refused files of `name` in this start.
    #[must_use]
    pub fn check_counts(&self, name: &str) -> (u64, u64) {
        self.clients
            .get(name)
            .map_or((0, 0), |client| (client.checks, client.refused))
    }

    /// Final count, if the client is closed and nothing of it is in flight: (used, score bytes,
    /// issued before).
    ///
    /// # Errors
    /// [`Refusal::Unknown`] and [`Refusal::NotClosed`].
    pub fn settlement(&self, name: &str) -> Result<Option<(u32, u64, bool)>, Refusal> {
        let client = self.client(name)?;
        if !client.closed {
            return Err(Refusal::NotClosed(name.to_owned()));
        }
        let count = (client.used, client.score_bytes, client.settled);
        Ok(client.in_flight.is_empty().then_some(count))
    }

    /// The stored reply of `request`.
    ///
    /// # Errors
    /// [`Refusal::InputDiffers`] when it answered other bytes.
    pub fn stored(&self, request: &str, input: Digest) -> Result<Option<&Outcome>, Refusal> {
        match self.replies.get(request) {
            None => Ok(None),
            Some(stored) if stored.input == input => Ok(Some(&stored.outcome)),
            Some(_) => Err(Refusal::InputDiffers(request.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
