//! The files of a tabular board: a view's tables and manifest, the truth halves (CONTRACTS).

use std::path::Path;

use serde_json::json;
use vec_config::Board;
use vec_metrics::RowShare;
use vec_types::{ViewId, pretty_json};

use crate::error::BoardError;
use crate::publish::{make_dir, write_file};
use crate::raw::{Raw, RawRow};
use crate::split::Shares;

/// What everybody on the host may read: views are bound into sandboxes of another user. No write
/// bits, as in a run directory: modes are part of a view's manifest hash.
const OPEN: (u32, u32) = (0o755, 0o444);
/// Truth: directories and files of its owner alone.
pub(crate) const HIDDEN: (u32, u32) = (0o700, 0o600);

/// Name of a view's manifest.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Writes one view directory.
pub(crate) fn write_view(
    dir: &Path,
    view: &ViewId,
    board: &Board,
    raw: &Raw,
    shares: &Shares,
) -> Result<(), BoardError> {
    make_dir(dir, OPEN.0)?;
    let features = &board.data.features;
    let mut header: Vec<&str> = vec!["id"];
    header.extend(features.iter().map(String::as_str));
    let test = table(
        &header,
        shares.test.iter().map(|row| fields(&raw.rows[*row])),
    );
    header.push(&board.data.target);
    let train = table(
        &header,
        shares.train.iter().map(|row| {
            let row = &raw.rows[*row];
            let mut fields = fields(row);
            fields.push(row.target.clone());
            fields
        }),
    );
    write_file(&dir.join("train.csv"), &train, OPEN.1)?;
    write_file(&dir.join("test.csv"), &test, OPEN.1)?;
    let path = dir.join(MANIFEST);
    let manifest = pretty_json(&manifest(view, board)).map_err(|source| BoardError::Encode {
        path: path.clone(),
        source,
    })?;
    write_file(&path, &manifest, OPEN.1)
}

fn manifest(view: &ViewId, board: &Board) -> serde_json::Value {
    json!({
        "schema": 1,
        "board": board.board,
        "view": view,
        "task": board.task.as_str(),
        "id_column": "id",
        "target": board.data.target,
        "features": board.data.features,
        "files": {"train": "train.csv", "test": "test.csv"},
        "output": {
            "format": "tabular_csv",
            "file": "pred.csv",
            "columns": ["id", "prediction"],
        },
        "limits": board.limits,
    })
}

/// Writes `A/truth.csv` and `B/truth.csv` below `dir`.
pub(crate) fn write_truth(dir: &Path, raw: &Raw, shares: &Shares) -> Result<(), BoardError> {
    let half = |name: &str, content: &[u8]| {
        let half = dir.join(name);
        make_dir(&half, HIDDEN.0)?;
        write_file(&half.join("truth.csv"), content, HIDDEN.1)
    };
    let pair = |row: &RawRow| vec![row.id.to_string(), row.target.clone()];
    let rows_a = shares.half_a.iter().map(|row| pair(&raw.rows[*row]));
    half("A", &table(&["id", "target"], rows_a))?;
    let rows_b = shares.half_b.iter().map(|(row, share)| {
        let mut fields = pair(&raw.rows[*row]);
        fields.push(share_word(*share).to_owned());
        fields
    });
    half("B", &table(&["id", "target", "rows"], rows_b))
}

fn share_word(share: RowShare) -> &'static str {
    match share {
        RowShare::Search => "search",
        RowShare::Guard => "guard",
    }
}

fn fields(row: &RawRow) -> Vec<String> {
    let mut fields = vec![row.id.to_string()];
    fields.extend(row.features.iter().cloned());
    fields
}

// Fields are numbers, ids and column names of a safe alphabet: nothing needs quoting.
fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut text = header.join(",");
    text.push('\n');
    for row in rows {
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text.into_bytes()
}
