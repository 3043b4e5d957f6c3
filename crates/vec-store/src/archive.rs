//! `archive.sqlite`: hash-chained events and the tables derived from them (ARV). This file owns
//! the writer; `chain` the hashes, `projection` the derived tables, `read` and `rows` the read side.
//!
//! WAL with synchronous FULL: a committed batch survives a power cut. One connection writes.

mod chain;
mod projection;
mod read;
mod rows;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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

/// A foreign reader of the archive keeps it from leaving WAL mode, and SQLite then fails at once:
/// sealing tries again for this long, in steps of [`SEAL_STEP`].
const SEAL_WAIT: Duration = Duration::from_secs(10);
const SEAL_STEP: Duration = Duration::from_millis(100);

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
    /// file that nothing changes any more. Waits up to 10 s for foreign readers to go.
    ///
    /// # Errors
    /// Database errors.
    pub async fn seal(mut self) -> Result<(), StoreError> {
        self.leave_wal(SEAL_WAIT).await?;
        let closed = self.conn.close().await;
        closed.map_err(StoreError::db("close the archive", &self.path))
    }

    async fn leave_wal(&mut self, wait: Duration) -> Result<(), StoreError> {
        let failed = |action| StoreError::db(action, &self.path);
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut self.conn)
            .await
            .map_err(failed("checkpoint"))?;
        let began = Instant::now();
        loop {
            let left = sqlx::query("PRAGMA journal_mode = DELETE")
                .execute(&mut self.conn)
                .await
                .map_err(failed("leave WAL mode"));
            match left {
                Err(error) if error.is_busy() && began.elapsed() < wait => {
                    tokio::time::sleep(SEAL_STEP).await;
                }
                other => return other.map(|_done| ()),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with one event, and a foreign connection that reads it.
    async fn read_by_another(dir: &Path) -> (Archive, SqliteConnection) {
        let path = dir.join("archive.sqlite");
        let mut archive = Archive::create(&path).await.expect("creates");
        let stop = Event::StopRequested {
            reason: vec_types::StopReason::Operator,
            detail: "test".to_owned(),
        };
        let stored = archive.append_batch(UnixMs(1), &[stop]).await;
        assert_eq!(stored.expect("stores").len(), 1);
        let mut reader = SqliteConnection::connect_with(&options(&path))
            .await
            .expect("opens");
        let rows = sqlx::query("SELECT * FROM events").fetch_all(&mut reader);
        assert_eq!(rows.await.expect("reads").len(), 1);
        (archive, reader)
    }

    #[tokio::test]
    async fn sealing_waits_for_a_foreign_reader_to_go() {
        let dir = tempfile::TempDir::new().expect("tempdir");
        let (archive, reader) = read_by_another(dir.path()).await;
        let path = archive.path.clone();
        let sealing = tokio::spawn(archive.seal());
        // One step in, the seal has been refused at least once.
        tokio::time::timeout(SEAL_STEP, std::future::pending::<()>())
            .await
            .expect_err("pending");
        assert!(!sealing.is_finished());
        reader.close().await.expect("closes");
        sealing.await.expect("joins").expect("seals");
        assert!(!dir.path().join("archive.sqlite-wal").exists());
        let mut sealed = Archive::open_read_only(&path).await.expect("opens");
        assert_eq!(sealed.events_after(0).await.expect("reads").len(), 1);
    }

    #[tokio::test]
    async fn sealing_does_not_wait_for_ever() {
        let dir = tempfile::TempDir::new().expect("tempdir");
        let (mut archive, reader) = read_by_another(dir.path()).await;
        let began = Instant::now();
        let refused = archive.leave_wal(SEAL_STEP * 3).await.expect_err("read");
        assert!(refused.is_busy(), "{refused:?}");
        assert!(refused.to_string().contains("archive.sqlite"), "{refused}");
        assert!(began.elapsed() >= SEAL_STEP * 3);
        reader.close().await.expect("closes");
        archive.seal().await.expect("seals");
    }
}
