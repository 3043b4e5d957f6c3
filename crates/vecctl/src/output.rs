//! The only place that prints.
//!
//! Texts of candidates and models reach the terminal only through here: nothing that they contain
//! may move the cursor, change colours or hide what stands beside it.

use std::io::Write as _;

use serde::Serialize;
use vec_types::pretty_json;

/// Direction marks, which make text look like other text.
const DIRECTION_MARKS: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// The text with every character escaped that a terminal obeys instead of showing it: ESC, BEL,
/// ends of lines and the like.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control()
            || matches!(letter, '\u{2028}' | '\u{2029}')
            || DIRECTION_MARKS.contains(&letter)
        {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Prints one line. A closed pipe (`| head`) is not an error.
pub(crate) fn line(text: &str) {
    drop(writeln!(std::io::stdout(), "{}", printable(text)));
}

/// Prints a document for programs.
pub(crate) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let bytes = pretty_json(value)?;
    drop(std::io::stdout().write_all(&bytes));
    Ok(())
}

/// Prints a note that is not part of the output; it may have several lines.
pub(crate) fn note(text: &str) {
    for line in text.lines() {
        drop(writeln!(std::io::stderr(), "{}", printable(line)));
    }
}

/// Prints why it failed: the error and its sources, once.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("vecctl: {error:#}"));
}

/// Help, version, or what is wrong with the arguments.
pub(crate) fn clap(error: &clap::Error) {
    drop(error.print());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_nothing_that_is_shown() {
        for (text, shown) in [
            ("größer ✓ #1 \\n", "größer ✓ #1 \\n"),
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("a\nb\r\tc\x07", "a\\nb\\r\\tc\\u{7}"),
            ("\u{9b}2J\x7f", "\\u{9b}2J\\u{7f}"),
            ("\u{202e}txt", "\\u{202e}txt"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
