//! The writer of a run directory. Order of every commit (architecture §6): write and sync temps,
//! rename, sync each directory once, one ledger append, then the events that refer to the files.
//!
//! `writer` owns the synchronous half (files and ledger), `register` what is in place already,
//! `recover` what a crash left behind, `close` the end.

mod close;
mod recover;
mod register;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use vec_search::Event;
use vec_types::{Digest, RelPath, RunId, UnixMs};

use crate::ledger::{LedgerOp, NewLine};
use crate::{Archive, NewFile, RunLayout, StoreError, StoredEvent, rel};
use writer::Writer;

/// Called after a write step with the step's name, on whichever thread did it. Tests end the
/// process there.
pub type FaultHook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// Every named write step: of a commit in order, then of `close` in order.
pub const STEPS: [&str; 13] = [
    "temps_written",
    "temps_synced",
    "renamed",
    "dirs_synced",
    "ledger_appended",
    "ledger_synced",
    "events_begun",
    "events_committed",
    "close_manifest_written",
    "close_work_emptied",
    "close_archive_sealed",
    "close_files_registered",
    "close_line_synced",
];

#[derive(Clone, Default)]
pub(crate) struct Hook(Option<FaultHook>);

impl Hook {
    pub(crate) fn step(&self, name: &'static str) {
        if let Some(hook) = &self.0 {
            hook(name);
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Hook" } else { "no hook" })
    }
}

/// One step of the run: its files, and the events that may refer to them.
#[derive(Debug)]
pub struct Batch {
    /// Time of the ledger lines and of every event.
    pub at: UnixMs,
    /// Files, registered before the events are stored.
    pub files: Vec<NewFile>,
    /// Events, all or none of which are stored.
    pub events: Vec<Event>,
}

/// What [`Store::open`] found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Unregistered files, now below `orphans/` and registered.
    pub orphans: Vec<RelPath>,
    /// The torn end of the ledger, kept as this file.
    pub torn_tail: Option<RelPath>,
    /// Replacements that were not registered in time: the earlier version is back.
    pub undone: Vec<RelPath>,
    /// Registered files that are gone: a taint, recorded beside the run.
    pub missing: Vec<RelPath>,
}

/// The writer of one run. A failed or cut-short write breaks it: open the run again to recover.
#[derive(Debug)]
pub struct Store {
    layout: RunLayout,
    // Absent while a write is under way and after one failed.
    live: Option<Live>,
    hook: Hook,
}

#[derive(Debug)]
struct Live {
    writer: Box<Writer>,
    archive: Archive,
}

impl Store {
    /// Makes `<root>/<run>/` with empty archive and ledger, and becomes its writer.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the directory exists, with nothing touched; I/O errors.
    pub async fn create(root: &Path, run: &RunId, _at: UnixMs) -> Result<Self, StoreError> {
        let layout = RunLayout::new(root, run);
        let for_writer = layout.clone();
        let writer = blocking(&layout, move || Writer::create(for_writer)).await?;
        let archive = Archive::create(&layout.archive()).await?;
        Ok(Self::with(layout, writer, archive))
    }

    /// Becomes the writer of a run that is not closed and sets right what a crash left behind.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::Closed`], [`StoreError::Ledger`],
    /// [`StoreError::LedgerShort`], [`StoreError::Events`], [`StoreError::LostEvent`]; I/O errors.
    pub async fn open(run_dir: &Path, at: UnixMs) -> Result<(Self, Recovery), StoreError> {
        Self::take_over(run_dir, at, false).await
    }

    /// Becomes the writer of a closed run, which the caller has verified, with a `reopen` line.
    ///
    /// # Errors
    /// [`StoreError::NotClosed`]; otherwise as [`Store::open`].
    pub async fn reopen(run_dir: &Path, at: UnixMs) -> Result<(Self, Recovery), StoreError> {
        Self::take_over(run_dir, at, true).await
    }

    async fn take_over(
        run_dir: &Path,
        at: UnixMs,
        closed: bool,
    ) -> Result<(Self, Recovery), StoreError> {
        let layout = RunLayout::of_run_dir(run_dir)?;
        let for_start = layout.clone();
        let found = blocking(&layout, move || recover::begin(for_start, closed)).await?;
        // Whatever must refuse the run does so before anything is moved or written.
        recover::check_evidence(&layout, &found.report).await?;
        let (writer, recovery) = blocking(&layout, move || found.take_over(at)).await?;
        let archive = Archive::open(&layout.archive()).await?;
        Ok((Self::with(layout, writer, archive), recovery))
    }

    fn with(layout: RunLayout, writer: Writer, archive: Archive) -> Self {
        let writer = Box::new(writer);
        Self {
            layout,
            live: Some(Live { writer, archive }),
            hook: Hook::default(),
        }
    }

    /// Paths of the run.
    #[must_use]
    pub const fn layout(&self) -> &RunLayout {
        &self.layout
    }

    /// Calls `hook` after each of [`STEPS`] from now on.
    pub fn set_fault_hook(&mut self, hook: FaultHook) {
        self.hook = Hook(Some(hook));
    }

    /// Did a write fail, so that every further one is refused?
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.live.is_none()
    }

    /// Brings in files and stores events, in that order. When it returns, both survive a crash.
    ///
    /// # Errors
    /// [`StoreError::BadFile`] for files that may not come in: nothing has happened then. Any
    /// other error breaks the store; nothing acknowledged before is damaged.
    pub async fn commit(&mut self, batch: Batch) -> Result<Vec<StoredEvent>, StoreError> {
        let Batch { at, files, events } = batch;
        if !files.is_empty() {
            let layout = &self.layout;
            let writer = self.live.as_ref().map(|live| &live.writer);
            let writer = writer.ok_or_else(|| broken(layout))?;
            writer.check(&files)?;
            self.write(move |writer, hook| writer.place(at, files, hook))
                .await?;
        }
        let hook = self.hook.clone();
        let mut live = self.take()?;
        let stored = live.archive.append_with(at, &events, &hook).await?;
        self.live = Some(live);
        Ok(stored)
    }

    /// Registers files already in place, or all files of directories: hashed, synced, made
    /// read-only (hard links excepted). Returns how many were new to the ledger.
    ///
    /// # Errors
    /// I/O errors, symlinks and special files among them (`code/` may hold symlinks).
    pub async fn register_existing(
        &mut self,
        at: UnixMs,
        paths: &[RelPath],
    ) -> Result<usize, StoreError> {
        let paths = paths.to_vec();
        self.write(move |writer, hook| writer.register(at, &paths, hook))
            .await
    }

    /// Registers the present length of every log, with the hash of that prefix (O-LED-2).
    ///
    /// # Errors
    /// I/O errors.
    pub async fn mark_logs(&mut self, at: UnixMs) -> Result<(), StoreError> {
        self.write(move |writer, hook| {
            let lines = writer.log_marks()?;
            writer.append(at, &lines, hook)
        })
        .await
    }

    /// Registers number and hash of the last event.
    ///
    /// # Errors
    /// I/O errors.
    pub async fn mark_archive(&mut self, at: UnixMs) -> Result<(), StoreError> {
        let mark = archive_mark(self.head());
        self.write(move |writer, hook| writer.append(at, &[mark], hook))
            .await
    }

    /// Every event, in order.
    ///
    /// # Errors
    /// Database errors.
    pub async fn events(&mut self) -> Result<Vec<StoredEvent>, StoreError> {
        let layout = &self.layout;
        let live = self.live.as_mut().ok_or_else(|| broken(layout))?;
        live.archive.events().await
    }

    /// Paths in the ledger below a directory (none while broken).
    #[must_use]
    pub fn registered_below(&self, dir: &str) -> Vec<RelPath> {
        let prefix = format!("{dir}/");
        let live = self.live.iter();
        live.flat_map(|live| live.writer.registry.keys())
            .filter(|path| path.as_str().starts_with(&prefix))
            .cloned()
            .collect()
    }

    /// Number of the last event (0 = none, or broken) and its hash.
    #[must_use]
    pub fn head(&self) -> (u64, Digest) {
        self.live
            .as_ref()
            .map_or((0, Digest::ZERO), |live| live.archive.head())
    }

    /// Hash of the last ledger line (zeros = none, or broken).
    #[must_use]
    pub fn ledger_head(&self) -> Digest {
        self.live
            .as_ref()
            .map_or(Digest::ZERO, |live| live.writer.ledger_head())
    }

    /// Gives up being the writer without closing the run.
    ///
    /// # Errors
    /// Database errors.
    pub async fn release(mut self) -> Result<(), StoreError> {
        // The lock goes with the writer, after the archive's connection.
        let Live { writer, archive } = self.take()?;
        archive.release().await?;
        drop(writer);
        Ok(())
    }

    fn take(&mut self) -> Result<Live, StoreError> {
        self.live.take().ok_or_else(|| broken(&self.layout))
    }

    // Runs the synchronous half on a blocking thread. An error, a panic or a dropped future
    // leaves the store broken, because the writer does not come back.
    async fn write<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer, &Hook) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let hook = self.hook.clone();
        let Live {
            mut writer,
            archive,
        } = self.take()?;
        let (writer, done) = blocking(&self.layout, move || {
            let done = work(&mut writer, &hook)?;
            Ok((writer, done))
        })
        .await?;
        self.live = Some(Live { writer, archive });
        Ok(done)
    }
}

fn archive_mark((seq, hash): (u64, Digest)) -> NewLine {
    NewLine {
        op: LedgerOp::ArchiveMark,
        path: rel::archive(),
        size: seq,
        sha256: hash,
    }
}

fn broken(layout: &RunLayout) -> StoreError {
    StoreError::Broken(layout.run_dir().to_owned())
}

async fn blocking<T: Send + 'static>(
    layout: &RunLayout,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_cut| StoreError::CutShort(layout.run_dir().to_owned()))?
}
