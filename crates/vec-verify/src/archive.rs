//! The archive: event chain, the ledger's marks of it, and the derived tables. Works on a copy in
//! a temporary directory.

use vec_store::{Archive, LedgerOp, LedgerReport, RunLayout, StoreError, StoredEvent};

use crate::replay::KnownEvent;
use crate::report::chain;
use crate::{Check, VerifyReport};

const ARCHIVE: &str = "archive.sqlite";

/// Every event as far as the chain holds and this version knows it.
pub(crate) async fn check(
    layout: &RunLayout,
    ledger: Option<&LedgerReport>,
    report: &mut VerifyReport,
) -> Vec<KnownEvent> {
    let (mut copy, _dir) = match Archive::open_copy(&layout.archive()).await {
        Ok(copy) => copy,
        Err(StoreError::Events { source, .. }) => {
            let place = format!("event {}", source.seq);
            report.find(Check::Events, place, "an unbroken chain", chain(&source));
            return Vec::new();
        }
        Err(error) => {
            report.find(Check::Events, ARCHIVE, "a readable archive", chain(&error));
            return Vec::new();
        }
    };
    let rows = match copy.events().await {
        Ok(rows) => rows,
        Err(error) => {
            report.find(Check::Events, ARCHIVE, "readable events", chain(&error));
            return Vec::new();
        }
    };
    report.events = rows.len() as u64;
    report.event_head = copy.head().1;
    if let Some(ledger) = ledger {
        marks(ledger, &rows, report);
    }
    let mut known = Vec::with_capacity(rows.len());
    for row in rows {
        let seq = row.seq;
        match KnownEvent::read(row) {
            Ok(event) => known.push(event),
            Err(error) => {
                let place = format!("event {seq}");
                report.find(Check::Events, place, "a known event", chain(&error));
                return known;
            }
        }
    }
    if let Err(error) = tables(&mut copy, report).await {
        let found = chain(&error);
        report.find(Check::Projections, ARCHIVE, "derived tables", found);
    }
    known
}

fn marks(ledger: &LedgerReport, rows: &[StoredEvent], report: &mut VerifyReport) {
    let marks = ledger.entries.iter();
    for mark in marks.filter(|entry| entry.op == LedgerOp::ArchiveMark && entry.size > 0) {
        let index = usize::try_from(mark.size - 1).ok();
        let row = index.and_then(|index| rows.get(index));
        if row.is_none_or(|row| row.hash != mark.sha256) {
            let place = format!("event {}", mark.size);
            let expected = format!("hash {} (ledger line {})", mark.sha256, mark.seq);
            let found = row.map_or_else(
                || format!("only {} events", rows.len()),
                |row| format!("hash {}", row.hash),
            );
            report.find(Check::ArchiveMark, place, expected, found);
        }
    }
    let covered = ledger
        .entries
        .iter()
        .rev()
        .find(|entry| entry.op == LedgerOp::ArchiveMark)
        .map_or(0, |mark| mark.size);
    let events = rows.len() as u64;
    if ledger.closed && covered != events {
        let expected = format!("{covered} events as closed");
        let found = format!("{events} events");
        report.find(Check::ArchiveMark, ARCHIVE, expected, found);
    }
}

async fn tables(copy: &mut Archive, report: &mut VerifyReport) -> Result<(), StoreError> {
    let stored = copy.dump_projections().await?;
    copy.rebuild_projections().await?;
    let rebuilt = copy.dump_projections().await?;
    let length = stored.len().max(rebuilt.len());
    let difference = (0..length).find(|index| stored.get(*index) != rebuilt.get(*index));
    if let Some(index) = difference {
        let text = |rows: &[String]| rows.get(index).map_or("no row", |row| row).to_owned();
        report.find(Check::Projections, ARCHIVE, text(&rebuilt), text(&stored));
    }
    Ok(())
}
