//! Every stored value of a run, changed one at a time: replay names each. The matrix is that of the
//! example `flips`, which does the same on a demo run.

use std::collections::BTreeSet;

use tempfile::TempDir;

use crate::eventful;
use crate::fixture::{Made, closed_run};

#[path = "../../examples/flips/flips.rs"]
mod check;
#[path = "../../examples/flips/leaves.rs"]
mod leaves;
#[path = "../../examples/flips/matrix.rs"]
mod matrix;
#[path = "../../examples/flips/rebuild.rs"]
mod rebuild;

use leaves::Kind;

/// Kinds of value that every run has.
const KINDS: [Kind; 8] = [
    Kind::Score,
    Kind::Visit,
    Kind::Epoch,
    Kind::Draw,
    Kind::Digest,
    Kind::WallTime,
    Kind::Status,
    Kind::Boolean,
];

/// What goes unnoticed because the state forgets it: why an analysis was cut, the output of a further
/// execution that came to no score, two flags of an import that waits to be scored again, and a score
/// report that lacks a component. The fold has to keep them before a digest can cover them; then this
/// list is empty.
const LOST: [(&str, &str); 11] = [
    ("analyze_end", "end/detail"),
    ("analyze_end", "end/fault"),
    ("execute_end", "end/report/result/digests/main"),
    ("imported", "import/no_progress"),
    ("imported", "import/same_as_parent"),
    ("score_end", "end/result/report/parts/0/metric"),
    ("score_end", "end/result/report/parts/0/points"),
    ("score_end", "end/result/report/parts/0/raw"),
    ("score_end", "end/result/report/parts/0/ruler"),
    ("score_end", "end/result/report/parts/0/skill"),
    ("score_end", "end/result/report/total"),
];

#[tokio::test]
async fn every_changed_value_of_a_closed_run_is_named_with_every_chain_rebuilt() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 3).await;
    let flips = check::flips(layout.run_dir()).await.expect("checks");
    let table = check::table(&flips);
    assert!(flips.is_ok(), "{table}");
    assert!(flips.on_disk > 2 * KINDS.len() - 4, "{table}");
    for kind in KINDS {
        let tally = flips.matrix.tallies.get(&kind);
        assert!(
            tally.is_some_and(|tally| tally.named > 0),
            "{kind:?}\n{table}"
        );
    }
}

#[tokio::test]
async fn every_changed_value_that_an_eventful_run_keeps_is_named() {
    let root = TempDir::new().expect("tempdir");
    let made = Made::launch(root.path(), 14).await;
    let rows = eventful::rows(&made);
    let kinds: BTreeSet<&str> = rows.iter().map(|r| r.kind.as_str()).collect();
    for kind in [
        "imported",
        "resume_started",
        "rescore_start",
        "epoch_advance",
        "run_resume",
        "plateau",
        "draft_pick",
        "promotion_failed",
        "promotion_done",
        "final_reserve",
        "candidate_skipped",
        "guard_result",
    ] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let flips = check::Flips::in_memory(rows).expect("replays");
    let missed = flips.matrix.tallies.values();
    let missed: BTreeSet<(&str, &str)> = missed
        .flat_map(|tally| tally.missed.keys())
        .map(|(kind, path)| (kind.as_str(), path.as_str()))
        .collect();
    assert_eq!(missed, BTreeSet::from(LOST), "{}", check::table(&flips));
}
