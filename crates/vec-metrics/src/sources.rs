//! What scoring means, as a digest: the sources of this crate, not of a binary, so that an
//! unrelated commit does not make two runs incomparable (`decisions.md`, O-ARC-4).

use vec_types::{Digest, ManifestEntry, manifest_hash};

const SOURCES: [(&str, &[u8]); 6] = [
    ("src/board.rs", include_bytes!("board.rs")),
    ("src/lib.rs", include_bytes!("lib.rs")),
    ("src/rmse.rs", include_bytes!("rmse.rs")),
    ("src/skill.rs", include_bytes!("skill.rs")),
    ("src/sources.rs", include_bytes!("sources.rs")),
    ("src/split_rows.rs", include_bytes!("split_rows.rs")),
];

/// Manifest hash of the sources of this crate.
#[must_use]
pub fn scorer_hash() -> Digest {
    let entries: Vec<ManifestEntry> = SOURCES
        .iter()
        .map(|(path, bytes)| ManifestEntry {
            path: (*path).to_owned(),
            mode: 0o644,
            sha256: Digest::of(bytes),
            size: bytes.len() as u64,
        })
        .collect();
    manifest_hash(&entries)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_source_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let found: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("source folder")
            .map(|entry| entry.expect("entry").file_name())
            .map(|name| format!("src/{}", name.to_string_lossy()))
            .collect();
        let listed: BTreeSet<String> = SOURCES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, listed);
    }
}
