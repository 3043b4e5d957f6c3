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

/// Kinds of value that every run has and that must be named; times are in no digest.
const KINDS: [Kind; 7] = [
    Kind::Score,
    Kind::Visit,
    Kind::Epoch,
    Kind::Draw,
    Kind::Digest,
    Kind::Status,
    Kind::Boolean,
];

#[tokio::test]
async fn every_changed_value_of_a_closed_run_is_named_with_every_chain_rebuilt() {
    let root = TempDir::new().expect("tempdir");
    let layout = closed_run(root.path(), 3).await;
    let flips = check::flips(layout.run_dir()).await.expect("checks");
    let table = check::table(&flips);
    assert!(flips.is_ok(), "{table}");
    assert!(flips.on_disk > 2 * KINDS.len() - 2, "{table}");
    for kind in KINDS {
        let tally = flips.matrix.tallies.get(&kind);
        assert!(
            tally.is_some_and(|tally| tally.named > 0),
            "{kind:?}\n{table}"
        );
    }
}

#[tokio::test]
async fn every_changed_value_of_an_eventful_run_is_named() {
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
    assert_eq!(flips.matrix.missed(), 0, "{}", check::table(&flips));
}
