//! Relative paths of a run directory, for `NewFile` and the ledger.

use super::{ARCHIVE, LEDGER};
use vec_search::{Effect, Event};
use vec_types::{Digest, ExecName, NodeId, PathError, RelPath, TreeId};

// Only for texts made of constants and checked ids, which are always relative paths.
fn fixed(text: &str) -> RelPath {
    text.parse()
        .unwrap_or_else(|_| unreachable!("{text} is a relative path"))
}

/// `config.lock.json`.
#[must_use]
pub fn config_lock() -> RelPath {
    fixed("config.lock.json")
}

/// `config_source.yaml`.
#[must_use]
pub fn config_source() -> RelPath {
    fixed("config_source.yaml")
}

/// `run_meta.json`.
#[must_use]
pub fn run_meta() -> RelPath {
    fixed("run_meta.json")
}

/// `stop_manifest.json`.
#[must_use]
pub fn stop_manifest() -> RelPath {
    fixed("stop_manifest.json")
}

/// `final/SELECTION.md`.
#[must_use]
pub fn selection() -> RelPath {
    fixed("final/SELECTION.md")
}

/// `archive.sqlite`.
#[must_use]
pub fn archive() -> RelPath {
    fixed(ARCHIVE)
}

/// `ledger.jsonl`.
#[must_use]
pub fn ledger() -> RelPath {
    fixed(LEDGER)
}

/// `nodes/<id>`.
#[must_use]
pub fn node_dir(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}"))
}

/// `nodes/<id>/PLAN.json`.
#[must_use]
pub fn plan(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/PLAN.json"))
}

/// `nodes/<id>/ANALYSIS.json`.
#[must_use]
pub fn analysis(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/ANALYSIS.json"))
}

/// `nodes/<id>/METHOD.md`.
#[must_use]
pub fn method(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/METHOD.md"))
}

/// `nodes/<id>/<exec>`.
#[must_use]
pub fn exec_dir(node: NodeId, exec: ExecName) -> RelPath {
    fixed(&format!("nodes/{node}/{exec}"))
}

/// `artifacts/<sha256>`.
#[must_use]
pub fn artifact(digest: Digest) -> RelPath {
    fixed(&format!("artifacts/{digest}"))
}

/// Directory of the indexes of weights that were trained per view.
const PER_VIEW: &str = "artifacts/per_view/";

/// `artifacts/per_view/<tree>/<key>.json` (PVW-02).
#[must_use]
pub fn weights_index(tree: &TreeId, key: Digest) -> RelPath {
    fixed(&format!("{PER_VIEW}{tree}/{key}.json"))
}

/// Is it the path of such an index?
#[must_use]
pub fn is_weights_index(path: &RelPath) -> bool {
    path.as_str().starts_with(PER_VIEW)
}

/// `nodes/<id>/ABLATION.json` (ABL-02).
#[must_use]
pub fn ablation(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/ABLATION.json"))
}

/// `nodes/<id>/VIEWCHECK.json` (VCK).
#[must_use]
pub fn view_check(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/VIEWCHECK.json"))
}

/// `nodes/<id>/REPRO.json` (PVW-11).
#[must_use]
pub fn repro(node: NodeId) -> RelPath {
    fixed(&format!("nodes/{node}/REPRO.json"))
}

/// The file that is registered before this event is stored, where it has one that can be named:
/// the plan of a planned node, the report of an execution. It may be absent (a plan that was not
/// valid), but never there without a ledger line.
#[must_use]
pub fn evidence_of(event: &Event) -> Option<RelPath> {
    match event {
        Event::EffectEnded { effect, .. } => match effect {
            Effect::Plan { node } => Some(plan(*node)),
            Effect::Execute { node, exec } => {
                Some(fixed(&format!("nodes/{node}/{exec}/report.json")))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `final/<name>`.
///
/// # Errors
/// When `name` is not a relative path.
pub fn final_file(name: &str) -> Result<RelPath, PathError> {
    format!("final/{name}").parse()
}

/// `nodes/<id>/trajectory/<role>/<attempt>` (REC-01).
///
/// # Errors
/// When `role` is not a relative path.
pub fn trajectory(node: NodeId, role: &str, attempt: u32) -> Result<RelPath, PathError> {
    format!("nodes/{node}/trajectory/{role}/{attempt}").parse()
}

/// `<dir>/<name>`.
///
/// # Errors
/// When the result is not a relative path.
pub fn join(dir: &RelPath, name: &str) -> Result<RelPath, PathError> {
    format!("{dir}/{name}").parse()
}
