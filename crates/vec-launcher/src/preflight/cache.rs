//! What preflight found out about things that are named by content: the same product, board,
//! rules, Python and user give the same answer.

use serde::{Deserialize, Serialize};
use serde_json::json;
use vec_types::{Digest, canonical_json};

use super::Prebuilt;
use crate::data_root::DataRoot;
use crate::files::{read_json, write_json};
use crate::prepare::Prepared;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cached {
    pub(super) python: String,
    pub(super) prebuilt: Prebuilt,
}

/// Name of the answer; `None` when it cannot be named, which only costs time.
pub(super) fn key(prepared: &Prepared, uid: u32) -> Option<Digest> {
    // A changed kernel may refuse what it allowed before.
    let kernel = std::fs::read_to_string("/proc/version").ok()?;
    let named = json!({
        "version": 1,
        "uid": uid,
        "kernel": kernel,
        "build": prepared.build,
        "board": prepared.board,
        "built": prepared.built.record,
        "python": prepared.python.facts,
        "guard_seeds": prepared.config.guard.fresh_seeds,
    });
    Some(Digest::of(&canonical_json(&named).ok()?))
}

fn path(data_root: &DataRoot, key: Digest) -> std::path::PathBuf {
    data_root
        .preflight()
        .join(format!("{}.json", key.short(32)))
}

/// An earlier answer; a damaged one is none.
pub(super) fn read(data_root: &DataRoot, key: Digest) -> Option<Cached> {
    read_json(&path(data_root, key)).ok()
}

/// Keeps an answer; failing to costs time only.
pub(super) fn write(data_root: &DataRoot, key: Digest, python: String, prebuilt: Prebuilt) {
    let cached = Cached { python, prebuilt };
    if let Err(error) = write_json(&path(data_root, key), &cached) {
        tracing::warn!(error = %vec_daemon::chain(&error), "the preflight result is not cached");
    }
}
