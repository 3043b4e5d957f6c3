//! The table of patterns: common ones, and those that a board's target name gives.

use regex::{Regex, RegexBuilder};
use vec_types::BoardId;

/// What a pattern is about; the word stands in evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatternKind {
    /// A path outside of view, solution and output.
    Path,
    /// Getting something from outside.
    Download,
    /// Data written down as literal numbers.
    NumberTable,
    /// A measured statistic of hidden targets.
    HiddenStatistic,
}

impl PatternKind {
    /// The word in evidence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Download => "download",
            Self::NumberTable => "number_table",
            Self::HiddenStatistic => "hidden_statistic",
        }
    }
}

/// Does a pattern see one sentence or the whole text?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each sentence by itself.
    Sentence,
    /// The whole text; every sentence that a match touches goes.
    Text,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// Stable name, for evidence and tests.
    pub name: String,
    /// What it is about.
    pub kind: PatternKind,
    pub(crate) scope: Scope,
    pub(crate) regex: Regex,
}

/// A table that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The target column's name is too long to be part of a pattern.
    #[error(
        "target column of board {board} has a name of {bytes} bytes; at most {TARGET_BYTES_MAX} are accepted"
    )]
    TargetTooLong {
        /// The board.
        board: BoardId,
        /// Length of the name.
        bytes: usize,
    },
    /// A pattern does not compile.
    #[error("compile compliance pattern {name}")]
    Compile {
        /// Its name.
        name: &'static str,
        /// What the engine says.
        #[source]
        source: regex::Error,
    },
}

/// Longest accepted name of a target column in bytes.
const TARGET_BYTES_MAX: usize = 200;

/// The patterns of one board.
#[derive(Debug, Clone)]
pub struct Rules {
    patterns: Vec<Pattern>,
}

/// Largest compiled pattern in bytes.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// One number as people write it.
const NUMBER: &str = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?";
/// A number precise enough to be a measurement: "5 models" is none.
const MEASURED: &str = r"(?:[0-9]+\.[0-9]|[0-9]{2})";
/// Numbers in a row that count as a table.
const TABLE_NUMBERS_MIN: usize = 24;
/// Rows that programs do not see.
const HIDDEN: &str = r"(?:hidden|held[- ]?out|hold[- ]?out|test(?:ing)?[- ](?:set|rows?|targets?|labels?|split|data)|ground[- ]truth|truth|half[- ][ab]|guard rows?|search rows?)";
/// Words of measuring.
const STATISTIC: &str = r"(?:mean|average|averages|median|mode|variance|standard deviation|std|sd|rms|rmse|mae|r2|r²|quantiles?|percentiles?|minimum|maximum|min|max|range|skew(?:ness)?|counts?|sum|total|fraction|proportion|share|correlation)";

/// name, kind, scope, expression.
type Row = (&'static str, PatternKind, Scope, String);

fn common() -> Vec<Row> {
    use PatternKind::{Download, HiddenStatistic, NumberTable, Path};
    let lead = r#"(?:^|[\s"'`(=\[,:])"#;
    let more = TABLE_NUMBERS_MIN - 1;
    let row = |name, kind, expression: &str| (name, kind, Scope::Sentence, expression.to_owned());
    vec![
        row("parent_path", Path, r"\.\.[/\\]"),
        row(
            "truth_path",
            Path,
            r"\btruth(?:/|\\|\.csv\b|_dir\b)|/truth\b",
        ),
        (
            "system_path",
            Path,
            Scope::Sentence,
            format!(
                r"{lead}/(?:etc|proc|sys|dev|root|home|var|boot|run|mnt|media|opt|srv|usr|work|data)(?:/|\b)"
            ),
        ),
        row("home_path", Path, r"~/|\$HOME\b|\bos\.environ\b|\bgetenv\b"),
        row(
            "url",
            Download,
            r"\b(?:https?|ftps?|s3|gs|ssh|git|file)://|\bwww\.\w",
        ),
        row(
            "download_command",
            Download,
            r"\b(?:curl|wget|aria2c?|rsync|scp|sftp)\b|\b(?:pip3?|conda|mamba|npm|apt(?:-get)?|uv)\s+(?:install|add|download)\b|\bgit\s+clone\b",
        ),
        row(
            "download_call",
            Download,
            r"\burllib\b|\burlopen\b|\brequests\.(?:get|post)\b|\bhttp\.client\b|\bsocket\.(?:socket|create_connection)\b|\bhf_hub_download\b|\bsnapshot_download\b|\bfetch_\w+\s*\(|\bload_(?:diabetes|iris|boston|wine|breast_cancer|dataset)\b|\bsklearn\.datasets\b",
        ),
        row(
            "download_word",
            Download,
            r"\bdownload(?:s|ed|ing)?\b.*\b(?:data|dataset|file|weights?|model|csv|copy|table)\b",
        ),
        (
            "number_table",
            NumberTable,
            Scope::Text,
            format!(r"{NUMBER}(?:[\s,;|\[\](){{}}:]+{NUMBER}){{{more},}}"),
        ),
        (
            "hidden_statistic",
            HiddenStatistic,
            Scope::Sentence,
            format!(
                r"\b{HIDDEN}\b.*\b{STATISTIC}\b.*{MEASURED}|\b{STATISTIC}\b.*\b{HIDDEN}\b.*{MEASURED}|{MEASURED}.*\b{STATISTIC}\b.*\b{HIDDEN}\b"
            ),
        ),
    ]
}

/// Patterns with the name of the board's target in them: its statistics may only be named as
/// those of the training rows.
fn of_target(target: &str) -> Vec<Row> {
    let target = regex::escape(target);
    let hidden = format!(r"(?:\b{HIDDEN}\b|\btest\b|\bunseen\b)");
    vec![(
        "target_statistic",
        PatternKind::HiddenStatistic,
        Scope::Sentence,
        format!(r"{hidden}.*\b{target}\b.*{MEASURED}|\b{target}\b.*{hidden}.*{MEASURED}"),
    )]
}

impl Rules {
    /// The common patterns and those for `target`, the target column of `board`.
    ///
    /// # Errors
    /// [`RulesError`] when the target's name is too long or a pattern does not compile.
    pub fn for_board(board: &BoardId, target: &str) -> Result<Self, RulesError> {
        if target.len() > TARGET_BYTES_MAX {
            return Err(RulesError::TargetTooLong {
                board: board.clone(),
                bytes: target.len(),
            });
        }
        let mut rows = common();
        rows.extend(of_target(target));
        let patterns = rows
            .into_iter()
            .map(|(name, kind, scope, expression)| {
                let regex = RegexBuilder::new(&expression)
                    .case_insensitive(true)
                    .size_limit(REGEX_BYTES_MAX)
                    .build()
                    .map_err(|source| RulesError::Compile { name, source })?;
                Ok(Pattern {
                    name: name.to_owned(),
                    kind,
                    scope,
                    regex,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { patterns })
    }

    /// The table.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }
}
