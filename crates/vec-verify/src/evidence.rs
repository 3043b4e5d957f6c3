//! A ledger that was shortened: its chain holds, but it lacks lines that the run's own progress
//! proves. The lock is registered before anything happens, and files before the event that refers
//! to them; so no crash explains such a file without a line, not even in an open run.

use std::collections::BTreeSet;
use std::fs;

use vec_store::{LedgerReport, RunLayout, rel, verify_ledger};
use vec_types::RelPath;

use crate::replay::KnownEvent;
use crate::{Check, VerifyReport};

pub(crate) fn check(
    layout: &RunLayout,
    ledger: &LedgerReport,
    events: &[KnownEvent],
    report: &mut VerifyReport,
) {
    let lock = rel::config_lock();
    let named = events
        .iter()
        .filter_map(|known| rel::evidence_of(&known.event));
    let on_disk = |path: &RelPath| layout.at(path).symlink_metadata().is_ok();
    let mut absent: BTreeSet<RelPath> = named.filter(on_disk).collect();
    absent.insert(lock);
    absent.retain(|path| !ledger.registry.contains_key(path));
    if absent.is_empty() {
        return;
    }
    // A live writer may have registered it after the ledger was read and before the events were.
    let now = fs::read(layout.ledger()).ok();
    if let Some(now) = now.and_then(|bytes| verify_ledger(&bytes).ok()) {
        absent.retain(|path| !now.registry.contains_key(path));
    }
    for path in absent {
        let place = path.to_string();
        // Never pending: no crash leaves it so.
        let pending = format!("{place}: not in the ledger");
        report.pending.retain(|text| *text != pending);
        let known = |f: &crate::Finding| f.check == Check::Coverage && f.place == place;
        if !report.findings.iter().any(known) {
            let expected = "a ledger line (was ledger.jsonl shortened? restore it from a copy)";
            report.find(Check::Coverage, place, expected, "none");
        }
    }
}
