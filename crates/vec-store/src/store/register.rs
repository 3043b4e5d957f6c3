//! Registering what is in place already: files of the launcher, and the growing logs.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use vec_types::{RelPath, UnixMs};
use walkdir::WalkDir;

use super::Hook;
use super::writer::Writer;
use crate::StoreError;
use crate::files::{feed, hash_file, is_linked, sync_dirs, sync_file, walk_error};
use crate::layout::LOGS;
use crate::ledger::{LedgerOp, NewLine};

impl Writer {
    /// Registers files in place; see `Store::register_existing`.
    pub(super) fn register(
        &mut self,
        at: UnixMs,
        paths: &[RelPath],
        hook: &Hook,
    ) -> Result<usize, StoreError> {
        let mut files = BTreeSet::new();
        for path in paths {
            self.files_below(path, &mut files)?;
        }
        let (mut lines, mut dirs) = (Vec::new(), BTreeSet::new());
        for path in files {
            let target = self.layout.at(&path);
            let linked = is_linked(&target)?;
            if !linked {
                make_read_only(&target)?;
            }
            sync_file(&target)?;
            let (size, sha256) = hash_file(&target)?;
            let old = self.registry.get(&path);
            if old.is_some_and(|old| old.size == size && old.sha256 == sha256) {
                continue;
            }
            self.parents(&path, &mut dirs);
            let op = match (old, linked) {
                (Some(_), _) => LedgerOp::Replace,
                (None, true) => LedgerOp::Link,
                (None, false) => LedgerOp::Create,
            };
            lines.push(NewLine {
                op,
                path,
                size,
                sha256,
            });
        }
        sync_dirs(&dirs)?;
        self.append(at, &lines, hook)?;
        Ok(lines.len())
    }

    /// Relative paths of the regular files at or below `path`.
    pub(super) fn files_below(
        &self,
        path: &RelPath,
        files: &mut BTreeSet<RelPath>,
    ) -> Result<(), StoreError> {
        let top = self.layout.at(path);
        for entry in WalkDir::new(&top).follow_links(false) {
            let entry = entry.map_err(|error| walk_error(&top, error))?;
            let kind = entry.file_type();
            if kind.is_dir() || (kind.is_symlink() && path.top() == "code") {
                continue;
            }
            let name = entry.path().strip_prefix(self.layout.run_dir()).ok();
            let name = name.and_then(Path::to_str).and_then(|n| n.parse().ok());
            match name {
                Some(name) if kind.is_file() => files.insert(name),
                _ => {
                    let what = "is not a regular file with a plain name";
                    return Err(StoreError::bad_file(entry.path(), what));
                }
            };
        }
        Ok(())
    }

    /// Lines for logs that grew since their last mark; each log is synced first.
    pub(super) fn log_marks(&mut self) -> Result<Vec<NewLine>, StoreError> {
        let mut names = BTreeSet::new();
        let logs = LOGS
            .parse()
            .map_err(|_| StoreError::bad_file(&self.layout.logs(), "is no path"))?;
        self.files_below(&logs, &mut names)?;
        let mut lines = Vec::new();
        for path in names {
            let target = self.layout.at(&path);
            sync_file(&target)?;
            let (done, hasher) = self.logs.entry(path.clone()).or_default();
            let size = fs::metadata(&target)
                .map_err(StoreError::io("stat", &target))?
                .len();
            *done += feed(&target, *done, size.saturating_sub(*done), hasher)?;
            let (size, sha256) = (*done, hasher.clone().finish());
            let old = self.registry.get(&path);
            if old.is_some_and(|old| old.size == size && old.sha256 == sha256) {
                continue;
            }
            lines.push(NewLine {
                op: LedgerOp::Mark,
                path,
                size,
                sha256,
            });
        }
        Ok(lines)
    }
}

/// Takes the write bits; execution bits stay.
fn make_read_only(path: &Path) -> Result<(), StoreError> {
    let mode = File::open(path)
        .and_then(|file| file.metadata())
        .map_err(StoreError::io("stat", path))?
        .permissions()
        .mode();
    let execute = if mode & 0o100 == 0 { 0 } else { 0o111 };
    fs::set_permissions(path, Permissions::from_mode(0o444 | execute))
        .map_err(StoreError::io("chmod", path))
}
