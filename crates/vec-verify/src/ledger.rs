//! The ledger's chain, its end, and the anchor.

use std::fs;

use vec_store::{LedgerOp, LedgerReport, RunLayout, covered_hash, verify_ledger};

use crate::report::chain;
use crate::{Check, VerifyOptions, VerifyReport};

const LEDGER: &str = "ledger.jsonl";

/// `None` when nothing more can be said about files, since the chain does not hold.
pub(crate) fn check(
    layout: &RunLayout,
    options: &VerifyOptions,
    report: &mut VerifyReport,
) -> Option<LedgerReport> {
    let bytes = match fs::read(layout.ledger()) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.find(Check::Ledger, LEDGER, "a readable ledger", error);
            return None;
        }
    };
    let ledger = match verify_ledger(&bytes) {
        Ok(ledger) => ledger,
        Err(fault) => {
            let place = format!("{LEDGER} line {}", fault.line);
            report.find(Check::Ledger, place, "an unbroken chain", chain(&fault));
            return None;
        }
    };
    report.closed = ledger.closed;
    report.ledger_lines = ledger.entries.len() as u64;
    report.ledger_head = ledger.head;
    if !ledger.closed && !options.open {
        let found = if ledger.torn_tail > 0 {
            format!("an open run with {} bytes of a torn line", ledger.torn_tail)
        } else {
            "an open run".to_owned()
        };
        report.find(Check::Open, LEDGER, "a final close line", found);
    } else if ledger.torn_tail > 0 {
        let tail = ledger.torn_tail;
        report
            .pending
            .push(format!("{LEDGER}: {tail} bytes of a torn line"));
    }
    check_close(&ledger, report);
    if let Some(anchor) = options.anchor {
        let line = ledger.entries.iter().find(|entry| entry.hash == anchor);
        report.anchored_line = line.map(|entry| entry.seq);
        if line.is_none() {
            report.find(Check::Anchor, LEDGER, anchor, "no line with this hash");
        }
    }
    Some(ledger)
}

/// The close line says how many files it covers and their digest.
fn check_close(ledger: &LedgerReport, report: &mut VerifyReport) {
    let Some(close) = ledger.entries.last().filter(|_| ledger.closed) else {
        return;
    };
    debug_assert_eq!(close.op, LedgerOp::Close);
    let covered = covered_hash(&ledger.registry);
    let files = ledger.registry.len() as u64;
    if (close.sha256, close.size) != (covered, files) {
        let place = format!("{LEDGER} line {}", close.seq);
        let expected = format!("{} files with digest {}", close.size, close.sha256);
        let found = format!("{files} files with digest {covered}");
        report.find(Check::Ledger, place, expected, found);
    }
}
