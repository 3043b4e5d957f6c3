//! A copy of a run with one event changed and everything that hashes it made anew: event hashes,
//! derived tables, the archive's file, its marks and the whole chain of the ledger.

use std::fs;
use std::path::{Path, PathBuf};

use vec_search::Event;
use vec_store::{
    Archive, Ledger, LedgerEntry, LedgerOp, NewLine, RunLayout, StoreError, StoredEvent,
    covered_hash, hash_file, verify_ledger,
};
use vec_types::Digest;
use walkdir::WalkDir;

/// Anything that stops the check itself.
pub(crate) type Failure = Box<dyn std::error::Error>;

const ARCHIVE: &str = "archive.sqlite";
const LEDGER: &str = "ledger.jsonl";

/// Makes the run of `layout` again below `scratch`, with `event` in place `seq`. None when the
/// archive's tables refuse the event, such as one of a node that does not exist.
pub(crate) async fn with_event(
    layout: &RunLayout,
    rows: &[StoredEvent],
    scratch: &Path,
    seq: u64,
    event: &Event,
) -> Result<Option<PathBuf>, Failure> {
    let copy = scratch.join(layout.run().as_str());
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    mirror(layout.run_dir(), &copy)?;
    let hashes = match archive(&copy.join(ARCHIVE), rows, seq, event).await {
        Err(StoreError::Database { .. }) => return Ok(None),
        hashes => hashes?,
    };
    ledger(layout, &copy, &hashes)?;
    Ok(Some(copy))
}

/// Everything but archive and ledger, by hard links where the file system has them.
fn mirror(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let below = entry.path().strip_prefix(from)?;
        let target = to.join(below);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else if entry.file_type().is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if below != Path::new(ARCHIVE) && below != Path::new(LEDGER) {
            let linked = fs::hard_link(entry.path(), &target);
            linked.or_else(|_| fs::copy(entry.path(), &target).map(|_bytes| ()))?;
        }
    }
    Ok(())
}

async fn archive(
    path: &Path,
    rows: &[StoredEvent],
    seq: u64,
    event: &Event,
) -> Result<Vec<Digest>, StoreError> {
    let mut archive = Archive::create(path).await?;
    let mut hashes = Vec::new();
    for batch in rows.chunk_by(|a, b| a.batch == b.batch) {
        let events = batch.iter().map(|row| match row.seq == seq {
            true => Ok(event.clone()),
            false => row.event(),
        });
        let events = events.collect::<Result<Vec<Event>, _>>()?;
        let at = batch.first().map_or(vec_types::UnixMs(0), |row| row.at);
        let stored = archive.append_batch(at, &events).await?;
        hashes.extend(stored.into_iter().map(|row| row.hash));
    }
    archive.seal().await?;
    Ok(hashes)
}

fn ledger(layout: &RunLayout, copy: &Path, hashes: &[Digest]) -> Result<(), Failure> {
    let old = verify_ledger(&fs::read(layout.ledger())?)?;
    let path = copy.join(LEDGER);
    let archive = hash_file(&copy.join(ARCHIVE))?;
    let is_archive =
        |entry: &&LedgerEntry| entry.op != LedgerOp::ArchiveMark && entry.path.as_str() == ARCHIVE;
    let sealed = old.entries.iter().rfind(is_archive).map(|entry| entry.seq);
    let mut ledger = Ledger::create(&path)?;
    // A close is over what stands before it, so it is written by itself.
    for lines in old
        .entries
        .chunk_by(|a, b| a.at == b.at && b.op != LedgerOp::Close)
    {
        let first = lines.first().ok_or("a chunk has a line")?;
        let new = lines.iter().map(|entry| match entry.op {
            LedgerOp::ArchiveMark => Ok(mark(entry, hashes)),
            LedgerOp::Close => {
                let so_far = verify_ledger(&fs::read(&path)?)?;
                Ok(line(entry, entry.size, covered_hash(&so_far.registry)))
            }
            _ if Some(entry.seq) == sealed => Ok(line(entry, archive.0, archive.1)),
            _ => Ok(line(entry, entry.size, entry.sha256)),
        });
        let new = new.collect::<Result<Vec<NewLine>, Failure>>()?;
        ledger.append(first.at, &new)?;
    }
    Ok(())
}

/// The mark of an event has the event's new hash.
fn mark(entry: &LedgerEntry, hashes: &[Digest]) -> NewLine {
    let index = usize::try_from(entry.size)
        .ok()
        .and_then(|size| size.checked_sub(1));
    let hash = index.and_then(|index| hashes.get(index)).copied();
    line(entry, entry.size, hash.unwrap_or(entry.sha256))
}

fn line(entry: &LedgerEntry, size: u64, sha256: Digest) -> NewLine {
    NewLine {
        op: entry.op,
        path: entry.path.clone(),
        size,
        sha256,
    }
}
