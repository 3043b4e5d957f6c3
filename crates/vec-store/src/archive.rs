//! `archive.sqlite`: hash-chained events and the tables derived from them (ARV). This file owns
//! the writer; `chain` the hashes, `projection` the derived tables, `read` and `rows` the read side.
//!
//! WAL with synchronous FULL: a committed batch survives a power cut. One connection writes.

mod chain;
mod projection;
mod read;
mod rows;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use vec_search::Event;
use vec_types::{Digest, UnixMs, canonical_json};

pub use chain::{EventFault, StoredEvent, check_events, event_hash};
pub use read::ArchiveReader;
pub use rows::{ExecutionRow, NodeRow, ScoreRow};

use crate::StoreError;
use crate::store::Hook;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// Readers hold no locks for long; a writer that waits longer than this has a stuck neighbour.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The writer.
#[derive(Debug)]
pub struct Archive {
    conn: SqliteConnection,
    path: PathBuf,
    seq: u64,
    batch: u64,
    head: Digest,
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

fn writer_options(path: &Path) -> SqliteConnectOptions {
    options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

impl Archive {
    /// Makes an empty archive.
    ///
    /// # Errors
    /// Database errors.
    pub async fn create(path: &Path) -> Result<Self, StoreError> {
        Self::connect(path, writer_options(path).create_if_missing(true)).await
    }

    /// Opens an archive for writing and checks the chain of all its events.
    ///
    /// # Errors
    /// [`StoreError::Events`] when the chain does not hold; database errors.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let mut archive =
            Self::connect(path, writer_options(path).create_if_missing(false)).await?;
        let events = archive.events().await?;
        check_events(&events).map_err(|source| StoreError::Events {
            path: path.to_owned(),
            source,
        })?;
        if let Some(last) = events.last() {
            (archive.seq, archive.batch, archive.head) = (last.seq, last.batch, last.hash);
        }
        Ok(archive)
    }

    async fn connect(path: &Path, options: SqliteConnectOptions) -> Result<Self, StoreError> {
        let mut conn = SqliteConnection::connect_with(&options)
            .await
            .map_err(StoreError::db("open the archive", path))?;
        MIGRATIONS
            .run(&mut conn)
            .await
            .map_err(|source| StoreError::Migrate {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            conn,
            path: path.to_owned(),
            seq: 0,
            batch: 0,
            head: Digest::ZERO,
        })
    }

    /// Appends one batch and its projections in one transaction. All of it or nothing is stored.
    ///
    /// # Errors
    /// Database errors; an event without canonical JSON form.
    pub async fn append_batch(
        &mut self,
        at: UnixMs,
        events: &[Event],
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.append_with(at, events, &Hook::default()).await
    }

    pub(crate) async fn append_with(
        &mut self,
        at: UnixMs,
        events: &[Event],
        hook: &Hook,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.chain(at, events)?;
        let failed = |action| StoreError::db(action, &self.path);
        let mut tx = self
            .conn
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(failed("begin a transaction"))?;
        for (row, event) in stored.iter().zip(events) {
            read::insert_event(&mut tx, row)
                .await
                .map_err(failed("store an event"))?;
            projection::apply(&mut tx, row.at, event)
                .await
                .map_err(failed("derive tables"))?;
        }
        hook.step("events_begun");
        tx.commit().await.map_err(failed("commit events"))?;
        if let Some(last) = stored.last() {
            (self.seq, self.batch, self.head) = (last.seq, last.batch, last.hash);
        }
        hook.step("events_committed");
        Ok(stored)
    }

    fn chain(&self, at: UnixMs, events: &[Event]) -> Result<Vec<StoredEvent>, StoreError> {
        let batch = self.batch + 1;
        let (mut seq, mut prev) = (self.seq, self.head);
        let mut stored = Vec::with_capacity(events.len());
        for event in events {
            seq += 1;
            let what = "an event";
            let json = canonical_json(event)
                .map_err(|source| StoreError::Encode { what, source })
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())?;
            let hash = event_hash(prev, seq, batch, at, &json);
            stored.push(StoredEvent {
                seq,
                batch,
                at,
                kind: event.kind(),
                node: event.node(),
                json,
                prev,
                hash,
            });
            prev = hash;
        }
        Ok(stored)
    }

    /// Every event, in order.
    ///
    /// # Errors
    /// Database errors; a row that holds no event.
    pub async fn events(&mut self) -> Result<Vec<StoredEvent>, StoreError> {
        read::events_after(&mut self.conn, &self.path, 0).await
    }

    /// Number of the last event (0 = none) and its hash (zeros = none).
    #[must_use]
    pub const fn head(&self) -> (u64, Digest) {
        (self.seq, self.head)
    }

    /// Empties all projections and derives them again from the events.
    ///
    /// # Errors
    /// Database errors; an event that this version cannot read.
    pub async fn rebuild_projections(&mut self) -> Result<(), StoreError> {
        let events = self.events().await?;
        let failed = |action| StoreError::db(action, &self.path);
        let mut tx = self
            .conn
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(failed("begin a transaction"))?;
        projection::clear(&mut tx)
            .await
            .map_err(failed("empty tables"))?;
        for row in &events {
            let event = row.event()?;
            projection::apply(&mut tx, row.at, &event)
                .await
                .map_err(failed("derive tables"))?;
        }
        tx.commit().await.map_err(failed("commit tables"))
    }

    /// Every row of every projection as text, in a fixed order: equal texts, equal tables.
    ///
    /// # Errors
    /// Database errors.
    pub async fn dump_projections(&mut self) -> Result<Vec<String>, StoreError> {
        projection::dump(&mut self.conn)
            .await
            .map_err(StoreError::db("read tables", &self.path))
    }

    /// Folds the WAL into the file, leaves WAL mode and closes: afterwards the archive is one
    /// file that nothing changes any more.
    ///
    /// # Errors
    /// Database errors.
    pub async fn seal(mut self) -> Result<(), StoreError> {
        let failed = |action| StoreError::db(action, &self.path);
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut self.conn)
            .await
            .map_err(failed("checkpoint"))?;
        sqlx::query("PRAGMA journal_mode = DELETE")
            .execute(&mut self.conn)
            .await
            .map_err(failed("leave WAL mode"))?;
        let closed = self.conn.close().await;
        closed.map_err(StoreError::db("close the archive", &self.path))
    }

    /// Closes the connection without sealing.
    ///
    /// # Errors
    /// Database errors.
    pub async fn release(self) -> Result<(), StoreError> {
        let closed = self.conn.close().await;
        closed.map_err(StoreError::db("close the archive", &self.path))
    }

    /// A view for people and checks that never writes into the run directory: a sealed archive is
    /// read in place, a live one is copied until the copy is stable (ARV-05).
    ///
    /// # Errors
    /// I/O and database errors.
    pub async fn open_read_only(path: &Path) -> Result<ArchiveReader, StoreError> {
        ArchiveReader::open(path).await
    }
}
