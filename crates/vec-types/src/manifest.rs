//! The manifest hash of a directory: views, environments, truth (`decisions.md`, Formats).

use crate::{Digest, Hasher};

/// One regular file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestEntry {
    /// Path below the directory, `/`-separated. First, because lines are sorted by path.
    pub path: String,
    /// Permission bits, e.g. `0o644`.
    pub mode: u32,
    /// Content digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// sha256 over the lines `mode sha256 size path`, sorted by path, each ended by a newline.
#[must_use]
pub fn manifest_hash(entries: &[ManifestEntry]) -> Digest {
    let mut sorted: Vec<&ManifestEntry> = entries.iter().collect();
    sorted.sort();
    let mut hasher = Hasher::default();
    for ManifestEntry {
        path,
        mode,
        sha256,
        size,
    } in sorted
    {
        hasher.update(format!("{mode:04o} {sha256} {size} {path}\n").as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, size: u64) -> ManifestEntry {
        ManifestEntry {
            path: path.to_owned(),
            mode: 0o644,
            sha256: Digest::of(b""),
            size,
        }
    }

    #[test]
    fn order_does_not_matter_and_content_does() {
        let (a, b) = (entry("a", 1), entry("b", 2));
        assert_eq!(
            manifest_hash(&[a.clone(), b.clone()]),
            manifest_hash(&[b.clone(), a.clone()])
        );
        assert_ne!(
            manifest_hash(&[a.clone(), b]),
            manifest_hash(&[a, entry("b", 3)])
        );
    }
}
