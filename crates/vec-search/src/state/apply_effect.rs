//! What an effect's end does to its node: the next stage, or an ending with its owner.

use vec_types::{CandidateFault, ExecName, InfraFault, Plan, RulerId, ScoreReport};

use super::Run;
use crate::node::{Build, Ending, Engineered, GenFault, Kept, Node, Origin, Rerun, SEED_0, Stage};
use crate::{
    CommitInfo, Effect, ExecReport, ExecResult, MethodState, Outcome, PlanResult, ReviewVerdict,
    ScoreResult, SessionReport,
};

pub(super) fn ended(run: &mut Run, effect: &Effect, end: &Outcome) {
    match effect {
        Effect::Place { node, provisional } => {
            let digest = match end {
                Outcome::Placed { sha256 } => *sha256,
                _ => None,
            };
            if let Some(finale) = &mut run.finale {
                finale.placed.insert((*node, *provisional), digest);
            }
        }
        Effect::Review { node, .. } => {
            if let Some(node) = run.node_mut(*node) {
                end_review(node, end);
            }
        }
        Effect::Execute { node, exec } | Effect::Score { node, exec } if *exec != SEED_0 => {
            let objective: Vec<RulerId> = run.policy.objective.keys().cloned().collect();
            if let Some(node) = run.node_mut(*node) {
                end_rerun(node, *exec, end, &objective);
            }
        }
        _ => end_stage(run, effect, end),
    }
}

fn end_review(node: &mut Node, end: &Outcome) {
    node.review.attempts += 1;
    if let Outcome::Reviewed { verdict } = end {
        node.review.verdict = match verdict {
            ReviewVerdict::Error => None,
            verdict => Some(*verdict),
        };
    }
}

fn end_rerun(node: &mut Node, exec: ExecName, end: &Outcome, objective: &[RulerId]) {
    let Some(rerun) = node.reruns.remove(&exec) else {
        return;
    };
    let next = match (rerun, end) {
        (_, Outcome::Interrupted { fault, detail }) => Rerun::Lost {
            fault: *fault,
            detail: detail.clone(),
        },
        (Rerun::Execute, Outcome::Executed { report }) => match &report.result {
            ExecResult::Fault { fault, detail } => Rerun::Faulty {
                fault: *fault,
                detail: detail.clone(),
            },
            ExecResult::Done { .. } if exec == ExecName::Final => Rerun::Ran {
                report: report.clone(),
            },
            ExecResult::Done { .. } => Rerun::Score {
                report: report.clone(),
            },
        },
        (Rerun::Score { report }, Outcome::Scored { result }) => match result {
            ScoreResult::InvalidFormat { detail } => Rerun::Faulty {
                fault: CandidateFault::InvalidFormat,
                detail: detail.clone(),
            },
            ScoreResult::Done { report: score } => match missing_component(score, objective) {
                Some(detail) => Rerun::Lost {
                    fault: InfraFault::ScoreError,
                    detail,
                },
                None => Rerun::Scored {
                    report,
                    score: score.clone(),
                },
            },
        },
        (rerun, _) => rerun,
    };
    node.reruns.insert(exec, next);
}

/// A node needs every objective component (O-RUL-4).
fn missing_component(score: &ScoreReport, objective: &[RulerId]) -> Option<String> {
    let ruler = objective
        .iter()
        .find(|ruler| !score.components.contains_key(*ruler))?;
    Some(format!("the scorer gave no component {ruler}"))
}

fn end_stage(run: &mut Run, effect: &Effect, end: &Outcome) {
    let objective: Vec<RulerId> = run.policy.objective.keys().cloned().collect();
    let parent_key = run
        .node(effect.node())
        .and_then(|node| run.node(node.parent?)?.commit())
        .map(|commit| commit.runtime_key.clone());
    let Some(node) = run.node_mut(effect.node()) else {
        return;
    };
    let stage = std::mem::replace(&mut node.stage, Stage::Plan);
    node.stage = match (stage, end) {
        (Stage::Analyze { ending }, end) => {
            if let Outcome::Analyzed {
                family: Some(family),
                ..
            } = end
            {
                node.family.get_or_insert_with(|| family.clone());
            }
            Stage::Ending { ending }
        }
        (stage, Outcome::Interrupted { fault, detail }) => shelved(stage, *fault, detail),
        (Stage::Import, Outcome::Imported { commit }) => Stage::Execute {
            build: Build {
                origin: Origin::SeedProgram,
                commit: commit.clone(),
            },
        },
        (Stage::Plan, Outcome::Planned { result }) => {
            if let PlanResult::Valid { plan, .. } = result {
                let drawn = node.family.take();
                node.family = plan.family_id.clone().or(drawn);
            }
            planned(result)
        }
        (Stage::Comply { plan }, Outcome::Complied { emptied, .. }) => complied(plan, *emptied),
        (Stage::Engineer { plan }, Outcome::Engineered { session }) => {
            let same_key = |commit: &CommitInfo| Some(&commit.runtime_key) == parent_key.as_ref();
            engineered(plan, session, same_key)
        }
        (Stage::Execute { build }, Outcome::Executed { report }) => executed(build, report),
        (Stage::Score { build, report }, Outcome::Scored { result }) => {
            let is_seed = node.seed.is_some();
            scored(build, report, result, &objective).after(is_seed)
        }
        (stage, _) => stage,
    };
}

fn shelved(stage: Stage, fault: InfraFault, detail: &str) -> Stage {
    Stage::Ending {
        ending: Ending::Shelved {
            fault,
            detail: detail.to_owned(),
            kept: stage.kept(),
        },
    }
}

fn no_program(fault: GenFault, detail: &str, kept: Kept) -> Stage {
    Stage::Ending {
        ending: Ending::NoProgram {
            fault,
            detail: detail.to_owned(),
            kept,
        },
    }
}

fn planned(result: &PlanResult) -> Stage {
    match result {
        PlanResult::Valid { plan, .. } => Stage::Comply { plan: plan.clone() },
        PlanResult::Invalid { error } => no_program(
            GenFault::Failed,
            &format!("no valid plan: {error}"),
            Kept::default(),
        ),
    }
}

fn complied(plan: Plan, emptied: bool) -> Stage {
    if !emptied {
        return Stage::Engineer { plan };
    }
    let kept = Kept {
        plan: Some(plan),
        ..Kept::default()
    };
    no_program(
        GenFault::Failed,
        "compliance removed the whole approach",
        kept,
    )
}

/// Commit checks (b.2 item 4 a, MTH-02, MTH-04, MTH-05).
fn engineered(
    plan: Plan,
    session: &SessionReport,
    is_same_as_parent: impl Fn(&CommitInfo) -> bool,
) -> Stage {
    let kept = |plan, commit| Kept {
        plan: Some(plan),
        session: Some(session.clone()),
        commit,
    };
    let Some(commit) = session.commit.clone() else {
        let detail = if session.method == MethodState::Missing {
            "METHOD.md is missing or empty"
        } else {
            "there is no run.py"
        };
        return no_program(GenFault::Failed, detail, kept(plan, None));
    };
    if is_same_as_parent(&commit) {
        return no_program(
            GenFault::SameAsParent,
            "the program is the parent's: nothing that runs was changed",
            kept(plan, Some(commit)),
        );
    }
    Stage::Execute {
        build: Build {
            origin: Origin::Engineered(Box::new(Engineered {
                plan,
                session: session.clone(),
            })),
            commit,
        },
    }
}

fn executed(build: Build, report: &ExecReport) -> Stage {
    match &report.result {
        ExecResult::Done { .. } => Stage::Score {
            build,
            report: report.clone(),
        },
        ExecResult::Fault { fault, detail } => Ending::Faulty {
            fault: *fault,
            detail: detail.clone(),
            build: build.clone(),
            exec: report.clone(),
        }
        .after(matches!(build.origin, Origin::SeedProgram)),
    }
}

fn scored(build: Build, exec: ExecReport, result: &ScoreResult, objective: &[RulerId]) -> Ending {
    match result {
        ScoreResult::InvalidFormat { detail } => Ending::Faulty {
            fault: CandidateFault::InvalidFormat,
            detail: detail.clone(),
            build,
            exec,
        },
        ScoreResult::Done { report } => match missing_component(report, objective) {
            Some(detail) => Ending::Shelved {
                fault: InfraFault::ScoreError,
                detail,
                kept: build.kept(),
            },
            None => Ending::Scored {
                build,
                exec,
                score: report.clone(),
            },
        },
    }
}

impl Ending {
    /// Executed nodes are analysed, seeds (SED-06) and shelved nodes are not.
    fn after(self, is_seed: bool) -> Stage {
        match self {
            ending @ (Self::Scored { .. } | Self::Faulty { .. }) if !is_seed => {
                Stage::Analyze { ending }
            }
            ending => Stage::Ending { ending },
        }
    }
}
