//! BOARD.json: what was built from what, and loading it without opening truth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;
use vec_config::{Board, Limits};
use vec_types::{BoardId, CanonicalError, Digest, ViewId, canonical_json, manifest_hash};

use crate::error::BoardError;
use crate::tree::tree_manifest;
use crate::view::MANIFEST;

/// Name of the record.
pub(crate) const RECORD: &str = "BOARD.json";

/// BOARD.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardRecord {
    /// Version of this document; 1.
    pub schema: u32,
    /// The board.
    pub board: BoardId,
    /// sha256 over what of the definition shapes the files.
    pub definition_sha256: Digest,
    /// sha256 of the raw file.
    pub data_sha256: Digest,
    /// Rows per share.
    pub rows: RowCounts,
    /// Mean target of the training rows: the floor's prediction for every row.
    pub floor_prediction: f64,
    /// Views.
    pub views: BTreeMap<ViewId, ViewRecord>,
    /// sha256 of `A/truth.csv` and `B/truth.csv`, by half.
    pub truth_sha256: BTreeMap<String, Digest>,
}

/// Rows per share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowCounts {
    /// With target.
    pub train: usize,
    /// Without target: half A and half B.
    pub test: usize,
    /// Half A.
    pub half_a: usize,
    /// Half B, search rows.
    pub half_b_search: usize,
    /// Half B, guard rows.
    pub half_b_guard: usize,
}

/// One view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewRecord {
    /// Manifest hash of the view directory (EVS-10).
    pub content: Digest,
}

/// A board as built under a data root.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltBoard {
    /// What was built.
    pub record: BoardRecord,
    /// `boards/<board>`.
    pub dir: PathBuf,
    /// Directory of each view.
    pub views: BTreeMap<ViewId, PathBuf>,
    /// `truth/<board>`; to be opened by the scorer alone.
    pub truth_dir: PathBuf,
}

/// `boards/<board>` of a data root.
pub(crate) fn board_dir(data_root: &Path, board: &BoardId) -> PathBuf {
    data_root.join("boards").join(board.file_name())
}

/// `truth/<board>` of a data root.
pub(crate) fn truth_dir(data_root: &Path, board: &BoardId) -> PathBuf {
    data_root.join("truth").join(board.file_name())
}

/// sha256 over what of the definition shapes views and truth. Texts, rulers, seed programs and
/// families may change without a new build.
pub(crate) fn definition_sha256(board: &Board) -> Result<Digest, CanonicalError> {
    let shaping = json!({
        "version": 1,
        "board": board.board,
        "task": board.task,
        "data": board.data,
        "split": board.split,
        "halves": board.halves,
        "views": board.views,
        "limits": board.limits,
    });
    Ok(Digest::of(&canonical_json(&shaping)?))
}

/// Loads the board that was built from `board` and checks its views by content. Truth is not
/// opened.
///
/// # Errors
/// [`BoardError`]: nothing built, built from another definition, a view that has changed.
pub fn load_built(data_root: &Path, board: &Board) -> Result<BuiltBoard, BoardError> {
    let dir = board_dir(data_root, &board.board);
    let path = dir.join(RECORD);
    if !path.exists() {
        return Err(BoardError::NotBuilt { path: dir });
    }
    let record = read_record(&path)?;
    let expected = definition_sha256(board).map_err(|source| BoardError::Encode {
        path: path.clone(),
        source,
    })?;
    if record.board != board.board || record.definition_sha256 != expected {
        return Err(BoardError::OtherDefinition { path: dir });
    }
    let built = located(data_root, record);
    for (view, path) in &built.views {
        let content = manifest_hash(&tree_manifest(path)?);
        if built.record.views.get(view).map(|v| v.content) != Some(content) {
            return Err(BoardError::ChangedView { path: path.clone() });
        }
    }
    Ok(built)
}

/// Reads a record.
pub(crate) fn read_record(path: &Path) -> Result<BoardRecord, BoardError> {
    let bytes = std::fs::read(path).map_err(BoardError::io("read", path))?;
    serde_json::from_slice(&bytes).map_err(|source| BoardError::Record {
        path: path.to_owned(),
        source,
    })
}

/// A record with its directories.
pub(crate) fn located(data_root: &Path, record: BoardRecord) -> BuiltBoard {
    let dir = board_dir(data_root, &record.board);
    let views = record
        .views
        .keys()
        .map(|view| (view.clone(), dir.join("views").join(view.as_str())))
        .collect();
    BuiltBoard {
        views,
        truth_dir: truth_dir(data_root, &record.board),
        dir,
        record,
    }
}

/// The limits in a view's `manifest.json`: the only place that the executor and the evaluation
/// spec read them from (EVS-03).
///
/// # Errors
/// [`BoardError`] when the manifest cannot be read or has no limits.
pub fn view_manifest_limits(view_dir: &Path) -> Result<Limits, BoardError> {
    #[derive(Deserialize)]
    struct Manifest {
        limits: Limits,
    }
    let path = view_dir.join(MANIFEST);
    let bytes = std::fs::read(&path).map_err(BoardError::io("read", &path))?;
    let Manifest { limits } =
        serde_json::from_slice(&bytes).map_err(|source| BoardError::Record { path, source })?;
    Ok(limits)
}
