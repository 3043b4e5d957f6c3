//! Where sentences begin and end.

use std::ops::Range;

/// Byte ranges of the sentences of `text`, in order, without gaps: a sentence ends after `.`, `!`,
/// `?` (with closing quotes) before white space, after `。！？`, or at the end of a line. Numbers
/// such as `0.5` and names such as `run.py` do not end one.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                while chars
                    .next_if(|(_, next)| matches!(next, '"' | '\'' | ')' | ']' | '”'))
                    .is_some()
                {}
                chars.peek().is_none_or(|(_, next)| next.is_whitespace())
            }
            _ => false,
        };
        if ends {
            let end = chars.peek().map_or(text.len(), |(next, _)| *next);
            debug_assert!(end > at);
            found.push(start..end);
            start = end;
        }
    }
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_cover_the_text_and_respect_numbers() {
        for (text, expected) in [
            ("", vec![]),
            ("One", vec!["One"]),
            (
                "Use 0.5. Then run.py! \"Why?\" Ok",
                vec!["Use 0.5.", " Then run.py!", " \"Why?\"", " Ok"],
            ),
            ("a\nb\n\nc", vec!["a\n", "b\n", "\n", "c"]),
            ("是。不是！", vec!["是。", "不是！"]),
            (
                "See (1.5.) next... end.",
                vec!["See (1.5.)", " next...", " end."],
            ),
        ] {
            let parts: Vec<&str> = sentences(text).into_iter().map(|r| &text[r]).collect();
            assert_eq!(parts, expected);
            assert_eq!(parts.concat(), text);
        }
    }
}
