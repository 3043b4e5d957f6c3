//! Checking and packing a run after the fact: library crates over the run directory, no daemon.

use anyhow::{Result, bail};
use serde_json::json;
use vec_clock::{Clock as _, SystemClock};
use vec_package::{PackageOptions, package as package_run};
use vec_types::Digest;
use vec_verify::{VerifyOptions, VerifyReport};

use crate::context::Context;
use crate::failure::Usage;
use crate::output;

/// How to verify.
#[derive(Debug)]
pub(crate) struct How {
    pub(crate) replay: bool,
    pub(crate) open: bool,
    pub(crate) anchor: Option<String>,
}

/// `vecctl verify`.
pub(crate) async fn verify(context: &Context, run: &str, how: How) -> Result<()> {
    let How {
        replay,
        open,
        anchor,
    } = how;
    let anchor: Option<Digest> = match anchor {
        Some(text) => Some(
            text.parse()
                .map_err(|error| Usage(format!("--anchor: {error}")))?,
        ),
        None => None,
    };
    let run = context.run(run)?;
    let options = VerifyOptions {
        open,
        anchor,
        replay,
    };
    let report = vec_verify::verify(run.dir()?, &options).await?;
    if context.json {
        output::json(&report)?;
    } else {
        lines(&report).iter().for_each(|line| output::line(line));
    }
    match report.findings.len() {
        0 => Ok(()),
        1 => bail!("run {} does not verify: 1 finding", run.id),
        many => bail!("run {} does not verify: {many} findings", run.id),
    }
}

fn lines(report: &VerifyReport) -> Vec<String> {
    let state = if report.closed { "closed" } else { "open" };
    let verdict = if report.ok() {
        "in order"
    } else {
        "NOT in order"
    };
    let mut lines = vec![
        format!("run         {}, {state}: {verdict}", report.run),
        format!(
            "ledger      {} lines, head {}",
            report.ledger_lines, report.ledger_head
        ),
        format!("files       {} ({} bytes)", report.files, report.bytes),
        format!("events      {}, head {}", report.events, report.event_head),
        format!("programs    {} objects", report.program_objects),
    ];
    if let Some(batches) = report.replayed_batches {
        lines.push(format!("replay      {batches} decision batches re-derived"));
    }
    if let Some(line) = report.anchored_line {
        lines.push(format!("anchor      found at ledger line {line}"));
    }
    lines.extend(
        report
            .pending
            .iter()
            .map(|text| format!("pending     {text}")),
    );
    lines.extend(
        report
            .findings
            .iter()
            .map(|finding| format!("finding     {finding}")),
    );
    lines
}

/// `vecctl package`.
pub(crate) async fn package(context: &Context, run: &str) -> Result<()> {
    let run = context.run(run)?;
    let report = package_run(run.dir()?, SystemClock.now(), &PackageOptions::default()).await?;
    let files = &report.manifest.files;
    let bytes: u64 = files.values().map(|file| file.size).sum();
    if context.json {
        return output::json(&json!({"package": report.dir, "files": files}));
    }
    output::line(&format!("package     {}", report.dir.display()));
    output::line(&format!("files       {} ({bytes} bytes)", files.len()));
    for (name, file) in files {
        output::line(&format!(
            "  {:<28}{:>12}  {}",
            name.as_str(),
            file.size,
            file.sha256.short(16)
        ));
    }
    output::line(&format!("ledger      head {}", report.verified.ledger_head));
    Ok(())
}
