//! Reading a ledger: the chain, and what it says about every path. Pure.

use std::collections::BTreeMap;

use vec_types::{Digest, ManifestEntry, RelPath, manifest_hash};

use super::line::{self, LedgerEntry, LedgerOp};

/// The first line that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ledger line {line} {what}")]
pub struct LedgerFault {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: String,
}

/// What the ledger last said about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// How.
    pub op: LedgerOp,
    /// Bytes; for `mark` of the prefix.
    pub size: u64,
    /// Content digest; for `mark` of the prefix.
    pub sha256: Digest,
    /// Line that said so.
    pub line: u64,
}

/// A ledger whose chain holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerReport {
    /// Every line.
    pub entries: Vec<LedgerEntry>,
    /// Hash of the last line; zeros when there is none.
    pub head: Digest,
    /// Is the last line `close`.
    pub closed: bool,
    /// Bytes after the last whole line.
    pub torn_tail: usize,
    /// What is in force for every path.
    pub registry: BTreeMap<RelPath, Registered>,
}

/// Checks the chain and reads what it says. A tail without newline is tolerated unless the last
/// whole line is `close`.
///
/// # Errors
/// The first line that does not hold.
pub fn verify_ledger(bytes: &[u8]) -> Result<LedgerReport, LedgerFault> {
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let mut report = LedgerReport {
        entries: Vec::new(),
        head: Digest::ZERO,
        closed: false,
        torn_tail: bytes.len() - whole,
        registry: BTreeMap::new(),
    };
    for text in bytes[..whole].split_inclusive(|b| *b == b'\n') {
        let seq = report.entries.len() as u64 + 1;
        let fault = |what: String| LedgerFault { line: seq, what };
        let entry = line::parse(&text[..text.len() - 1], seq, report.head).map_err(fault)?;
        if (entry.op == LedgerOp::Reopen) != report.closed {
            let what = if report.closed {
                "follows a close without being a reopen"
            } else {
                "is a reopen without a close before it"
            };
            return Err(fault(what.to_owned()));
        }
        report.closed = entry.op == LedgerOp::Close;
        report.head = entry.hash;
        note(&mut report.registry, &entry);
        report.entries.push(entry);
    }
    if report.closed && report.torn_tail > 0 {
        return Err(LedgerFault {
            line: report.entries.len() as u64 + 1,
            what: format!("is {} bytes after the close", report.torn_tail),
        });
    }
    Ok(report)
}

fn note(registry: &mut BTreeMap<RelPath, Registered>, entry: &LedgerEntry) {
    match entry.op {
        LedgerOp::ArchiveMark | LedgerOp::Close | LedgerOp::Reopen => {}
        LedgerOp::Create
        | LedgerOp::Replace
        | LedgerOp::Link
        | LedgerOp::Mark
        | LedgerOp::Orphan => {
            registry.insert(
                entry.path.clone(),
                Registered {
                    op: entry.op,
                    size: entry.size,
                    sha256: entry.sha256,
                    line: entry.seq,
                },
            );
        }
    }
}

/// One digest over everything the registry covers: what a `close` line carries.
#[must_use]
pub fn covered_hash(registry: &BTreeMap<RelPath, Registered>) -> Digest {
    let entries: Vec<ManifestEntry> = registry
        .iter()
        .map(|(path, registered)| ManifestEntry {
            path: path.to_string(),
            mode: 0o444,
            sha256: registered.sha256,
            size: registered.size,
        })
        .collect();
    manifest_hash(&entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewLine;
    use proptest::prelude::*;
    use vec_types::UnixMs;

    fn new_line(op: LedgerOp, path: &str, size: u64) -> NewLine {
        NewLine {
            op,
            path: path.parse().expect("path"),
            size,
            sha256: Digest::of(path.as_bytes()),
        }
    }

    fn sample(close: bool) -> Vec<u8> {
        let mut lines = vec![
            new_line(LedgerOp::Create, "a", 1),
            new_line(LedgerOp::Mark, "logs/x.jsonl", 2),
            new_line(LedgerOp::Replace, "a", 3),
            new_line(LedgerOp::ArchiveMark, "archive.sqlite", 4),
            new_line(LedgerOp::Orphan, "orphans/1/b", 5),
        ];
        if close {
            lines.push(new_line(LedgerOp::Close, "ledger.jsonl", 3));
        }
        let (mut bytes, mut head) = (Vec::new(), Digest::ZERO);
        for (index, new) in lines.iter().enumerate() {
            let rendered = line::render(new, UnixMs(7), index as u64 + 1, head);
            let (text, hash) = rendered.expect("renders");
            bytes.extend(text);
            head = hash;
        }
        bytes
    }

    fn lines_of(bytes: &[u8]) -> Vec<&[u8]> {
        bytes.split_inclusive(|b| *b == b'\n').collect()
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let bytes = sample(false);
        let first = lines_of(&bytes)[0];
        let zeros = "0".repeat(64);
        let sha = Digest::of(b"a");
        let body = format!(
            r#"{{"at":7,"op":"create","path":"a","prev":"{zeros}","seq":1,"sha256":"{sha}","size":1}}"#
        );
        let hash = Digest::of(format!("{zeros}\n{body}").as_bytes());
        let line = format!("{},\"hash\":\"{hash}\"}}\n", &body[..body.len() - 1]);
        assert_eq!(std::str::from_utf8(first), Ok(line.as_str()));
    }

    #[test]
    fn the_last_word_on_a_path_is_in_force() {
        let report = verify_ledger(&sample(true)).expect("holds");
        assert!(report.closed);
        let a = report.registry[&"a".parse().expect("path")];
        assert_eq!((a.op, a.size, a.line), (LedgerOp::Replace, 3, 3));
        assert_eq!(report.registry.len(), 3);
    }

    #[test]
    fn torn_at_every_byte_is_a_shorter_ledger_unless_closed() {
        let bytes = sample(false);
        let whole = lines_of(&bytes);
        for cut in 0..bytes.len() {
            let report = verify_ledger(&bytes[..cut]).expect("a torn tail is tolerated");
            let mut length = 0;
            let complete = whole.iter().take_while(|line| {
                length += line.len();
                length <= cut
            });
            assert_eq!(report.entries.len(), complete.count(), "cut at {cut}");
        }
        let mut closed = sample(true);
        closed.push(b'{');
        assert_eq!(verify_ledger(&closed).expect_err("after close").line, 7);
    }

    #[test]
    fn dropped_swapped_and_repeated_lines_are_named() {
        let bytes = sample(true);
        let lines = lines_of(&bytes);
        for index in 0..lines.len() - 1 {
            let mut dropped = lines.clone();
            dropped.remove(index);
            let fault = verify_ledger(&dropped.concat()).expect_err("dropped");
            assert_eq!(fault.line, index as u64 + 1);
            let mut swapped = lines.clone();
            swapped.swap(index, index + 1);
            let fault = verify_ledger(&swapped.concat()).expect_err("swapped");
            assert_eq!(fault.line, index as u64 + 1);
        }
        let mut repeated = lines.clone();
        repeated.push(lines[lines.len() - 1]);
        assert!(verify_ledger(&repeated.concat()).is_err());
    }

    #[test]
    fn only_a_reopen_follows_a_close() {
        let bytes = sample(true);
        let report = verify_ledger(&bytes).expect("holds");
        for (op, holds) in [(LedgerOp::Reopen, true), (LedgerOp::Create, false)] {
            let next = new_line(op, "ledger.jsonl", 0);
            let (text, _) = line::render(&next, UnixMs(8), 7, report.head).expect("renders");
            let longer = [bytes.clone(), text].concat();
            assert_eq!(verify_ledger(&longer).is_ok(), holds, "{op:?}");
        }
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_found(at in 0..sample(true).len(), bit in 0..8) {
            let mut bytes = sample(true);
            let line = bytes[..at].iter().filter(|b| **b == b'\n').count() as u64 + 1;
            bytes[at] ^= 1_u8 << bit;
            match verify_ledger(&bytes) {
                Err(fault) => prop_assert!(fault.line <= line + 1, "{fault}, flip in line {line}"),
                // Without its newline the close is a torn tail, and the ledger says it is open.
                Ok(report) => prop_assert!(report.torn_tail > 0 && !report.closed),
            }
        }
    }
}
