//! Every registered file's bytes, and whether every file is registered.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use vec_store::{
    LedgerOp, LedgerReport, Registered, RunLayout, StoreError, hash_file, hash_prefixes,
    is_exempt_while_open,
};
use vec_types::{Digest, RelPath};
use walkdir::WalkDir;

use crate::report::chain;
use crate::{Check, VerifyOptions, VerifyReport};

pub(crate) fn check(
    layout: &RunLayout,
    ledger: &LedgerReport,
    options: &VerifyOptions,
    report: &mut VerifyReport,
) {
    let mut marks: BTreeMap<&RelPath, Vec<(u64, u64, Digest)>> = BTreeMap::new();
    for entry in ledger.entries.iter().filter(|e| e.op == LedgerOp::Mark) {
        let mark = (entry.seq, entry.size, entry.sha256);
        marks.entry(&entry.path).or_default().push(mark);
    }
    for (path, registered) in &ledger.registry {
        match marks.get(path) {
            Some(marks) => log(layout, path, marks, ledger.closed, report),
            // A reopened run rewrites these; the next close covers them again.
            None if !ledger.closed && is_exempt_while_open(path) => {}
            None => whole(layout, path, registered, report),
        }
    }
    coverage(layout, ledger, options, report);
}

fn describe(size: u64, digest: Digest) -> String {
    format!("{size} bytes with sha256 {digest}")
}

fn unreadable(error: &StoreError) -> String {
    match error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "no such file".to_owned()
        }
        _ => chain(error),
    }
}

fn whole(layout: &RunLayout, path: &RelPath, registered: &Registered, report: &mut VerifyReport) {
    let expected = (registered.size, registered.sha256);
    match hash_file(&layout.at(path)) {
        Ok(found) => {
            report.files += 1;
            report.bytes += found.0;
            if found == expected {
                return;
            }
            // A crash between the rename and its ledger line: recovery undoes the rename.
            let undo = hash_file(&layout.undo_of(path)).ok();
            if !report.closed && undo == Some(expected) {
                let text = format!("{path}: replaced without a ledger line");
                report.pending.push(text);
                return;
            }
            let found = describe(found.0, found.1);
            report.find(Check::File, path, describe(expected.0, expected.1), found);
        }
        Err(error) => {
            let expected = describe(expected.0, expected.1);
            report.find(Check::File, path, expected, unreadable(&error));
        }
    }
}

/// Every mark of a log, and after close its whole length.
fn log(
    layout: &RunLayout,
    path: &RelPath,
    marks: &[(u64, u64, Digest)],
    closed: bool,
    report: &mut VerifyReport,
) {
    let lengths: Vec<u64> = marks.iter().map(|(_, size, _)| *size).collect();
    let (size, digests) = match hash_prefixes(&layout.at(path), &lengths) {
        Ok(found) => found,
        Err(error) => {
            report.find(Check::File, path, "the marked log", unreadable(&error));
            return;
        }
    };
    report.files += 1;
    report.bytes += size;
    for ((line, length, expected), found) in marks.iter().zip(digests) {
        if found != Some(*expected) {
            let found = found.map_or_else(
                || format!("{size} bytes"),
                |digest| format!("sha256 {digest}"),
            );
            let expected = format!(
                "a prefix of {} (ledger line {line})",
                describe(*length, *expected)
            );
            report.find(Check::File, path, expected, found);
            return;
        }
    }
    let last = lengths.last().copied().unwrap_or_default();
    if closed && size != last {
        report.find(
            Check::File,
            path,
            format!("{last} bytes as closed"),
            format!("{size} bytes"),
        );
    }
}

fn coverage(
    layout: &RunLayout,
    ledger: &LedgerReport,
    options: &VerifyOptions,
    report: &mut VerifyReport,
) {
    let run_dir = layout.run_dir();
    for entry in WalkDir::new(run_dir)
        .follow_links(false)
        .sort_by_file_name()
    {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let place = error.path().unwrap_or(run_dir).display().to_string();
                report.find(Check::Coverage, place, "a readable directory", error);
                continue;
            }
        };
        if entry.file_type().is_dir() {
            continue;
        }
        let below = entry.path().strip_prefix(run_dir).unwrap_or(entry.path());
        if !entry.file_type().is_file() {
            // Links in code/ are part of its tree id.
            if !(entry.file_type().is_symlink() && below.starts_with("code")) {
                let place = below.display();
                report.find(
                    Check::Coverage,
                    place,
                    "regular files only",
                    "something else",
                );
            }
            continue;
        }
        if is_covered(below, ledger) {
            continue;
        }
        if options.open && !ledger.closed {
            // A live writer registers it in a moment; after a crash it becomes an orphan.
            report
                .pending
                .push(format!("{}: not in the ledger", below.display()));
        } else {
            let place = below.display();
            report.find(Check::Coverage, place, "a ledger line", "none");
        }
    }
}

fn is_covered(below: &Path, ledger: &LedgerReport) -> bool {
    let path = below.to_str().and_then(|name| name.parse::<RelPath>().ok());
    path.is_some_and(|path| {
        path.as_str() == "ledger.jsonl"
            || ledger.registry.contains_key(&path)
            || (!ledger.closed && is_exempt_while_open(&path))
    })
}
