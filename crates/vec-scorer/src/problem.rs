//! What is wrong with a prediction file, as a code that programs can branch on and a detail for
//! people. Neither ever holds a target value: details name counts, lines and test ids only.

use serde::{Deserialize, Serialize};

/// Longest detail in characters; a longer one is cut.
pub(crate) const DETAIL_LEN_MAX: usize = 200;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)+) => {
        /// One word per kind of format error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FormatCode {
            $($(#[$doc])* $name,)+
        }

        impl FormatCode {
            /// The word on the wire, in the journal and in tables.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

codes! {
    /// No bytes at all.
    Empty => "empty",
    /// More bytes than allowed.
    TooLarge => "too_large",
    /// Bytes that are not UTF-8.
    NotUtf8 => "not_utf8",
    /// The first line is not `id,prediction`.
    BadHeader => "bad_header",
    /// A line without exactly two fields.
    BadRow => "bad_row",
    /// An id that is not a plain whole number.
    BadId => "bad_id",
    /// An id that stands on two lines.
    DuplicateId => "duplicate_id",
    /// A prediction that is not a decimal number.
    NotANumber => "not_a_number",
    /// NaN, an infinity, or a number too large for a double.
    NotFinite => "not_finite",
    /// Finite, but beyond ±1e300.
    OutOfRange => "out_of_range",
    /// Test ids without a prediction.
    MissingRows => "missing_rows",
    /// Predictions for ids that are not test ids, or more lines than test ids.
    ExtraRows => "extra_rows",
    /// No file for a view that the board scores.
    MissingView => "missing_view",
    /// A file for a view that the board does not score.
    UnknownView => "unknown_view",
    /// Two files for one view.
    DuplicateView => "duplicate_view",
    /// More files than any board has views.
    TooManyViews => "too_many_views",
    /// The file made the reader exceed its memory or processor time, or crash.
    ReaderDied => "reader_died",
}

/// A prediction file that cannot be scored (EXE: `invalid_format`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatProblem {
    /// What kind.
    pub code: FormatCode,
    /// For people.
    pub detail: String,
}

impl FormatProblem {
    /// A problem; control characters are replaced and a long detail is cut.
    #[must_use]
    pub fn new(code: FormatCode, detail: impl AsRef<str>) -> Self {
        let plain = |c: char| if c.is_control() { '?' } else { c };
        let detail = detail.as_ref().chars().take(DETAIL_LEN_MAX).map(plain);
        Self {
            code,
            detail: detail.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_they_are_called() {
        for code in [
            FormatCode::Empty,
            FormatCode::NotUtf8,
            FormatCode::NotANumber,
            FormatCode::ReaderDied,
        ] {
            let json = serde_json::to_string(&code).expect("encodes");
            assert_eq!(json, format!("\"{}\"", code.as_str()));
        }
    }

    #[test]
    fn details_are_one_bounded_line() {
        let problem = FormatProblem::new(FormatCode::BadRow, "a\nb\0".repeat(200));
        assert_eq!(problem.detail.chars().count(), DETAIL_LEN_MAX);
        assert!(problem.detail.starts_with("a?b?"));
    }
}
