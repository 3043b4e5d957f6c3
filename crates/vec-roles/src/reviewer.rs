//! The Reviewer: does a program play by the rules (REV-03). It gets no scoring rules (REV-05) and
//! no scores.

use vec_search::ReviewVerdict;
use vec_types::Plan;

use crate::json_reply::{ReplyError, find_object};
use crate::section::{SECTION_CHARS_MAX, Sections, head};
use crate::{BoardBrief, Context, NodeSummary, ProgramText, Prompt, Role, RoleTexts};

/// Why a reply is no review; the node stays unreviewed (O-REV-2).
pub type ReviewError = ReplyError;

/// Longest program shown in characters.
const PROGRAM_CHARS_MAX: usize = 60_000;
/// Longest text of a review in characters.
const TEXT_CHARS_MAX: usize = 4_000;
/// Most findings.
const FINDINGS_MAX: usize = 32;

/// What a Reviewer is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewerInput<'a> {
    /// Prompt texts of the run.
    pub texts: &'a RoleTexts,
    /// The board.
    pub board: &'a BoardBrief,
    /// The node; its score is not shown.
    pub node: &'a NodeSummary,
    /// Number of this call for this node, from 0.
    pub attempt: u32,
    /// Its plan.
    pub plan: Option<&'a Plan>,
    /// Its program.
    pub program: &'a ProgramText,
    /// Sentences that Compliance removed from the plan (CMP-04).
    pub removed: &'a [String],
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// `Pass` or `Fail`; never `Error`.
    pub verdict: ReviewVerdict,
    /// One paragraph.
    pub summary: String,
    /// What was found.
    pub findings: Vec<String>,
}

/// The prompt of one Reviewer call.
#[must_use]
pub fn reviewer_prompt(input: &ReviewerInput<'_>) -> Prompt {
    let mut context = Context::new(Role::Reviewer, input.node.node, input.attempt, input.board);
    context.operator = input.node.operator;
    context.family = input.node.family.clone();

    let mut sections = Sections::default();
    sections.block(Context::TAG, &context.to_text());
    let mut files = String::new();
    for (path, bytes) in input.program.files.iter().take(200) {
        files.push_str(&format!("- {path} ({bytes} bytes)\n"));
    }
    sections.own("Files of solution/", &files);
    let program = head(&input.program.run_py, PROGRAM_CHARS_MAX);
    sections.fenced("solution/run.py", "python", &program);
    let method = head(&input.program.method, SECTION_CHARS_MAX);
    sections.fenced("solution/METHOD.md", "text", &method);
    if let Some(plan) = input.plan {
        let plan = serde_json::to_string_pretty(plan).unwrap_or_default();
        sections.fenced("PLAN.json", "json", &head(&plan, SECTION_CHARS_MAX));
    }
    if !input.removed.is_empty() {
        let removed = head(&input.removed.join("\n"), SECTION_CHARS_MAX);
        sections.fenced("Sentences that Compliance removed", "text", &removed);
    }
    for view in &input.board.views {
        let title = format!("Manifest of view {}", view.view);
        let manifest = view.manifest.to_string();
        sections.fenced(&title, "json", &head(&manifest, SECTION_CHARS_MAX));
    }
    Prompt {
        system: format!(
            "{}\n\n{}",
            input.texts.reviewer_spec.trim_end(),
            input.texts.contract.trim_end()
        ),
        user: sections.finish(),
    }
}

/// The review in `reply`.
///
/// # Errors
/// [`ReviewError`]: damaged, or a verdict that is neither `pass` nor `fail`.
pub fn parse_review(reply: &str) -> Result<Review, ReviewError> {
    let object = find_object(reply, &["verdict", "summary", "findings"])?;
    let verdict = match object.needed("verdict", TEXT_CHARS_MAX)?.trim() {
        "pass" => ReviewVerdict::Pass,
        "fail" => ReviewVerdict::Fail,
        _ => {
            return Err(ReviewError::WrongType {
                key: "verdict",
                expected: "`pass` or `fail`",
            });
        }
    };
    Ok(Review {
        verdict,
        summary: object.text("summary", TEXT_CHARS_MAX)?.unwrap_or_default(),
        findings: object.list("findings", FINDINGS_MAX, TEXT_CHARS_MAX)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pass_and_fail_are_verdicts() {
        let pass = parse_review(r#"{"verdict": "pass", "findings": []}"#).expect("parses");
        assert_eq!(pass.verdict, ReviewVerdict::Pass);
        let fail = parse_review(r#"{"verdict":"fail","summary":"reads","findings":["x"]}"#);
        assert_eq!(fail.expect("parses").verdict, ReviewVerdict::Fail);
        for (bad, why) in [
            (r#"{"verdict": "error"}"#, "`pass` or `fail`"),
            (r#"{"verdict": "PASS"}"#, "`pass` or `fail`"),
            (r#"{"verdict": true}"#, "must be a string"),
            (r#"{"findings": []}"#, "`verdict` is missing"),
            ("pass", "no JSON object"),
            (r#"{"verdict": "pass"} {"verdict": "fail"}"#, "2 different"),
        ] {
            let error = parse_review(bad).expect_err(bad);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
