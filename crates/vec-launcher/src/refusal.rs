//! Refused launches and resumes leave a record with stop_reason infra, never a run (LCK-12):
//! `<root>/.refused.jsonl` for launches, `<root>/<run>.refused.jsonl` for resumes.

use std::path::Path;

use serde::Serialize;
use vec_store::RunLayout;
use vec_types::{RunId, StopReason, UnixMs};

use crate::files::append_line;

/// Record of refused launches, below a root.
pub(crate) const REFUSED_LAUNCHES: &str = ".refused.jsonl";

#[derive(Debug, Serialize)]
struct Refusal<'a> {
    at: UnixMs,
    what: &'static str,
    run: Option<&'a RunId>,
    config: Option<&'a Path>,
    stop_reason: StopReason,
    why: &'a str,
}

/// Records a refused launch. A root that cannot be written to is only logged: the caller's error
/// is what counts.
pub(crate) fn launch(root: &Path, config: &Path, why: &str, at: UnixMs) {
    let refusal = Refusal {
        at,
        what: "launch",
        run: None,
        config: Some(config),
        stop_reason: StopReason::Infra,
        why,
    };
    record(&root.join(REFUSED_LAUNCHES), &refusal);
}

/// Records a refused resume beside the run.
pub(crate) fn resume(layout: &RunLayout, why: &str, at: UnixMs) {
    let refusal = Refusal {
        at,
        what: "resume",
        run: Some(layout.run()),
        config: None,
        stop_reason: StopReason::Infra,
        why,
    };
    record(&layout.refused(), &refusal);
}

fn record(path: &Path, refusal: &Refusal<'_>) {
    if let Err(error) = append_line(path, refusal) {
        tracing::warn!(error = %vec_daemon::chain(&error), "a refusal could not be recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_why_and_infra() {
        let dir = tempfile::tempdir().expect("dir");
        launch(dir.path(), Path::new("/c.yaml"), "disk: full", UnixMs(7));
        let text = std::fs::read_to_string(dir.path().join(REFUSED_LAUNCHES)).expect("record");
        assert_eq!(
            text,
            "{\"at\":7,\"config\":\"/c.yaml\",\"run\":null,\"stop_reason\":\"infra\",\"what\":\"launch\",\"why\":\"disk: full\"}\n"
        );
        let run = "20261130-101010-diabetes-abcd".parse().expect("id");
        let layout = RunLayout::new(dir.path(), &run);
        resume(&layout, "damaged", UnixMs(8));
        let text = std::fs::read_to_string(layout.refused()).expect("record");
        assert!(
            text.contains("\"what\":\"resume\"") && text.contains(run.as_str()),
            "{text}"
        );
    }
}
