//! The file as text: line ends, front matter, preamble, sections.

/// Opens and closes the front matter.
const RULE: &str = "---";
/// Shortest run of fence letters.
const FENCE_MIN: usize = 3;

/// Something wrong at a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AtLine {
    /// From 1.
    pub(super) line: usize,
    pub(super) message: String,
}

impl AtLine {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }

    pub(super) fn key(&self) -> String {
        line_key(self.line)
    }
}

/// How problems name a line.
pub(super) fn line_key(line: usize) -> String {
    format!("line {line}")
}

/// Everything after the front matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// Before the first section, trimmed.
    pub(super) preamble: String,
    /// In the order of the file.
    pub(super) sections: Vec<Section>,
}

/// `## <id>` and what follows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Line of its heading.
    pub(super) line: usize,
    /// What the heading says.
    pub(super) id: String,
    /// Trimmed.
    pub(super) text: String,
}

/// The text without byte order mark and with LF at line ends.
pub(super) fn plain(text: &str) -> Result<String, AtLine> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    for (index, line) in text.lines().enumerate() {
        if let Some(letter) = line.chars().find(|c| c.is_control() && *c != '\t') {
            let message = format!("holds the control character {letter:?}; remove it");
            return Err(AtLine::new(index + 1, message));
        }
    }
    Ok(text)
}

/// The front matter, with as many lines before it as in the file, and the body.
pub(super) fn cut(text: &str) -> Result<(String, Body), AtLine> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.trim_end() == RULE;
    if !lines.first().is_some_and(is_rule) {
        let what = format!(
            "must be `{RULE}`, the start of the front matter with `board`, `categories` and \
             `families`"
        );
        return Err(AtLine::new(1, what));
    }
    let Some(length) = lines[1..].iter().position(is_rule) else {
        let what = format!("the front matter that starts here is not closed by a line `{RULE}`");
        return Err(AtLine::new(1, what));
    };
    let front = format!("\n{}", lines[1..=length].join("\n"));
    // Two rules and what is between them.
    Ok((front, body(&lines[length + 2..], length + 2)?))
}

// `before` lines of the file are not in `lines`.
fn body(lines: &[&str], before: usize) -> Result<Body, AtLine> {
    let mut body = Body::default();
    let mut open: Option<(usize, Fence)> = None;
    for (index, line) in lines.iter().enumerate() {
        let number = before + index + 1;
        match (&open, fence(line)) {
            (None, Some(fence)) => open = Some((number, fence)),
            (Some((_, opened)), Some(fence)) if fence.closes(opened) => open = None,
            _ => {}
        }
        match heading(line).filter(|_| open.is_none()) {
            Some(id) => body.sections.push(Section {
                line: number,
                id: id.to_owned(),
                text: String::new(),
            }),
            None => {
                let last = body.sections.last_mut();
                let text = last.map_or(&mut body.preamble, |section| &mut section.text);
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    if let Some((line, _)) = open {
        return Err(AtLine::new(
            line,
            "the code fence that starts here is not closed",
        ));
    }
    let trim = |text: &mut String| *text = text.trim().to_owned();
    trim(&mut body.preamble);
    body.sections
        .iter_mut()
        .for_each(|section| trim(&mut section.text));
    Ok(body)
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("##")?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

struct Fence {
    letter: char,
    length: usize,
    is_bare: bool,
}

impl Fence {
    fn closes(&self, opened: &Self) -> bool {
        self.letter == opened.letter && self.length >= opened.length && self.is_bare
    }
}

fn fence(line: &str) -> Option<Fence> {
    let line = line.trim();
    let letter = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(letter);
    // Both letters are one byte long.
    let length = line.len() - rest.len();
    (length >= FENCE_MIN).then_some(Fence {
        letter,
        length,
        is_bare: rest.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_outside_of_fences_count() {
        let text = "---\na: 1\n---\npre\n### part\n\n## one\n\nx\n````md\n## no\n```\n````\n##\ttwo \n#### y\n";
        let (front, body) = cut(text).expect("cuts");
        assert_eq!(front, "\na: 1");
        assert_eq!(body.preamble, "pre\n### part");
        let found: Vec<(usize, &str, &str)> = body
            .sections
            .iter()
            .map(|section| (section.line, section.id.as_str(), section.text.as_str()))
            .collect();
        let expected = [
            (7, "one", "x\n````md\n## no\n```\n````"),
            (14, "two", "#### y"),
        ];
        assert_eq!(found, expected);
        let (front, body) = cut("---\n---").expect("cuts");
        assert_eq!((front.as_str(), body), ("\n", Body::default()));
    }

    #[test]
    fn line_ends_and_byte_order_marks_make_no_difference() {
        let text = "---\na: 1\n---\nx\n\n## f\ny\n";
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(plain(&windows).expect("plain"), text);
        assert_eq!(plain("a\nb\u{feff}\tc").expect("plain"), "a\nb\u{feff}\tc");
        let error = plain("a\nb\rc\n").expect_err("a lone CR");
        assert_eq!((error.line, error.key().as_str()), (2, "line 2"));
    }
}
