//! The Analyst: what a result means (ANA-02, O-REV-3).

use serde::Serialize;
use vec_search::MechanismActive;
use vec_types::{FamilyId, NodeId, Plan, ScoreReport};

use crate::context::ContextOutcome;
use crate::json_reply::{ReplyError, find_object};
use crate::researcher::board_sections;
use crate::section::{SECTION_CHARS_MAX, Sections, head, tail};
use crate::{BoardBrief, Context, DeltaInput, NodeSummary, Prompt, Role, RoleTexts, delta_table};

/// Why a reply is no analysis.
pub type AnalysisError = ReplyError;

/// Longest text of an analysis in characters.
const TEXT_CHARS_MAX: usize = 4_000;
/// Most next ideas.
const IDEAS_MAX: usize = 16;

/// What an Analyst is told.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalystInput<'a> {
    /// Prompt texts of the run.
    pub texts: &'a RoleTexts,
    /// The board.
    pub board: &'a BoardBrief,
    /// The node.
    pub node: &'a NodeSummary,
    /// Number of this call for this node, from 0.
    pub attempt: u32,
    /// Its plan.
    pub plan: Option<&'a Plan>,
    /// Its report, if it was scored.
    pub report: Option<&'a ScoreReport>,
    /// Its parent.
    pub parent: Option<&'a NodeSummary>,
    /// Its parent's report.
    pub parent_report: Option<&'a ScoreReport>,
    /// METHOD.md.
    pub method: &'a str,
    /// Difference to the parent's program.
    pub diff: Option<&'a str>,
    /// The Engineer's last message.
    pub last_message: Option<&'a str>,
    /// What went wrong in the execution.
    pub fault: Option<&'a str>,
    /// End of its stderr.
    pub stderr_tail: Option<&'a str>,
    /// Verdict of the mechanism-off control.
    pub mechanism_active: Option<MechanismActive>,
}

/// ANALYSIS.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// One paragraph for later prompts.
    pub summary: String,
    /// What was changed against the parent.
    pub what_changed: String,
    /// Why the score moved, or why it failed.
    pub why: String,
    /// What this rests on.
    pub evidence: String,
    /// What to try next.
    pub next_ideas: Vec<String>,
    /// Family that the program turned out to be (DRF-11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family_id: Option<FamilyId>,
    /// The direction that this result refutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuted: Option<String>,
}

/// The prompt of one Analyst call.
#[must_use]
pub fn analyst_prompt(input: &AnalystInput<'_>) -> Prompt {
    let node: NodeId = input.node.node;
    let mut context = Context::new(Role::Analyst, node, input.attempt, input.board);
    context.operator = input.node.operator;
    context.family = input.node.family.clone();
    context.outcome = Some(ContextOutcome::of(input.node, input.parent));

    let mut sections = Sections::default();
    sections.block(Context::TAG, &context.to_text());
    board_sections(&mut sections, input.board);
    let delta = DeltaInput {
        node,
        report: input.report,
        base: input.parent.map(|parent| parent.node),
        base_report: input.parent_report,
        mechanism_active: input.mechanism_active,
    };
    sections.own("Result against the parent", &delta_table(&delta));
    if let Some(plan) = input.plan {
        let plan = serde_json::to_string_pretty(plan).unwrap_or_default();
        sections.fenced("PLAN.json", "json", &head(&plan, SECTION_CHARS_MAX));
    }
    let method = head(input.method, SECTION_CHARS_MAX);
    sections.fenced("METHOD.md", "text", &method);
    if let Some(diff) = input.diff {
        sections.fenced("Changes", "diff", &head(diff, SECTION_CHARS_MAX));
    }
    if let Some(message) = input.last_message {
        let message = head(message, SECTION_CHARS_MAX);
        sections.fenced("The Engineer's last message", "text", &message);
    }
    if let Some(fault) = input.fault {
        sections.fenced("What went wrong", "text", &head(fault, SECTION_CHARS_MAX));
        let stderr = tail(input.stderr_tail.unwrap_or(""), SECTION_CHARS_MAX);
        sections.fenced("End of stderr", "text", &stderr);
    }
    Prompt {
        system: format!(
            "{}\n\n{}",
            input.texts.analyst_spec.trim_end(),
            input.texts.search_spec.trim_end()
        ),
        user: sections.finish(),
    }
}

/// The analysis in `reply`.
///
/// # Errors
/// [`AnalysisError`]; the node's status never depends on it (O-REV-3).
pub fn parse_analysis(reply: &str, families: &[FamilyId]) -> Result<Analysis, AnalysisError> {
    const KEYS: [&str; 7] = [
        "summary",
        "what_changed",
        "why",
        "evidence",
        "next_ideas",
        "family_id",
        "refuted",
    ];
    let object = find_object(reply, &KEYS)?;
    let text = |key| Ok(object.text(key, TEXT_CHARS_MAX)?.unwrap_or_default());
    Ok(Analysis {
        summary: object.needed("summary", TEXT_CHARS_MAX)?,
        what_changed: text("what_changed")?,
        why: text("why")?,
        evidence: text("evidence")?,
        next_ideas: object.list("next_ideas", IDEAS_MAX, TEXT_CHARS_MAX)?,
        family_id: object.family(families)?,
        refuted: object.text("refuted", TEXT_CHARS_MAX)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyses_parse_and_fail_typed() {
        let families = ["linear".parse().expect("id")];
        let reply = r#"```json
            {"summary": "better", "why": "curvature", "next_ideas": ["cubes"], "family_id": "linear", "x": 1}
            ```"#;
        let analysis = parse_analysis(reply, &families).expect("parses");
        assert_eq!(analysis.next_ideas, ["cubes"]);
        let stored = serde_json::to_value(&analysis).expect("encodes");
        assert_eq!(stored["family_id"], "linear");
        assert!(stored.get("refuted").is_none());
        for (bad, why) in [
            ("nothing", "no JSON object"),
            (r#"{"why": "x"}"#, "`summary` is missing"),
            (r#"{"summary": "x", "family_id": "y"}"#, "known are"),
            (r#"{"summary": "x", "next_ideas": [[]]}"#, "list of strings"),
        ] {
            let error = parse_analysis(bad, &families).expect_err(bad);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
