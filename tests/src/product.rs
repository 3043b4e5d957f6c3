//! Where the built product and the repository are.

use std::path::{Path, PathBuf};

/// The installed prefix under test.
///
/// # Panics
/// When there is none: `cargo xtask test` builds it and names it in VEC_PREFIX.
#[must_use]
pub fn prefix() -> PathBuf {
    let named = std::env::var_os("VEC_PREFIX").map(PathBuf::from);
    let prefix = named.unwrap_or_else(|| repository().join("target/dist"));
    assert!(
        prefix.join("bin/vecctl").exists(),
        "no product below {}; run `cargo xtask dist` first, or set VEC_PREFIX",
        prefix.display()
    );
    prefix
}

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}
