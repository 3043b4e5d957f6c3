//! The installed product, found from the running program (CONTRACTS, Prefix).

use std::path::PathBuf;

/// Parent of the directory of this program.
///
/// # Errors
/// When the program's path is unknown or too short.
pub fn own_prefix() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    program
        .ancestors()
        .nth(2)
        .map(PathBuf::from)
        .ok_or_else(|| std::io::Error::other(format!("{} has no prefix", program.display())))
}
