//! Raw data → views and truth under a data root, as a whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;

use vec_config::Board;
use vec_metrics::RowShare;
use vec_types::{Digest, ManifestEntry, manifest_hash, pretty_json};

use crate::error::BoardError;
use crate::publish::{Staged, make_dir, write_file};
use crate::raw::{Raw, read};
use crate::record::{
    BoardRecord, BuiltBoard, RECORD, RowCounts, ViewRecord, board_dir, definition_sha256, located,
    truth_dir,
};
use crate::split::{Shares, shares};
use crate::tree::tree_manifest;
use crate::view::{HIDDEN, write_truth, write_view};

/// Least rows of each share: below, one scoring would be of a handful of rows.
const SHARE_ROWS_MIN: usize = 10;

/// How to build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// Put the new board in the place of a different one.
    pub replace: bool,
}

/// Builds a board from `<data_dir>/<data.file>` under `data_root`. Does nothing when exactly the
/// same board is there.
///
/// # Errors
/// [`BoardError`]; nothing is left half-made.
pub fn build(
    board: &Board,
    data_dir: &Path,
    data_root: &Path,
    options: BuildOptions,
) -> Result<BuiltBoard, BoardError> {
    let raw = read(&board.data, data_dir)?;
    let ids: Vec<u64> = raw.rows.iter().map(|row| row.id).collect();
    let shares = shares(&board.split, &board.halves, &ids);
    let rows = row_counts(&raw, &shares)?;

    let board_place = board_dir(data_root, &board.board);
    let truth_place = truth_dir(data_root, &board.board);
    // Open first: what is missing above gets the same mode.
    make_dir(&data_root.join("boards"), 0o755)?;
    make_dir(&data_root.join("truth"), HIDDEN.0)?;
    let staged_truth = Staged::start(&truth_place, HIDDEN.0)?;
    write_truth(staged_truth.path(), &raw, &shares)?;
    let staged_board = Staged::start(&board_place, 0o755)?;
    let mut record = record(board, &raw, &shares, rows)?;
    make_dir(&staged_board.path().join("views"), 0o755)?;
    for view in board.views.keys() {
        let dir = staged_board.path().join("views").join(view.as_str());
        write_view(&dir, view, board, &raw, &shares)?;
        let content = manifest_hash(&tree_manifest(&dir)?);
        record.views.insert(view.clone(), ViewRecord { content });
    }
    let truth = tree_manifest(staged_truth.path())?;
    record.truth_sha256 = truth.iter().filter_map(half_of).collect();
    let path = staged_board.path().join(RECORD);
    let bytes = pretty_json(&record).map_err(|source| BoardError::Encode {
        path: path.clone(),
        source,
    })?;
    write_file(&path, &bytes, 0o644)?;

    let is_same = |staged: &Staged, place: &Path| {
        // An unreadable place is a different one.
        let there = tree_manifest(place).ok();
        Ok::<bool, BoardError>(there == Some(tree_manifest(staged.path())?))
    };
    if is_same(&staged_board, &board_place)? && is_same(&staged_truth, &truth_place)? {
        return Ok(located(data_root, record));
    }
    let is_taken = board_place.exists() || truth_place.exists();
    if is_taken && !options.replace {
        return Err(BoardError::Different { path: board_place });
    }
    // The board last: without BOARD.json nothing counts as built.
    staged_truth.publish()?;
    staged_board.publish()?;
    Ok(located(data_root, record))
}

fn half_of(entry: &ManifestEntry) -> Option<(String, Digest)> {
    let half = entry.path.strip_suffix("/truth.csv")?;
    Some((half.to_owned(), entry.sha256))
}

fn record(
    board: &Board,
    raw: &Raw,
    shares: &Shares,
    rows: RowCounts,
) -> Result<BoardRecord, BoardError> {
    let sum: f64 = shares
        .train
        .iter()
        .map(|row| raw.rows[*row].target_value)
        .sum();
    let definition_sha256 = definition_sha256(board).map_err(|source| BoardError::Encode {
        path: RECORD.into(),
        source,
    })?;
    Ok(BoardRecord {
        schema: 1,
        board: board.board.clone(),
        definition_sha256,
        data_sha256: raw.sha256,
        rows,
        floor_prediction: sum / shares.train.len() as f64,
        views: BTreeMap::new(),
        truth_sha256: BTreeMap::new(),
    })
}

fn row_counts(raw: &Raw, shares: &Shares) -> Result<RowCounts, BoardError> {
    let guard = shares
        .half_b
        .iter()
        .filter(|(_, share)| *share == RowShare::Guard);
    let guard = guard.count();
    let counts = RowCounts {
        train: shares.train.len(),
        test: shares.test.len(),
        half_a: shares.half_a.len(),
        half_b_search: shares.half_b.len() - guard,
        half_b_guard: guard,
    };
    for (share, got) in [
        ("training", counts.train),
        ("half A", counts.half_a),
        ("half B search", counts.half_b_search),
        ("half B guard", counts.half_b_guard),
    ] {
        if got < SHARE_ROWS_MIN {
            return Err(BoardError::TooFewRows {
                path: raw.path.clone(),
                rows: raw.rows.len(),
                share,
                got,
                least: SHARE_ROWS_MIN,
            });
        }
    }
    Ok(counts)
}
