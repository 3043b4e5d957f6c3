//! Format of a ledger line: canonical JSON `{at, op, path, prev, seq, sha256, size}` with `hash`
//! appended as the last key by text, `hash = sha256(prev hex ++ "\n" ++ body bytes)`. A line is
//! checked over its stored bytes; nothing is re-serialised.

use serde::{Deserialize, Serialize};
use vec_types::{Digest, Hasher, RelPath, UnixMs, canonical_json};

use super::NewLine;
use crate::StoreError;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerOp {
    /// A file came to be.
    Create,
    /// A file took the place of an earlier version.
    Replace,
    /// A file that has other names outside the run (pinned inputs).
    Link,
    /// A growing log has this prefix.
    Mark,
    /// The archive holds this event.
    ArchiveMark,
    /// A file that a crash left behind, or that a repeated effect superseded.
    Orphan,
    /// Everything is covered; nothing may follow but `reopen`.
    Close,
    /// A verified resume took over a closed run.
    Reopen,
}

/// One line, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// When.
    pub at: UnixMs,
    /// What happened.
    pub op: LedgerOp,
    /// To which path.
    pub path: RelPath,
    /// Number, from 1.
    pub seq: u64,
    /// Content digest; for `archive_mark` the event's hash.
    pub sha256: Digest,
    /// Bytes; for `archive_mark` the event's number.
    pub size: u64,
    /// Hash of the line before.
    pub prev: Digest,
    /// Hash of this line.
    pub hash: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    at: UnixMs,
    op: LedgerOp,
    path: RelPath,
    prev: Digest,
    seq: u64,
    sha256: Digest,
    size: u64,
}

const HASH_KEY: &[u8] = b",\"hash\":\"";
const HASH_END: &[u8] = b"\"}";
const HASH_DIGITS: usize = 64;

fn hash_of(prev: Digest, body: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(prev.to_string().as_bytes());
    hasher.update(b"\n");
    hasher.update(body);
    hasher.finish()
}

/// The line with its newline, and its hash.
pub(super) fn render(
    line: &NewLine,
    at: UnixMs,
    seq: u64,
    prev: Digest,
) -> Result<(Vec<u8>, Digest), StoreError> {
    let body = canonical_json(&Body {
        at,
        op: line.op,
        path: line.path.clone(),
        prev,
        seq,
        sha256: line.sha256,
        size: line.size,
    });
    let mut bytes = body.map_err(|source| StoreError::Encode {
        what: "a ledger line",
        source,
    })?;
    let hash = hash_of(prev, &bytes);
    bytes.pop();
    bytes.extend_from_slice(HASH_KEY);
    bytes.extend_from_slice(hash.to_string().as_bytes());
    bytes.extend_from_slice(HASH_END);
    bytes.push(b'\n');
    Ok((bytes, hash))
}

/// Reads one line (without its newline) and checks it against its place in the chain.
pub(super) fn parse(line: &[u8], seq: u64, prev: Digest) -> Result<LedgerEntry, String> {
    let tail = HASH_KEY.len() + HASH_DIGITS + HASH_END.len();
    let cut = line
        .len()
        .checked_sub(tail)
        .ok_or("is too short for a line")?;
    let (start, end) = line.split_at(cut);
    let digits = end
        .strip_prefix(HASH_KEY)
        .and_then(|rest| rest.strip_suffix(HASH_END))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse::<Digest>().ok())
        .ok_or("does not end with its hash")?;
    let mut body = start.to_vec();
    body.push(b'}');
    let found = hash_of(prev, &body);
    if found != digits {
        return Err(format!("says hash {digits}, its bytes give {found}"));
    }
    let body: Body = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    if body.seq != seq {
        return Err(format!("says seq {}, its place is {seq}", body.seq));
    }
    if body.prev != prev {
        return Err(format!(
            "says prev {}, the line before is {prev}",
            body.prev
        ));
    }
    Ok(LedgerEntry {
        at: body.at,
        op: body.op,
        path: body.path,
        seq,
        sha256: body.sha256,
        size: body.size,
        prev,
        hash: digits,
    })
}
