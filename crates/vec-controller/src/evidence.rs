//! Evidence files of decisions about checks: `nodes/<id>/ABLATION.json` (ABL-02) and
//! `VIEWCHECK.json` (VCK). Each is the decision as its event says it, with the executions that it
//! looked at, and is stored in the decision's own batch: a crash leaves both or a file that the
//! repeated decision writes again with the same bytes.
//!
//! A file never says anything else than its event.

use serde_json::{Map, Value, json};
use vec_search::{Event, RunState};
use vec_store::{NewFile, rel};
use vec_types::{ExecName, NodeId, ProgramSeed};

/// The files of a batch of decisions.
pub(crate) fn files(state: &RunState, events: &[Event]) -> Vec<NewFile> {
    let found = events.iter().filter_map(|event| {
        let node = event.node()?;
        let check = Check::of(event)?;
        let said = serde_json::to_value(event).ok()?;
        check.file(node, said, executions(state, node, check))
    });
    found.collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Ablation,
    View,
}

impl Check {
    const fn of(event: &Event) -> Option<Self> {
        match event {
            Event::AblationResult { .. } => Some(Self::Ablation),
            Event::ViewCheckResult { .. } => Some(Self::View),
            _ => None,
        }
    }

    const fn concerns(self, exec: ExecName) -> bool {
        match (self, exec) {
            (_, ExecName::Seed(ProgramSeed(0)) | ExecName::Again { .. })
            | (Self::Ablation, ExecName::Ablate) => true,
            (Self::View, exec) => matches!(
                exec,
                ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. }
            ),
            _ => false,
        }
    }

    fn file(self, node: NodeId, said: Value, executions: Value) -> Option<NewFile> {
        let mut document = Map::new();
        document.insert("schema".to_owned(), json!(1));
        match said {
            Value::Object(fields) => document.extend(fields),
            other => {
                document.insert("event".to_owned(), other);
            }
        }
        document.insert("executions".to_owned(), executions);
        let bytes = vec_types::pretty_json(&Value::Object(document)).ok()?;
        Some(match self {
            Self::Ablation => NewFile::create(rel::ablation(node), bytes),
            // A later check of the same node takes its place.
            Self::View => NewFile::replace(rel::view_check(node), bytes),
        })
    }
}

/// Results of the executions that the check looked at, by name.
fn executions(state: &RunState, node: NodeId, check: Check) -> Value {
    let Some(view) = state.node(node) else {
        return Value::Null;
    };
    let executions = view.executions.iter();
    let concerned = executions.filter(|(exec, _)| check.concerns(**exec));
    let results: Map<String, Value> = concerned
        .map(|(exec, report)| (exec.to_string(), json!(report.result)))
        .collect();
    Value::Object(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_concerns_its_own_executions() {
        assert!(Check::Ablation.concerns(ExecName::Ablate));
        assert!(!Check::Ablation.concerns(ExecName::Repro));
        assert!(Check::View.concerns(ExecName::ViewCheckConfirm { attempt: 1 }));
        assert!(!Check::View.concerns(ExecName::Ablate));
    }

    #[test]
    fn a_file_is_its_event_and_stands_at_the_nodes_place() {
        let said = json!({"node": 4, "mechanism_active": "unclear", "why": "budget_cut"});
        let file = Check::Ablation
            .file(NodeId(4), said, json!({}))
            .expect("a file");
        assert_eq!(file.path(), &rel::ablation(NodeId(4)));
        let said = json!({"node": 4, "verdict": "same", "trigger": "sample"});
        let file = Check::View
            .file(NodeId(4), said, json!({}))
            .expect("a file");
        assert_eq!(file.path(), &rel::view_check(NodeId(4)));
    }
}
