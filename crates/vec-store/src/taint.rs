//! `<root>/<run>.taint.json`, beside the run: reasons why its evidence no longer proves anything
//! (LED-02). Records are only ever added.

use std::fs::{self, File};
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};
use vec_types::{UnixMs, pretty_json};

use crate::files::sync_dir;
use crate::{RunLayout, StoreError};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaintRecord {
    at: UnixMs,
    reasons: Vec<String>,
}

/// Adds a record with these reasons. No reasons, no record.
///
/// # Errors
/// I/O errors, and a taint file that cannot be read: it is never overwritten.
pub fn taint(layout: &RunLayout, at: UnixMs, reasons: &[String]) -> Result<(), StoreError> {
    if reasons.is_empty() {
        return Ok(());
    }
    let mut records = read(layout)?;
    records.push(TaintRecord {
        at,
        reasons: reasons.to_vec(),
    });
    let bytes = pretty_json(&records).map_err(|source| StoreError::Encode {
        what: "the taint record",
        source,
    })?;
    let path = layout.taint();
    let temp = path.with_extension("json.new");
    let mut file = File::create(&temp).map_err(StoreError::io("create", &temp))?;
    file.write_all(&bytes)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io("write", &temp))?;
    fs::rename(&temp, &path).map_err(StoreError::io("rename", &path))?;
    sync_dir(layout.root())
}

/// All reasons on record; empty = not tainted.
///
/// # Errors
/// I/O errors, and a taint file that cannot be read.
pub fn taint_reasons(layout: &RunLayout) -> Result<Vec<String>, StoreError> {
    Ok(read(layout)?.into_iter().flat_map(|r| r.reasons).collect())
}

fn read(layout: &RunLayout) -> Result<Vec<TaintRecord>, StoreError> {
    let path = layout.taint();
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::bad_file(&path, format!("is not a taint record: {error}")))
}
