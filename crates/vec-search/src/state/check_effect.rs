//! Which effects may start and end: a start needs a state that calls for it, an end needs its
//! start, an outcome must fit its effect and itself.

use std::collections::BTreeSet;

use vec_types::{Digest, ExecName, Table, ViewId};

use super::Run;
use crate::checks;
use crate::{
    CorruptRun, Effect, ExecResult, MethodState, Outcome, REVIEW_ATTEMPTS_MAX, SessionReport,
};

pub(super) fn started(run: &Run, effect: &Effect) -> Result<(), CorruptRun> {
    let node = effect.node();
    if run.node(node).is_none() {
        let kind = format!("{}_start", effect.kind());
        return Err(CorruptRun::UnknownNode { kind, node });
    }
    if !run.is_in_work(effect) && is_due(run, effect) {
        return Ok(());
    }
    Err(CorruptRun::EffectNotDue {
        effect: effect.id(),
    })
}

fn is_due(run: &Run, effect: &Effect) -> bool {
    let Some(node) = run.node(effect.node()) else {
        return false;
    };
    if node.due_effect().as_ref() == Some(effect) {
        return true;
    }
    match effect {
        Effect::Execute { exec, .. } | Effect::Score { exec, .. } => {
            if matches!(effect, Effect::Execute { .. }) && checks::is_due(run, node, *exec) {
                return true;
            }
            let rerun = node.reruns.get(exec);
            rerun
                .and_then(|rerun| rerun.effect(node.id, *exec))
                .as_ref()
                == Some(effect)
        }
        Effect::Review { attempt, .. } => {
            node.is_scored()
                && node.review.verdict.is_none()
                && *attempt == node.review.attempts
                && *attempt < REVIEW_ATTEMPTS_MAX
        }
        Effect::Place { provisional, .. } => run.finale.as_ref().is_some_and(|finale| {
            let guarded = finale.guard.as_ref().map(|guard| guard.candidate);
            let is_side = node.id == finale.baseline || guarded == Some(node.id);
            is_side && !finale.placed.contains_key(&(node.id, *provisional))
        }),
        _ => false,
    }
}

pub(super) fn ended(run: &Run, effect: &Effect, end: &Outcome) -> Result<(), CorruptRun> {
    if run.in_work.get(&effect.id()) != Some(effect) {
        return Err(CorruptRun::EffectNotInWork {
            effect: effect.id(),
        });
    }
    let refused = |why: &str| CorruptRun::Outcome {
        effect: effect.id(),
        why: why.to_owned(),
    };
    match (effect, end) {
        (_, Outcome::Interrupted { .. })
        | (Effect::ImportSeed { .. }, Outcome::Imported { .. })
        | (Effect::Plan { .. }, Outcome::Planned { .. })
        | (Effect::Comply { .. }, Outcome::Complied { .. })
        | (Effect::Score { .. }, Outcome::Scored { .. })
        | (Effect::Analyze { .. }, Outcome::Analyzed { .. })
        | (Effect::Review { .. }, Outcome::Reviewed { .. })
        | (Effect::Place { .. }, Outcome::Placed { .. }) => Ok(()),
        (Effect::Engineer { .. }, Outcome::Engineered { session }) => {
            session_problem(session).map_or(Ok(()), |why| Err(refused(why)))
        }
        (Effect::Execute { exec, .. }, Outcome::Executed { report }) => match &report.result {
            ExecResult::Done { digests } => match missing_view(run, *exec, digests) {
                Some(view) => Err(refused(&format!("no digest of view {view}"))),
                None => Ok(()),
            },
            ExecResult::Fault { .. } => Ok(()),
        },
        _ => Err(CorruptRun::OutcomeKind {
            effect: effect.id(),
        }),
    }
}

fn session_problem(session: &SessionReport) -> Option<&'static str> {
    let usable = session.has_run_py && session.method != MethodState::Missing;
    match (usable, session.commit.is_some()) {
        (true, false) => Some("METHOD.md and run.py are there, but nothing is committed"),
        (false, true) => Some("a commit without METHOD.md or run.py (MTH-02, MTH-05)"),
        _ => None,
    }
}

/// An execution that is done has a prediction on every view that it is for.
fn missing_view(run: &Run, exec: ExecName, digests: &Table<ViewId, Digest>) -> Option<ViewId> {
    let views: BTreeSet<&ViewId> = match exec {
        ExecName::Final => BTreeSet::from([&run.policy.final_view]),
        ExecName::Seed(_)
        | ExecName::Again { .. }
        | ExecName::Fresh(_)
        | ExecName::Ablate
        | ExecName::Repro => run.policy.objective_views(),
        ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. } => {
            run.policy.view_check.views.iter().collect()
        }
    };
    views
        .into_iter()
        .find(|view| !digests.contains_key(*view))
        .cloned()
}
