//! The flip check: the matrix in memory, and for one flip of every kind the same finding from the
//! program's own way, over a run directory whose chains were rebuilt after the change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tempfile::TempDir;
use vec_store::{Archive, RunLayout, StoredEvent};
use vec_verify::{Check, VerifyOptions, VerifyReport, verify};

use super::matrix::{Example, Matrix, matrix};
use super::rebuild::{Failure, with_event};

/// What the check found.
#[derive(Debug)]
pub(crate) struct Flips {
    pub(crate) matrix: Matrix,
    /// Examples that were found on disk, too.
    pub(crate) on_disk: usize,
    /// Examples that the archive's tables refuse, so that they cannot be stored at all.
    pub(crate) refused: usize,
    /// Examples for which the disk says something else.
    pub(crate) differs: Vec<String>,
}

impl Flips {
    /// The matrix alone.
    pub(crate) fn in_memory(rows: Vec<StoredEvent>) -> Result<Self, String> {
        let matrix = matrix(rows)?;
        Ok(Self {
            matrix,
            on_disk: 0,
            refused: 0,
            differs: Vec::new(),
        })
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.matrix.missed() == 0 && self.differs.is_empty()
    }
}

/// Changes every stored value of a closed run.
pub(crate) async fn flips(run_dir: &Path) -> Result<Flips, Failure> {
    let layout = RunLayout::of_run_dir(run_dir)?;
    let report = checked(run_dir).await?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("the run does not verify to begin with: {finding}").into());
    }
    let mut archive = Archive::open_read_only(&layout.archive()).await?;
    let rows = archive.events_after(0).await?;
    let mut flips = Flips::in_memory(rows.clone())?;
    // Beside the run, so that hard links work; the name says whose it is.
    let parent = run_dir.parent().ok_or("a run directory has a parent")?;
    let scratch = TempDir::with_prefix_in(".flips-", parent)?;
    for example in &flips.matrix.examples {
        let (seq, event) = (example.seq, &example.event);
        let Some(copy) = with_event(&layout, &rows, scratch.path(), seq, event).await? else {
            flips.refused += 1;
            continue;
        };
        match difference(&checked(&copy).await?, example) {
            None => flips.on_disk += 1,
            Some(text) => flips.differs.push(text),
        }
    }
    Ok(flips)
}

async fn checked(run_dir: &Path) -> Result<VerifyReport, Failure> {
    let options = VerifyOptions {
        replay: true,
        ..VerifyOptions::default()
    };
    Ok(verify(run_dir, &options).await?)
}

/// The disk must give the same finding; beside it only the lock and programs.git may speak, which
/// hold a second copy of some values.
fn difference(report: &VerifyReport, example: &Example) -> Option<String> {
    let is_same = report.findings.contains(&example.finding);
    let beside = report
        .findings
        .iter()
        .find(|finding| !matches!(finding.check, Check::Replay | Check::Lock | Check::Programs));
    match (is_same, beside) {
        (true, None) => None,
        (true, Some(finding)) => Some(format!(
            "{}: the copy is not whole: {finding}",
            example.what
        )),
        (false, _) => Some(format!(
            "{}: in memory {}; on disk {:?}",
            example.what, example.finding, report.findings
        )),
    }
}

/// The table, one line per kind of value, what was missed, and why the rest is exempt.
pub(crate) fn table(flips: &Flips) -> String {
    let mut text = format!(
        "{:<26}{:>8}{:>8}{:>8}{:>8}{:>8}\n",
        "kind of value", "values", "flips", "named", "exempt", "missed"
    );
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, tally) in &flips.matrix.tallies {
        let exempt: usize = tally.exempt.values().sum();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<26}{:>8}{:>8}{:>8}{:>8}{:>8}",
            kind.as_str(),
            tally.values,
            tally.flips,
            tally.named,
            exempt,
            tally.flips - tally.named - exempt
        );
        for (reason, count) in &tally.exempt {
            *reasons.entry(reason).or_default() += count;
        }
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "exempt: {count} {reason}");
    }
    let missed = flips.matrix.tallies.values();
    for what in missed.flat_map(|tally| tally.missed.values()) {
        let _ = writeln!(text, "missed: {what}");
    }
    for what in &flips.differs {
        let _ = writeln!(text, "differs: {what}");
    }
    let _ = writeln!(
        text,
        "on disk, with every chain rebuilt: {} examples (of each kind of value one in a fact and \
         one in a decision) give the same finding, {} another; {} cannot be stored",
        flips.on_disk,
        flips.differs.len(),
        flips.refused
    );
    text
}
