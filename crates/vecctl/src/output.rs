//! The only place that prints.

use std::io::Write;

use serde::Serialize;
use vec_types::pretty_json;

/// Prints one line. A closed pipe (`| head`) is not an error.
pub(crate) fn line(text: &str) {
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// Prints a document for programs.
pub(crate) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let bytes = pretty_json(value)?;
    drop(std::io::stdout().write_all(&bytes));
    Ok(())
}

/// Prints a note that is not part of the output.
pub(crate) fn note(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Prints why it failed: the error and its sources, once.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("vecctl: {error:#}"));
}

/// Help, version, or what is wrong with the arguments.
pub(crate) fn clap(error: &clap::Error) {
    drop(error.print());
}
