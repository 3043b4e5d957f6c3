//! What an Engineer session is given in `/brief` (ENG-08). Texts that enter the sandbox hold no
//! score of half B (architecture §7): the tables come without their score column, and the
//! Analyst's words, which rest on those scores, stay outside.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vec_types::{BoardId, CanonicalError, FamilyId, NodeId, Operator, Plan, RunId, pretty_json};

use crate::section::{SECTION_CHARS_MAX, head, tail};
use crate::{BoardBrief, NodeSummary, ParentInput, RoleTexts, Scores, experiment_table};

/// Where the scripted Engineer finds its playbook; absent with a real agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybookBrief {
    /// Path inside the sandbox.
    pub file: String,
    /// Search seed of the run.
    pub search_seed: u32,
    /// Parameter settings tried per session.
    pub trials: u32,
}

/// What a brief is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct BriefInput<'a> {
    /// Prompt texts of the run.
    pub texts: &'a RoleTexts,
    /// The run.
    pub run: &'a RunId,
    /// The board.
    pub board: &'a BoardBrief,
    /// The node.
    pub node: NodeId,
    /// Its operator.
    pub operator: Operator,
    /// Its plan after Compliance.
    pub plan: &'a Plan,
    /// Its parent.
    pub parent: Option<&'a ParentInput>,
    /// The tree so far.
    pub tree: &'a [NodeSummary],
    /// Python inside the sandbox, e.g. `/usr/bin/python3`.
    pub python: &'a str,
    /// Half-A queries of this session (TOO-01).
    pub score_quota: u32,
    /// For the scripted Engineer.
    pub playbook: Option<PlaybookBrief>,
}

/// A brief that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("encode {file} of the brief of node {node}")]
pub struct BriefError {
    file: &'static str,
    node: NodeId,
    #[source]
    source: CanonicalError,
}

/// Files of `/brief`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BriefFiles {
    /// File name → content.
    pub files: BTreeMap<&'static str, Vec<u8>>,
}

impl BriefFiles {
    /// The machine-readable brief.
    pub const BRIEF: &'static str = "BRIEF.json";
    /// The plan.
    pub const PLAN: &'static str = "PLAN.json";
    /// The candidate contract.
    pub const CONTRACT: &'static str = "CONTRACT.md";
    /// The rules of the search.
    pub const SEARCH: &'static str = "SEARCH.md";
}

/// The files of `/brief`.
///
/// # Errors
/// [`BriefError`] when a manifest holds a number that has no canonical form.
pub fn engineer_brief(input: &BriefInput<'_>) -> Result<BriefFiles, BriefError> {
    let encode = |file, value: &Value| {
        pretty_json(value).map_err(|source| BriefError {
            file,
            node: input.node,
            source,
        })
    };
    let plan = json!(input.plan);
    let files = BTreeMap::from([
        (BriefFiles::BRIEF, encode(BriefFiles::BRIEF, &brief(input))?),
        (BriefFiles::PLAN, encode(BriefFiles::PLAN, &plan)?),
        (
            BriefFiles::CONTRACT,
            input.texts.contract.clone().into_bytes(),
        ),
        (
            BriefFiles::SEARCH,
            input.texts.search_spec.clone().into_bytes(),
        ),
    ]);
    Ok(BriefFiles { files })
}

fn brief(input: &BriefInput<'_>) -> Value {
    let board = input.board;
    let board_id: &BoardId = &board.board;
    let families: Vec<&FamilyId> = board.families.iter().map(|family| &family.id).collect();
    let views: Vec<Value> = board
        .views
        .iter()
        .map(|view| {
            let rulers: Vec<Value> = board
                .rulers
                .iter()
                .filter(|ruler| ruler.view == view.view)
                .map(|ruler| {
                    json!({"ruler": ruler.ruler, "weight": ruler.weight, "metric": ruler.metric})
                })
                .collect();
            json!({
                "view": view.view,
                "dir": format!("/views/{}", view.view),
                "rulers": rulers,
                "manifest": view.manifest,
            })
        })
        .collect();
    json!({
        "schema": 1,
        "run": input.run,
        "node": input.node,
        "operator": input.operator,
        "board": board_id,
        "title": board.title,
        "task": board.task,
        "families": families,
        "views": views,
        "python": input.python,
        "tools": {"score": "/opt/vec/bin/vec-score", "check": "/opt/vec/bin/vec-check"},
        "score_quota": input.score_quota,
        "parent": input.parent.map(parent),
        "experiments": experiment_table(input.tree, Scores::Hidden),
        "playbook": input.playbook.as_ref().map(|playbook| json!({
            "file": playbook.file,
            "search_seed": playbook.search_seed,
            "trials": playbook.trials,
        })),
    })
}

fn parent(parent: &ParentInput) -> Value {
    json!({
        "node": parent.node.node,
        "operator": parent.node.operator,
        "status": parent.node.status,
        "family": parent.node.family,
        "name": parent.node.name,
        "method": head(&parent.program.method, SECTION_CHARS_MAX),
        "wall_ms": parent.wall_ms,
        "max_rss_kib": parent.max_rss_kib,
        "error_tail": parent.error_tail.as_deref().map(|text| tail(text, SECTION_CHARS_MAX)),
        "refuted": parent.refuted,
    })
}
