//! The text of what somebody wrote, as far as it is safe to read and to parse: a regular file of
//! bounded size, with bounded nesting.
//!
//! Invariants: opening never waits (a pipe has no writer yet), and no more than the limit is read,
//! whatever the file's length says. The YAML parser's time grows with the square of the depth of
//! nesting, so deep text never reaches it.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::ConfigError;

/// Longest accepted file in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Deepest accepted nesting of `[`, `{` and of `- ` on one line.
pub(super) const NESTING_MAX: usize = 64;

/// Reads a configuration, a board definition or an idea library.
pub(crate) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let read = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let refused = || ConfigError::NotAFile {
        path: path.to_owned(),
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(read)?;
    if !file.metadata().map_err(read)?.is_file() {
        return Err(refused());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(read)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refused());
    }
    String::from_utf8(bytes).map_err(|error| {
        read(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            error.utf8_error(),
        ))
    })
}

/// Line (from 1) at which the text nests deeper than [`NESTING_MAX`], if it does.
///
/// Brackets within quotes and comments do not count towards the depth. Openers right after each
/// other always do: what starts a quote is guessed from the character before it.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let mut scan = Scan::default();
    for (index, line) in text.lines().enumerate() {
        if dashes(line) > NESTING_MAX || scan.line(line) {
            return Some(index + 1);
        }
    }
    None
}

// Block sequences nest on one line, too: `- - - a`.
fn dashes(line: &str) -> usize {
    let words = line.split_ascii_whitespace();
    words.take_while(|word| matches!(*word, "-" | "?")).count()
}

#[derive(Default)]
struct Scan {
    depth: usize,
    /// Openers with nothing but space between them.
    in_a_row: usize,
    quote: Option<char>,
}

impl Scan {
    /// Reads one more line. Is it too deep?
    fn line(&mut self, line: &str) -> bool {
        let mut before = ' ';
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '[' | '{' => self.in_a_row += 1,
                letter if letter.is_whitespace() => {}
                _ => self.in_a_row = 0,
            }
            match (self.quote, letter) {
                (Some('"'), '\\') => drop(letters.next()),
                (Some(quote), _) if letter == quote => self.quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if starts_token(before) => self.quote = Some(letter),
                (None, '#') if before.is_whitespace() => return false,
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
            if self.depth > NESTING_MAX || self.in_a_row > NESTING_MAX {
                return true;
            }
            before = letter;
        }
        false
    }
}

fn starts_token(before: char) -> bool {
    before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':' | '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_bounded() {
        let flow = |n: usize| format!("a: {}{}", "[".repeat(n), "]".repeat(n));
        let cases = [
            (flow(NESTING_MAX), None),
            (flow(NESTING_MAX + 1), Some(1)),
            ("[".repeat(100_000), Some(1)),
            (format!("a: 1\nb: {}", "{a: [".repeat(NESTING_MAX)), Some(2)),
            ("[\n".repeat(NESTING_MAX + 1), Some(NESTING_MAX + 1)),
            (format!("a: don't\nb: {}", "[".repeat(1000)), Some(2)),
            ("- ".repeat(NESTING_MAX + 1), Some(1)),
            ("a: [1, 2]\n".repeat(NESTING_MAX + 1), None),
            ("a: \"[ \\\" x\"\n".repeat(NESTING_MAX + 1), None),
            ("a: '[x' # [x\n".repeat(NESTING_MAX + 1), None),
        ];
        for (text, expected) in cases {
            let start: String = text.chars().take(40).collect();
            assert_eq!(too_deep(&text), expected, "{start}");
        }
    }

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("run.yaml");
        let text = "#".repeat(FILE_BYTES_MAX as usize);
        std::fs::write(&path, &text).expect("written");
        assert_eq!(read_text(&path).expect("read").len(), text.len());
        std::fs::write(&path, text + "#").expect("written");
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        for path in [&path, &pipe, dir.path(), Path::new("/dev/zero")] {
            let error = read_text(path).expect_err("refused").to_string();
            let name = path.display().to_string();
            assert!(error.starts_with(&name), "{error}");
            assert!(error.contains("a regular file of at most 1 MiB"), "{error}");
        }
    }
}
