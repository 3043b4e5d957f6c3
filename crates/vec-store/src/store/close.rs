//! The end of a segment: afterwards every regular file of the run directory is in the ledger with
//! its digest, and nothing may change.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use vec_types::{Digest, RelPath, UnixMs, pretty_json};

use super::writer::Writer;
use super::{Hook, Live, Store, archive_mark, blocking};
use crate::files::{empty_dir, hash_file, sync_dir};
use crate::layout::{ARCHIVE, PROGRAMS};
use crate::ledger::{LedgerOp, NewLine};
use crate::{Batch, NewFile, StoreError, covered_hash, rel};

impl Store {
    /// Writes the stop manifest, empties `work/`, seals the archive, registers everything that is
    /// not in the ledger yet and ends it with `close`. Returns the ledger's head.
    ///
    /// No process may append to `logs/` any more: whatever comes later makes `verify` fail.
    ///
    /// # Errors
    /// I/O and database errors; the run is then not closed and can be opened again.
    pub async fn close(
        mut self,
        at: UnixMs,
        stop_manifest: &serde_json::Value,
    ) -> Result<Digest, StoreError> {
        let what = "the stop manifest";
        let bytes =
            pretty_json(stop_manifest).map_err(|source| StoreError::Encode { what, source })?;
        let manifest = NewFile::replace(rel::stop_manifest(), bytes);
        self.commit(Batch {
            at,
            files: vec![manifest],
            events: Vec::new(),
        })
        .await?;
        self.hook.step("close_manifest_written");
        let work = self.layout.work();
        self.write(move |_, _| empty_dir(&work)).await?;
        self.hook.step("close_work_emptied");
        let mark = archive_mark(self.head());
        let hook = self.hook.clone();
        let Live {
            mut writer,
            archive,
        } = self.take()?;
        archive.seal().await?;
        hook.step("close_archive_sealed");
        blocking(&self.layout, move || writer.close(at, mark, &hook)).await
    }
}

impl Writer {
    fn close(&mut self, at: UnixMs, mark: NewLine, hook: &Hook) -> Result<Digest, StoreError> {
        self.sweep(at)?;
        let mut lines = vec![mark];
        lines.extend(self.log_marks()?);
        let mut growing = BTreeSet::new();
        for name in [ARCHIVE, PROGRAMS] {
            self.add_growing(name, &mut growing)?;
        }
        for path in growing {
            let (size, sha256) = hash_file(&self.layout.at(&path))?;
            let old = self.registry.get(&path);
            if old.is_some_and(|old| old.sha256 == sha256 && old.size == size) {
                continue;
            }
            let op = if old.is_some() {
                LedgerOp::Replace
            } else {
                LedgerOp::Create
            };
            lines.push(NewLine {
                op,
                path,
                size,
                sha256,
            });
        }
        // The archive's companions went when it was sealed: that must last, too.
        sync_dir(self.layout.run_dir())?;
        self.append(at, &lines, hook)?;
        hook.step("close_files_registered");
        let close = NewLine {
            op: LedgerOp::Close,
            path: rel::ledger(),
            size: self.registry.len() as u64,
            sha256: covered_hash(&self.registry),
        };
        self.append(at, &[close], hook)?;
        hook.step("close_line_synced");
        self.clear_spool()?;
        Ok(self.ledger_head())
    }

    fn add_growing(&self, name: &str, files: &mut BTreeSet<RelPath>) -> Result<(), StoreError> {
        let top = self.layout.run_dir().join(name);
        let path = name.parse();
        let path: RelPath = path.map_err(|_| StoreError::bad_file(&top, "is no path"))?;
        if top.exists() {
            self.files_below(&path, files)?;
        }
        Ok(())
    }

    /// Scratch is of no use after close; only the lock file stays.
    fn clear_spool(&self) -> Result<(), StoreError> {
        let spool = self.layout.spool();
        let lock = self.layout.lock_file();
        let entries = fs::read_dir(&spool).map_err(StoreError::io("read", &spool))?;
        for entry in entries {
            let path = entry.map_err(StoreError::io("read", &spool))?.path();
            if path != lock {
                remove(&path).map_err(StoreError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}
