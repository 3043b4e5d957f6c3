//! Seed programs as the board names them (SED-01): every file there, SEED.json in agreement.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vec_config::{Board, SeedEntry};
use vec_types::{FamilyId, SeedState};

use crate::error::SnapshotError;

/// Longest accepted SEED.json in bytes.
const SEED_JSON_BYTES_MAX: u64 = 1 << 16;

/// SEED.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedRecord {
    /// What it may become; as the board says.
    pub state: SeedState,
    /// Family that it covers; as the board says.
    pub family_id: Option<FamilyId>,
    /// Where it is from (O-SED-4).
    pub provenance: BTreeMap<String, Value>,
    /// Why it was admitted.
    pub admission: BTreeMap<String, Value>,
}

/// Checks every seed program of a board.
///
/// # Errors
/// [`SnapshotError::Seed`] naming the first file that is missing or disagrees.
pub fn check_seeds(board: &Board) -> Result<(), SnapshotError> {
    board
        .seed_programs
        .iter()
        .try_for_each(|entry| check(&board.seed_dir(&entry.id), entry))
}

fn check(dir: &Path, entry: &SeedEntry) -> Result<(), SnapshotError> {
    let refused = |path: &Path, what: String| SnapshotError::Seed {
        path: path.to_owned(),
        what,
    };
    for name in ["run.py", "METHOD.md", "SEED.json"] {
        let path = dir.join(name);
        if !path.is_file() {
            return Err(refused(&path, "missing".to_owned()));
        }
    }
    let path = dir.join("SEED.json");
    let bytes = std::fs::metadata(&path)
        .map_err(SnapshotError::io("read", &path))?
        .len();
    if bytes > SEED_JSON_BYTES_MAX {
        return Err(refused(
            &path,
            format!("at most {SEED_JSON_BYTES_MAX} bytes"),
        ));
    }
    let text = std::fs::read(&path).map_err(SnapshotError::io("read", &path))?;
    let record: SeedRecord =
        serde_json::from_slice(&text).map_err(|error| refused(&path, error.to_string()))?;
    let word = |state: SeedState| serde_json::json!(state).to_string();
    if record.state != entry.state {
        let what = format!(
            "state is {}, but the board says {}",
            word(record.state),
            word(entry.state)
        );
        return Err(refused(&path, what));
    }
    if record.family_id != entry.family {
        let word = |family: &Option<FamilyId>| {
            family
                .as_ref()
                .map_or("none".to_owned(), ToString::to_string)
        };
        let what = format!(
            "family_id is {}, but the board says {}",
            word(&record.family_id),
            word(&entry.family)
        );
        return Err(refused(&path, what));
    }
    for (key, map, needed) in [
        ("provenance", &record.provenance, "source"),
        ("admission", &record.admission, "decision"),
    ] {
        if !map.contains_key(needed) {
            return Err(refused(&path, format!("{key} must have `{needed}`")));
        }
    }
    Ok(())
}
