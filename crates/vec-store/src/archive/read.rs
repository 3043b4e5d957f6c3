//! The read side: for `vecctl show`, `watch`, `verify` and `package`. It never writes into the
//! run directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use tempfile::TempDir;
use vec_types::{NodeId, UnixMs};

use super::rows::{ExecutionRow, NodeRow, ScoreRow, execution_row, node_row, score_row};
use super::{Archive, StoredEvent, options};
use crate::StoreError;

/// An archive opened for reading.
#[derive(Debug)]
pub struct ArchiveReader {
    conn: SqliteConnection,
    path: PathBuf,
    // Holds the copy of a live archive; removed when the reader goes.
    _copy: Option<TempDir>,
}

/// A live archive that changes this often while it is copied is not readable now.
const COPY_ATTEMPTS: u32 = 50;

impl ArchiveReader {
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let live = companion(path, "-wal").exists();
        let (copy, source) = if live {
            let (dir, source) = stable_copy(path)?;
            (Some(dir), source)
        } else {
            (None, path.to_owned())
        };
        let options = options(&source).read_only(!live).immutable(!live);
        let conn = SqliteConnection::connect_with(&options)
            .await
            .map_err(StoreError::db("open the archive", path))?;
        Ok(Self {
            conn,
            path: path.to_owned(),
            _copy: copy,
        })
    }

    /// Events with a number above `seq`, in order.
    ///
    /// # Errors
    /// Database errors; a row that holds no event.
    pub async fn events_after(&mut self, seq: u64) -> Result<Vec<StoredEvent>, StoreError> {
        events_after(&mut self.conn, &self.path, seq).await
    }

    /// Every node, in order of creation.
    ///
    /// # Errors
    /// Database errors.
    pub async fn nodes(&mut self) -> Result<Vec<NodeRow>, StoreError> {
        self.rows("SELECT * FROM nodes ORDER BY node", node_row)
            .await
    }

    /// Every execution, by node and name.
    ///
    /// # Errors
    /// Database errors.
    pub async fn executions(&mut self) -> Result<Vec<ExecutionRow>, StoreError> {
        self.rows(
            "SELECT * FROM executions ORDER BY node, exec",
            execution_row,
        )
        .await
    }

    /// Every score, by node and execution.
    ///
    /// # Errors
    /// Database errors.
    pub async fn scores(&mut self) -> Result<Vec<ScoreRow>, StoreError> {
        self.rows("SELECT * FROM scores ORDER BY node, exec", score_row)
            .await
    }

    /// The `meta` table.
    ///
    /// # Errors
    /// Database errors.
    pub async fn meta(&mut self) -> Result<BTreeMap<String, String>, StoreError> {
        let pair = |row: &SqliteRow| Ok((row.try_get("key")?, row.try_get("value")?));
        let rows = self.rows("SELECT * FROM meta", pair).await?;
        Ok(rows.into_iter().collect())
    }

    async fn rows<T>(
        &mut self,
        sql: &'static str,
        read: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = sqlx::query(sql).fetch_all(&mut self.conn).await;
        let rows = rows.and_then(|rows| rows.iter().map(read).collect());
        rows.map_err(StoreError::db("read a table", &self.path))
    }
}

pub(super) async fn insert_event(
    conn: &mut SqliteConnection,
    row: &StoredEvent,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO events (seq, batch, at, kind, node, json, prev, hash) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(row.seq.cast_signed())
    .bind(row.batch.cast_signed())
    .bind(row.at.0)
    .bind(&row.kind)
    .bind(row.node.map(|node| node.0))
    .bind(&row.json)
    .bind(row.prev.to_string())
    .bind(row.hash.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn events_after(
    conn: &mut SqliteConnection,
    path: &Path,
    seq: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let rows = sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq")
        .bind(seq.cast_signed())
        .fetch_all(conn)
        .await;
    let rows = rows.and_then(|rows| rows.iter().map(event_row).collect());
    rows.map_err(StoreError::db("read events", path))
}

fn event_row(row: &SqliteRow) -> Result<StoredEvent, sqlx::Error> {
    let digest = |column: &str| {
        let text: String = row.try_get(column)?;
        text.parse()
            .map_err(|error: vec_types::DigestError| sqlx::Error::Decode(error.into()))
    };
    Ok(StoredEvent {
        seq: row.try_get::<i64, _>("seq")?.cast_unsigned(),
        batch: row.try_get::<i64, _>("batch")?.cast_unsigned(),
        at: UnixMs(row.try_get("at")?),
        kind: row.try_get("kind")?,
        node: row.try_get::<Option<u32>, _>("node")?.map(NodeId),
        json: row.try_get("json")?,
        prev: digest("prev")?,
        hash: digest("hash")?,
    })
}

fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

type Stamp = Option<(u64, Option<SystemTime>)>;

fn stamp(path: &Path) -> Stamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

/// Copies archive and WAL until neither changed meanwhile.
fn stable_copy(path: &Path) -> Result<(TempDir, PathBuf), StoreError> {
    let dir = TempDir::with_prefix("vec-archive-").map_err(StoreError::io("copy", path))?;
    let target = dir.path().join("archive.sqlite");
    let wal = companion(path, "-wal");
    for _ in 0..COPY_ATTEMPTS {
        let before = (stamp(path), stamp(&wal));
        fs::copy(path, &target).map_err(StoreError::io("copy", path))?;
        let copy = companion(&target, "-wal");
        match fs::copy(&wal, &copy) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let _absent = fs::remove_file(&copy);
            }
            Err(error) => return Err(StoreError::io("copy", &wal)(error)),
        }
        if before == (stamp(path), stamp(&wal)) {
            return Ok((dir, target));
        }
    }
    Err(StoreError::bad_file(
        path,
        "changes too fast to be copied; try again",
    ))
}

impl Archive {
    /// Every event as far as it can be read without changing anything; none when the archive was
    /// not made yet, or a crash came before its tables.
    pub(crate) async fn peek(path: &Path) -> Result<Vec<StoredEvent>, StoreError> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut reader = ArchiveReader::open(path).await?;
        let table = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'events'";
        let name = |row: &SqliteRow| row.try_get::<String, _>("name");
        if reader.rows(table, name).await?.is_empty() {
            return Ok(Vec::new());
        }
        reader.events_after(0).await
    }

    /// A writable copy in a temporary directory, for checks that rebuild tables. The copy goes
    /// with the returned guard.
    ///
    /// # Errors
    /// I/O and database errors; [`StoreError::Events`] when the chain does not hold.
    pub async fn open_copy(path: &Path) -> Result<(Self, TempDir), StoreError> {
        let (dir, target) = stable_copy(path)?;
        let mut perms = fs::metadata(&target)
            .map_err(StoreError::io("stat", &target))?
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut perms, 0o600);
        fs::set_permissions(&target, perms).map_err(StoreError::io("chmod", &target))?;
        Ok((Self::open(&target).await?, dir))
    }
}
