//! Taking over a run: a crash may have left temps, files in place without a ledger line,
//! replacements without a ledger line, and a torn ledger line. Everything is kept; everything
//! kept is registered. A ledger that was shortened is no crash: the run is refused untouched.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use vec_types::{Digest, RelPath, UnixMs};
use walkdir::WalkDir;

use super::writer::Writer;
use super::{Hook, Recovery};
use crate::files::{empty_dir, hash_file, move_file, sync_dir, sync_dirs, walk_error};
use crate::layout::ORPHANS;
use crate::ledger::{Ledger, LedgerOp, LedgerReport, NewLine};
use crate::{
    Archive, RunLayout, RunLock, StoreError, StoredEvent, is_exempt_while_open, rel, taint,
};

/// A run whose lock is held and whose ledger is read. Nothing has been changed yet.
#[derive(Debug)]
pub(super) struct Found {
    layout: RunLayout,
    lock: RunLock,
    ledger: Ledger,
    pub(super) report: LedgerReport,
}

pub(super) fn begin(layout: RunLayout, closed: bool) -> Result<Found, StoreError> {
    let run_dir = layout.run_dir().to_owned();
    if !run_dir.is_dir() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        return Err(StoreError::io("open", &run_dir)(missing));
    }
    let lock = RunLock::acquire(&layout)?;
    let (ledger, report) = Ledger::open(&layout.ledger())?;
    if report.closed && !closed {
        return Err(StoreError::Closed(run_dir));
    }
    if closed && !report.closed {
        return Err(StoreError::NotClosed(run_dir));
    }
    Ok(Found {
        layout,
        lock,
        ledger,
        report,
    })
}

impl Found {
    /// Sets right what a crash left behind, and reopens a closed run.
    pub(super) fn take_over(self, at: UnixMs) -> Result<(Writer, Recovery), StoreError> {
        let Self {
            layout,
            lock,
            mut ledger,
            report,
        } = self;
        let mut recovery = Recovery::default();
        if report.torn_tail > 0 {
            recovery.torn_tail = Some(keep_torn_tail(&layout, &mut ledger, &report)?);
        }
        let mut writer = Writer::with(layout, ledger, report.registry, lock)?;
        if report.closed {
            reopen(&mut writer, at, report.head)?;
        }
        recovery.undone = writer.undo()?;
        recovery.orphans = writer.sweep(at)?;
        recovery.missing = writer.missing();
        let reasons: Vec<String> = recovery
            .missing
            .iter()
            .map(|path| format!("{path} is in the ledger but not on disk"))
            .collect();
        taint(&writer.layout, at, &reasons)?;
        Ok((writer, recovery))
    }
}

fn reopen(writer: &mut Writer, at: UnixMs, head: Digest) -> Result<(), StoreError> {
    let line = NewLine {
        op: LedgerOp::Reopen,
        path: rel::ledger(),
        size: 0,
        sha256: head,
    };
    writer.append(at, &[line], &Hook::default())?;
    // Not a covered file: the entry above was only the chain's.
    writer.registry.remove(&rel::ledger());
    Ok(())
}

fn keep_torn_tail(
    layout: &RunLayout,
    ledger: &mut Ledger,
    report: &LedgerReport,
) -> Result<RelPath, StoreError> {
    let path = layout.ledger();
    let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
    let tail = bytes.get(bytes.len() - report.torn_tail..);
    // Named by content, so that a crash between keeping and cutting keeps it once.
    let tail = tail.unwrap_or_default();
    let name = format!("{ORPHANS}/ledger-tail-{}", Digest::of(tail).short(16));
    let kept: RelPath = name
        .parse()
        .map_err(|_| StoreError::bad_file(&path, "has no name for its tail"))?;
    let target = layout.at(&kept);
    let mut file = fs::File::create(&target).map_err(StoreError::io("create", &target))?;
    file.write_all(tail)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io("write", &target))?;
    sync_dir(&layout.orphans())?;
    ledger.cut_torn_tail()?;
    Ok(kept)
}

/// Ledger, archive and files must agree as no crash can make them disagree: every marked event is
/// there with its hash, and what an event refers to is registered, as is the lock. Reads only.
///
/// A crash while the launcher writes the lock is refused, too: such a run has not begun, and
/// without its lock it never can.
pub(super) async fn check_evidence(
    layout: &RunLayout,
    report: &LedgerReport,
) -> Result<(), StoreError> {
    let events = Archive::peek(&layout.archive()).await?;
    check_marks(layout, report, &events)?;
    let short = |what: String| StoreError::LedgerShort {
        path: layout.ledger(),
        what,
    };
    let absent = |path: &RelPath| {
        !report.registry.contains_key(path) && layout.at(path).symlink_metadata().is_ok()
    };
    let lock = rel::config_lock();
    if absent(&lock) {
        let hint = if events.is_empty() {
            " and the archive holds no event, so the launch was cut short: start a new run, or"
        } else {
            ""
        };
        return Err(short(format!("does not register {lock}{hint}")));
    }
    if report.entries.is_empty() && !events.is_empty() {
        let count = events.len();
        return Err(short(format!(
            "has no line, but the archive holds {count} events"
        )));
    }
    // An event of another version names nothing here; opening the archive checks the chain.
    let decoded = events.iter().filter_map(|row| row.event().ok());
    let mut named = decoded.filter_map(|event| rel::evidence_of(&event));
    match named.find(absent) {
        Some(path) => Err(short(format!("does not register {path}"))),
        None => Ok(()),
    }
}

/// Every marked event must be there with its hash: otherwise acknowledged events are lost.
fn check_marks(
    layout: &RunLayout,
    report: &LedgerReport,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    let marks = report.entries.iter();
    for mark in marks.filter(|entry| entry.op == LedgerOp::ArchiveMark && entry.size > 0) {
        let index = usize::try_from(mark.size - 1).ok();
        let found = index.and_then(|index| events.get(index));
        if found.is_none_or(|event| event.hash != mark.sha256) {
            return Err(StoreError::LostEvent {
                path: layout.archive(),
                seq: mark.size,
                line: mark.seq,
            });
        }
    }
    Ok(())
}

impl Writer {
    /// Brings back versions whose replacement is not in the ledger.
    fn undo(&mut self) -> Result<Vec<RelPath>, StoreError> {
        let undo = self.layout.spool_undo();
        let (mut undone, mut touched) = (Vec::new(), BTreeSet::new());
        if !undo.is_dir() {
            return Ok(undone);
        }
        for kept in regular_files(&undo)? {
            let Some(path) = relative(&undo, &kept) else {
                continue;
            };
            let in_force = self.registry.get(&path).map(|old| old.sha256);
            if in_force != Some(hash_file(&kept)?.1) {
                continue;
            }
            let target = self.layout.at(&path);
            let replaced = target.exists() && Some(hash_file(&target)?.1) != in_force;
            if replaced {
                let orphan = self.orphan_name(&path);
                move_file(&target, &self.layout.at(&orphan), &mut touched)?;
                undone.push(path);
            }
            move_file(&kept, &target, &mut touched)?;
        }
        sync_dirs(&touched)?;
        empty_dir(&undo)?;
        Ok(undone)
    }

    /// Moves unregistered files below `orphans/` and registers them.
    pub(super) fn sweep(&mut self, at: UnixMs) -> Result<Vec<RelPath>, StoreError> {
        let run_dir = self.layout.run_dir().to_owned();
        let (mut lines, mut touched) = (Vec::new(), BTreeSet::new());
        for (index, file) in regular_files(&run_dir)?.into_iter().enumerate() {
            let path = relative(&run_dir, &file);
            let known =
                |path: &RelPath| is_exempt_while_open(path) || self.registry.contains_key(path);
            let kept = match path {
                Some(path) if known(&path) => continue,
                // An earlier recovery got as far as moving it.
                Some(path) if path.top() == ORPHANS => path,
                Some(path) => self.orphan_name(&path),
                None => self.numbered_orphan(index),
            };
            let target = self.layout.at(&kept);
            if target != file {
                move_file(&file, &target, &mut touched)?;
            }
            let (size, sha256) = hash_file(&target)?;
            lines.push(NewLine {
                op: LedgerOp::Orphan,
                path: kept,
                size,
                sha256,
            });
        }
        touched.insert(self.layout.orphans());
        sync_dirs(&touched)?;
        self.append(at, &lines, &Hook::default())?;
        Ok(lines.into_iter().map(|line| line.path).collect())
    }

    fn orphan_name(&self, path: &RelPath) -> RelPath {
        let name = format!("{ORPHANS}/{}/{path}", self.ledger.seq() + 1);
        name.parse()
            .unwrap_or_else(|_| self.numbered_orphan(path.as_str().len()))
    }

    // For names that do not fit a run directory.
    fn numbered_orphan(&self, index: usize) -> RelPath {
        let name = format!("{ORPHANS}/{}/unnamed-{index}", self.ledger.seq() + 1);
        name.parse()
            .unwrap_or_else(|_| unreachable!("made of numbers"))
    }

    /// Registered files that are not on disk.
    fn missing(&self) -> Vec<RelPath> {
        let gone = |path: &&RelPath| !self.layout.at(path).is_file();
        self.registry.keys().filter(gone).cloned().collect()
    }
}

fn relative(dir: &Path, file: &Path) -> Option<RelPath> {
    file.strip_prefix(dir).ok()?.to_str()?.parse().ok()
}

fn regular_files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(dir).follow_links(false).sort_by_file_name() {
        let entry = entry.map_err(|error| walk_error(dir, error))?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}
