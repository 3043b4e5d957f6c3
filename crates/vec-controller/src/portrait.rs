//! Nodes as the roles see them: summaries, the parent with its program, texts of committed files.

use serde_json::Value;
use vec_roles::{NodeSummary, ParentInput, ProgramText};
use vec_search::{MethodState, NodeView, RunState};
use vec_types::{ExecName, NodeId, Plan, ProgramSeed, ScoreReport, TreeId};

use crate::context::Context;
use crate::effects::EffectError;
use crate::spool::blocking;

/// Longest text of one committed file that is shown to a role.
const FILE_CHARS_MAX: usize = 20_000;
/// Nodes whose analysis summary is shown beside siblings (RES-04).
const TOP_SHOWN: usize = 5;

const SEED_0: ExecName = ExecName::Seed(ProgramSeed(0));

/// Every node as one line of the experiment table; analysis summaries of the parent's children
/// and of the best nodes only.
pub(crate) fn tree(
    state: &RunState,
    context: &Context,
    parent: Option<NodeId>,
) -> Vec<NodeSummary> {
    let best: Vec<NodeId> = state.ranked().into_iter().take(TOP_SHOWN).collect();
    state
        .nodes()
        .map(|node| {
            let is_shown = best.contains(&node.id)
                || parent.is_some_and(|parent| node.id == parent || node.parent == Some(parent));
            let mut summary = summary(&node);
            if is_shown {
                summary.analysis = analysis(context, node.id)
                    .and_then(|analysis| Some(analysis.get("summary")?.as_str()?.to_owned()));
            }
            summary
        })
        .collect()
}

/// One node's line.
pub(crate) fn summary(node: &NodeView<'_>) -> NodeSummary {
    let method_first_line = node.session.and_then(|session| match &session.method {
        MethodState::Written { first_line } => Some(first_line.clone()),
        MethodState::Placeholder | MethodState::Missing => None,
    });
    let name = match (&node.plan, node.seed_program) {
        (Some(plan), _) => plan.name.to_owned(),
        (None, Some(program)) => program.to_string(),
        (None, None) => String::new(),
    };
    NodeSummary {
        node: node.id,
        operator: node.operator,
        parent: node.parent,
        family: node.family.cloned(),
        name,
        status: node.status,
        score: node.ranking_score,
        method_first_line,
        analysis: None,
    }
}

/// A node's ANALYSIS.json, if it has one.
pub(crate) fn analysis(context: &Context, node: NodeId) -> Option<Value> {
    let path = context.layout.at(&vec_store::rel::analysis(node));
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// A node's PLAN.json as Compliance left it.
pub(crate) fn plan(context: &Context, node: NodeId) -> Option<Plan> {
    let path = context.layout.at(&vec_store::rel::plan(node));
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// What a prepared parent still lacks: its program's text, which is read later.
#[derive(Debug)]
pub(crate) struct Parent {
    input: ParentInput,
    commit: Option<TreeId>,
}

/// The parent of a node as the Researcher and the Engineer see it.
pub(crate) fn parent(state: &RunState, context: &Context, node: NodeId) -> Option<Parent> {
    let view = state.node(state.node(node)?.parent?)?;
    let base = view.parent.and_then(|id| {
        let report = report(state, id)?;
        Some((id, report))
    });
    let exec = view.executions.get(&SEED_0).copied();
    let input = ParentInput {
        node: summary(&view),
        plan: plan(context, view.id),
        program: ProgramText::default(),
        report: report(state, view.id),
        base,
        analysis_json: analysis(context, view.id)
            .and_then(|analysis| serde_json::to_string_pretty(&analysis).ok()),
        error_tail: fault_detail(&view),
        wall_ms: exec.map(|exec| exec.wall_ms.values().sum()),
        max_rss_kib: exec.and_then(|exec| exec.max_rss_kib),
        refuted: state
            .refuted_under(view.id)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    Some(Parent {
        input,
        commit: view.commit.map(|info| info.commit.clone()),
    })
}

impl Parent {
    /// The parent's commit.
    pub(crate) const fn commit(&self) -> Option<&TreeId> {
        self.commit.as_ref()
    }

    /// Reads the program's text and returns the whole.
    pub(crate) async fn with_program(
        mut self,
        context: &Context,
    ) -> Result<ParentInput, EffectError> {
        if let Some(commit) = &self.commit {
            self.input.program = program(context, commit.clone()).await?;
        }
        Ok(self.input)
    }
}

/// A commit's file list, run.py and METHOD.md.
pub(crate) async fn program(context: &Context, commit: TreeId) -> Result<ProgramText, EffectError> {
    let programs = context.programs.clone();
    let files = blocking("read a program", move || programs.files(&commit))
        .await?
        .map_err(|error| EffectError::failed("read a program", &error))?;
    let text = |name: &str| {
        let file = files.iter().find(|(path, _)| path.as_str() == name);
        let bytes = file
            .map(|(_, file)| file.bytes.as_slice())
            .unwrap_or_default();
        String::from_utf8_lossy(bytes)
            .chars()
            .take(FILE_CHARS_MAX)
            .collect()
    };
    Ok(ProgramText {
        run_py: text("run.py"),
        method: text("METHOD.md"),
        files: files
            .iter()
            .map(|(path, file)| (path.to_string(), file.bytes.len() as u64))
            .collect(),
    })
}

/// The seed-0 report of a node.
pub(crate) fn report(state: &RunState, node: NodeId) -> Option<ScoreReport> {
    state
        .node(node)?
        .scores
        .get(&SEED_0)
        .map(|report| (*report).clone())
}

/// What went wrong with a node that failed.
pub(crate) fn fault_detail(view: &NodeView<'_>) -> Option<String> {
    let failed = view.status.is_candidate_fault();
    failed.then(|| view.detail.to_owned())
}
