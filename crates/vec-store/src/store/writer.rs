//! The synchronous half of the writer: files and ledger. It holds the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use vec_types::{Digest, Hasher, RelPath, UnixMs};

use super::Hook;
use crate::files::{
    Content, NewFile, empty_dir, ensure_dir, hash_file, is_linked, move_file, sync_dir, sync_dirs,
    sync_file,
};
use crate::ledger::{Ledger, LedgerOp, NewLine, Registered};
use crate::{RunLayout, RunLock, StoreError};

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) layout: RunLayout,
    pub(super) ledger: Ledger,
    pub(super) registry: BTreeMap<RelPath, Registered>,
    // Length and hash state of every log as far as it is marked.
    pub(super) logs: BTreeMap<RelPath, (u64, Hasher)>,
    temps: u64,
    _lock: RunLock,
}

/// A file that is written but not in place.
struct Staged {
    path: RelPath,
    temp: PathBuf,
    size: u64,
    sha256: Digest,
    /// Version in force, if any, and whether it moves to `orphans/`.
    old: Option<bool>,
    /// Goes in by link, which never takes the place of anything.
    once: bool,
}

impl Writer {
    pub(super) fn create(layout: RunLayout) -> Result<Self, StoreError> {
        let (root, run_dir) = (layout.root().to_owned(), layout.run_dir().to_owned());
        fs::create_dir_all(&root).map_err(StoreError::io("create", &root))?;
        fs::create_dir(&run_dir).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists(run_dir.clone()),
            _ => StoreError::io("create", &run_dir)(error),
        })?;
        let lock = RunLock::acquire(&layout)?;
        for name in [
            "code",
            "inputs",
            "views",
            "nodes",
            "artifacts",
            "final",
            "logs",
            "work",
            "orphans",
        ] {
            let dir = run_dir.join(name);
            fs::create_dir(&dir).map_err(StoreError::io("create", &dir))?;
        }
        let ledger = Ledger::create(&layout.ledger())?;
        sync_dir(&run_dir)?;
        sync_dir(&root)?;
        Self::with(layout, ledger, BTreeMap::new(), lock)
    }

    pub(super) fn with(
        layout: RunLayout,
        ledger: Ledger,
        registry: BTreeMap<RelPath, Registered>,
        lock: RunLock,
    ) -> Result<Self, StoreError> {
        empty_dir(&layout.spool_tmp())?;
        Ok(Self {
            layout,
            ledger,
            registry,
            logs: BTreeMap::new(),
            temps: 0,
            _lock: lock,
        })
    }

    pub(super) const fn ledger_head(&self) -> Digest {
        self.ledger.head()
    }

    /// Refuses what may not come in, before anything is touched.
    pub(super) fn check(&self, files: &[NewFile]) -> Result<(), StoreError> {
        let mut seen = BTreeSet::new();
        let spool = self.layout.spool();
        for file in files {
            let target = self.layout.at(&file.path);
            let refuse = |what: &str| Err(StoreError::bad_file(&target, what));
            if crate::is_exempt_while_open(&file.path) {
                return refuse("is not written by commits");
            }
            if !seen.insert(&file.path) {
                return refuse("is named twice in one commit");
            }
            let registered = self.registry.contains_key(&file.path);
            if !registered && target.symlink_metadata().is_ok() {
                return refuse("exists but is not in the ledger");
            }
            if let Content::Spool(source) = &file.content {
                let inside = source.starts_with(&spool);
                let regular = source
                    .symlink_metadata()
                    .is_ok_and(|meta| meta.file_type().is_file());
                if !inside || !regular {
                    let what = format!("is not a regular file below {}", spool.display());
                    return Err(StoreError::bad_file(source, what));
                }
            }
        }
        Ok(())
    }

    /// Puts checked files in place and registers them.
    pub(super) fn place(
        &mut self,
        at: UnixMs,
        files: Vec<NewFile>,
        hook: &Hook,
    ) -> Result<(), StoreError> {
        let staged = match self.stage(files) {
            Ok(staged) => staged,
            Err(error) => {
                // Gives the space back; the error is what matters.
                let _left = empty_dir(&self.layout.spool_tmp());
                return Err(error);
            }
        };
        hook.step("temps_written");
        for file in &staged {
            sync_file(&file.temp)?;
        }
        hook.step("temps_synced");
        let (lines, mut dirs) = self.move_in(&staged)?;
        hook.step("renamed");
        // The spool's own directories hold nothing that must last.
        dirs.retain(|dir| dir.starts_with(self.layout.run_dir()));
        sync_dirs(&dirs)?;
        hook.step("dirs_synced");
        self.append(at, &lines, hook)?;
        if staged.iter().any(|file| file.old.is_some()) {
            empty_dir(&self.layout.spool_undo())?;
        }
        Ok(())
    }

    // Every directory between a path and the run directory: any of them may be new.
    pub(super) fn parents(&self, path: &RelPath, dirs: &mut BTreeSet<PathBuf>) {
        let target = self.layout.at(path);
        let inside = target
            .ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(self.layout.run_dir()));
        dirs.extend(inside.map(Path::to_owned));
    }

    fn stage(&mut self, files: Vec<NewFile>) -> Result<Vec<Staged>, StoreError> {
        let mut staged = Vec::with_capacity(files.len());
        for file in files {
            // The first writer wins (PVW-05); the commit's owner removes what it spooled.
            if file.once && self.registry.contains_key(&file.path) {
                continue;
            }
            let temp = match file.content {
                Content::Bytes(bytes) => self.temp_of(&bytes)?,
                // Another name could still write it: only its bytes come in.
                Content::Spool(source) if is_linked(&source)? => {
                    let temp = self.next_temp();
                    fs::copy(&source, &temp).map_err(StoreError::io("copy", &source))?;
                    temp
                }
                Content::Spool(source) => source,
            };
            fs::set_permissions(&temp, Permissions::from_mode(0o444))
                .map_err(StoreError::io("chmod", &temp))?;
            let (size, sha256) = hash_file(&temp)?;
            let in_force = self.registry.get(&file.path);
            if in_force.is_some_and(|old| old.sha256 == sha256 && old.size == size) {
                fs::remove_file(&temp).map_err(StoreError::io("remove", &temp))?;
                continue;
            }
            staged.push(Staged {
                old: in_force.map(|_| !file.may_replace),
                once: file.once,
                path: file.path,
                temp,
                size,
                sha256,
            });
        }
        Ok(staged)
    }

    fn next_temp(&mut self) -> PathBuf {
        self.temps += 1;
        self.layout.spool_tmp().join(self.temps.to_string())
    }

    fn temp_of(&mut self, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let temp = self.next_temp();
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temp)
            .map_err(StoreError::io("create", &temp))?;
        file.write_all(bytes)
            .map_err(StoreError::io("write", &temp))?;
        Ok(temp)
    }

    /// Renames into place. Of a version in force a hard link stays in the spool until the ledger
    /// knows the new one, so that recovery can bring it back.
    fn move_in(
        &mut self,
        staged: &[Staged],
    ) -> Result<(Vec<NewLine>, BTreeSet<PathBuf>), StoreError> {
        let mut lines = Vec::with_capacity(staged.len());
        let mut touched = BTreeSet::new();
        let superseded = format!("orphans/{}", self.ledger.seq() + 1);
        for file in staged.iter().filter(|file| file.old.is_some()) {
            link(
                &self.layout.at(&file.path),
                &self.layout.undo_of(&file.path),
                &mut touched,
            )?;
        }
        sync_dirs(&touched)?;
        for file in staged {
            let target = self.layout.at(&file.path);
            if file.old == Some(true) {
                let kept = format!("{superseded}/{}", file.path).parse();
                let kept: RelPath = kept
                    .map_err(|_| StoreError::bad_file(&target, "has too long a name to be kept"))?;
                link(&target, &self.layout.at(&kept), &mut touched)?;
                let (size, sha256) = hash_file(&target)?;
                tracing::warn!(path = %file.path, %kept, "written again with other bytes");
                lines.push(NewLine {
                    op: LedgerOp::Orphan,
                    path: kept,
                    size,
                    sha256,
                });
            }
            if file.once {
                link(&file.temp, &target, &mut touched)?;
                fs::remove_file(&file.temp).map_err(StoreError::io("remove", &file.temp))?;
            } else {
                move_file(&file.temp, &target, &mut touched)?;
            }
            lines.push(NewLine {
                op: if file.old.is_some() {
                    LedgerOp::Replace
                } else {
                    LedgerOp::Create
                },
                path: file.path.clone(),
                size: file.size,
                sha256: file.sha256,
            });
        }
        Ok((lines, touched))
    }

    /// Appends synced lines and keeps the registry in step.
    pub(super) fn append(
        &mut self,
        at: UnixMs,
        lines: &[NewLine],
        hook: &Hook,
    ) -> Result<(), StoreError> {
        let first = self.ledger.seq() + 1;
        self.ledger.append_with(at, lines, hook)?;
        for (line, entry) in (first..).zip(lines) {
            if entry.op == LedgerOp::ArchiveMark {
                continue;
            }
            let registered = Registered {
                op: entry.op,
                size: entry.size,
                sha256: entry.sha256,
                line,
            };
            self.registry.insert(entry.path.clone(), registered);
        }
        Ok(())
    }
}

fn link(from: &Path, to: &Path, touched: &mut BTreeSet<PathBuf>) -> Result<(), StoreError> {
    if let Some(dir) = to.parent() {
        ensure_dir(dir, touched)?;
        touched.insert(dir.to_owned());
    }
    fs::hard_link(from, to).map_err(StoreError::io("link", to))
}
