//! The Researcher's prompt (RES-04).

use std::fmt::Write as _;

use vec_types::{FamilyId, NodeId, Operator};

use crate::context::ContextParent;
use crate::section::{PROGRAM_CHARS_MAX, SECTION_CHARS_MAX, Sections, head, tail};
use crate::{
    BoardBrief, Context, DeltaInput, NodeSummary, ParentInput, Prompt, Role, RoleTexts, Scores,
    delta_table, experiment_table, refuted_list,
};

/// Best nodes whose analysis is shown.
const BEST_SHOWN: usize = 5;

/// What a Researcher is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ResearcherInput<'a> {
    /// Prompt texts of the run.
    pub texts: &'a RoleTexts,
    /// The board.
    pub board: &'a BoardBrief,
    /// The node that the plan is for.
    pub node: NodeId,
    /// Number of this call for this node, from 0.
    pub attempt: u32,
    /// The node's operator.
    pub operator: Operator,
    /// Family of a draft.
    pub family: Option<FamilyId>,
    /// Parent of an improve or debug node.
    pub parent: Option<&'a ParentInput>,
    /// The tree so far.
    pub tree: &'a [NodeSummary],
    /// Why the reply before was refused (RES-07).
    pub feedback: Option<String>,
}

/// The prompt of one Researcher call.
#[must_use]
pub fn researcher_prompt(input: &ResearcherInput<'_>) -> Prompt {
    let mut context = Context::new(Role::Researcher, input.node, input.attempt, input.board);
    context.operator = input.operator;
    context.parent = input.parent.map(ContextParent::of);
    context.family = input.family.clone();

    let mut sections = Sections::default();
    sections.block(Context::TAG, &context.to_text());
    sections.own("Task", &task(input));
    if let Some(feedback) = &input.feedback {
        let text = format!(
            "Your last reply was refused: {feedback}\nReply again with one complete JSON object."
        );
        sections.own("Correction", &head(&text, SECTION_CHARS_MAX));
    }
    board_sections(&mut sections, input.board);
    idea_sections(&mut sections, input);
    if let Some(parent) = input.parent {
        parent_sections(&mut sections, parent, input.operator);
        siblings(&mut sections, parent.node.node, input.tree);
    }
    sections.own(
        "Experiments so far",
        &experiment_table(input.tree, Scores::Shown),
    );
    best_nodes(&mut sections, input.tree);
    Prompt {
        system: format!(
            "{}\n\n{}",
            input.texts.researcher_spec.trim_end(),
            input.texts.search_spec.trim_end()
        ),
        user: sections.finish(),
    }
}

fn task(input: &ResearcherInput<'_>) -> String {
    match input.operator {
        Operator::Draft | Operator::Seed => format!(
            "Plan a first, minimal program of family `{}` (draft). There is no parent; `solution/` starts empty.",
            input.family.as_ref().map_or("other", FamilyId::as_str)
        ),
        Operator::Improve | Operator::Resume => {
            "Plan one structural change of the parent that should raise its score (improve)."
                .to_owned()
        }
        Operator::Tune => "Change only numeric constants of the parent (tune).".to_owned(),
        Operator::Debug => {
            "The parent failed when it was executed. Plan its repair and nothing else (debug)."
                .to_owned()
        }
    }
}

/// Board, rulers, views and the list of families, as every role sees them.
pub(crate) fn board_sections(sections: &mut Sections, board: &BoardBrief) {
    let mut text = format!(
        "{} — {}\nTask: {}\n\nRulers (weight, metric, view):\n",
        board.board, board.title, board.task
    );
    for ruler in &board.rulers {
        let _ = writeln!(
            text,
            "- {}: {} {} on view `{}`",
            ruler.ruler, ruler.weight, ruler.metric, ruler.view
        );
    }
    sections.own("Board", &text);
    for view in &board.views {
        let title = format!("Manifest of view {}", view.view);
        let manifest = view.manifest.to_string();
        sections.fenced(&title, "json", &head(&manifest, SECTION_CHARS_MAX));
    }
    let mut ideas = String::new();
    for family in &board.families {
        let category = family.category.as_ref();
        let category = category.map_or_else(String::new, |category| format!(" [{category}]"));
        let _ = writeln!(
            ideas,
            "- `{}`{category}: {} (drafts so far: {})",
            family.id, family.title, family.drafts
        );
    }
    sections.own("Method families", &ideas);
}

// What the idea library says: for every family, and for the one at hand.
fn idea_sections(sections: &mut Sections, input: &ResearcherInput<'_>) {
    let board = input.board;
    if !board.preamble.is_empty() {
        let text = head(&board.preamble, SECTION_CHARS_MAX);
        sections.own("What holds for every family", &text);
    }
    let of_parent = input.parent.and_then(|parent| parent.node.family.as_ref());
    let Some(id) = input.family.as_ref().or(of_parent) else {
        return;
    };
    if let Some(family) = board.families.iter().find(|family| family.id == *id) {
        let text = head(&family.text, SECTION_CHARS_MAX);
        sections.own(&format!("Family `{id}`"), &text);
    }
}

fn parent_sections(sections: &mut Sections, parent: &ParentInput, operator: Operator) {
    let mut text = format!(
        "Node {}, operator {}, status {}, name: {}\n",
        parent.node.node,
        parent.node.operator.as_str(),
        parent.node.status.as_str(),
        parent.node.name
    );
    if let Some(score) = parent.node.score {
        let _ = writeln!(text, "Ranking score: {score}");
    }
    if let Some(wall) = parent.wall_ms {
        let _ = writeln!(text, "Wall time: {wall} ms");
    }
    if let Some(rss) = parent.max_rss_kib {
        let _ = writeln!(text, "Peak memory: {} MiB", rss / 1024);
    }
    text.push_str("Files:\n");
    for (path, bytes) in parent.program.files.iter().take(100) {
        let _ = writeln!(text, "- {path} ({bytes} bytes)");
    }
    sections.own("Parent", &head(&text, SECTION_CHARS_MAX));
    let delta = DeltaInput {
        node: parent.node.node,
        report: parent.report.as_ref(),
        base: parent.base.as_ref().map(|(node, _)| *node),
        base_report: parent.base.as_ref().map(|(_, report)| report),
        mechanism_active: None,
    };
    sections.own("Parent against its own parent", &delta_table(&delta));
    let method = head(&parent.program.method, SECTION_CHARS_MAX);
    sections.fenced("Parent's METHOD.md", "text", &method);
    let program = head(&parent.program.run_py, PROGRAM_CHARS_MAX);
    sections.fenced("Parent's run.py", "python", &program);
    if let Some(analysis) = &parent.analysis_json {
        let analysis = head(analysis, SECTION_CHARS_MAX);
        sections.fenced("Parent's analysis", "json", &analysis);
    }
    if operator == Operator::Debug {
        let error = parent
            .error_tail
            .as_deref()
            .unwrap_or("(nothing on stderr)");
        sections.fenced(
            "End of the parent's stderr",
            "text",
            &tail(error, SECTION_CHARS_MAX),
        );
    }
    sections.own(
        "Directions already refuted under this parent",
        &refuted_list(&parent.refuted),
    );
}

fn siblings(sections: &mut Sections, parent: NodeId, tree: &[NodeSummary]) {
    let siblings = tree.iter().filter(|node| node.parent == Some(parent));
    let text = analyses(siblings);
    if !text.is_empty() {
        sections.own("What was learnt from this parent's other children", &text);
    }
}

fn best_nodes(sections: &mut Sections, tree: &[NodeSummary]) {
    let mut best: Vec<&NodeSummary> = tree.iter().filter(|node| node.score.is_some()).collect();
    best.sort_by_key(|node| (std::cmp::Reverse(node.score), node.node));
    let text = analyses(best.into_iter().take(BEST_SHOWN));
    if !text.is_empty() {
        sections.own("What was learnt from the best nodes", &text);
    }
}

fn analyses<'a>(nodes: impl Iterator<Item = &'a NodeSummary>) -> String {
    let mut text = String::new();
    for node in nodes {
        if let Some(analysis) = &node.analysis {
            let line = crate::section::cell(analysis, 400);
            let _ = writeln!(
                text,
                "- node {} ({}): {line}",
                node.node,
                node.status.as_str()
            );
        }
    }
    head(&text, SECTION_CHARS_MAX)
}
