//! What an effect's end does to its node: the next stage, or an ending with its owner.

use std::collections::BTreeMap;

use vec_types::{
    CandidateFault, ExecName, InfraFault, NodeId, Phase, RulerId, ScoreReport, UnixMs,
};

use super::Run;
use super::names::Names;
use crate::inputs::digest_of;
use crate::node::{
    Build, Ended, Ending, Engineered, Faulty, GenFault, Kept, Node, PackedPlan, RerunStage, SEED_0,
    Scored, Stage,
};
use crate::retry::Retry;
use crate::{
    CommitInfo, Effect, ExecReport, ExecResult, MethodState, Outcome, PlanResult, ReviewVerdict,
    ScoreResult, SessionReport, ViewTrigger,
};

type Objective = BTreeMap<RulerId, f64>;

/// EPO-02: what is executed sees the data of the epoch in which it starts.
pub(super) fn started(run: &mut Run, at: UnixMs, effect: &Effect) {
    let epoch = run.epoch;
    match effect {
        Effect::Execute { node: id, exec } => {
            if let ExecName::ViewCheck { .. } = exec {
                begin_check(run, *id);
            }
            let Some(node) = run.node_mut(*id) else {
                return;
            };
            if matches!(
                exec,
                ExecName::Ablate | ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. }
            ) {
                node.reruns.add(*exec);
            }
            if *exec == SEED_0 {
                node.epoch = epoch;
                node.is_executed = true;
            } else if let Some(rerun) = node.reruns.get_mut(exec) {
                rerun.epoch = Some(epoch);
            }
        }
        Effect::Review { node, .. } => {
            run.review_since.insert(*node, at);
        }
        _ => {}
    }
}

/// Who asked for a view check shows in where its node stands.
fn begin_check(run: &mut Run, id: NodeId) {
    run.checking.insert(id);
    let is_final = run.phase == Phase::Final;
    if let Some(node) = run.node_mut(id) {
        node.view.trigger = match node.settled() {
            None => ViewTrigger::Sample,
            Some(_) if is_final => ViewTrigger::Final,
            Some(_) => ViewTrigger::Promotion,
        };
    }
}

/// What the state will not hold: it enters the digests by way of a chain, so that no stored result
/// can change unnoticed. Times and commit ids stay out (see [`crate::inputs`]).
fn remember(run: &mut Run, effect: &Effect, end: &Outcome) {
    let objective = &run.policy.objective;
    let unkept = match end {
        Outcome::Imported { .. } | Outcome::Engineered { .. } => return,
        Outcome::Planned { result } => match result {
            PlanResult::Valid { attempts, .. } => digest_of(attempts),
            PlanResult::Invalid { error } => digest_of(error),
        },
        // A further step may fail and drop the report.
        Outcome::Executed { report } => digest_of(&report.result),
        Outcome::Scored {
            result: ScoreResult::Done { report },
        } if missing_component(report, objective).is_none() => return,
        Outcome::Scored { .. }
        | Outcome::Complied { .. }
        | Outcome::Analyzed { .. }
        | Outcome::Reviewed { .. }
        | Outcome::Placed { .. }
        | Outcome::Interrupted { .. } => digest_of(end),
    };
    run.unkept = digest_of(&(run.unkept, effect.id().as_str(), unkept));
}

pub(super) fn ended(run: &mut Run, at: UnixMs, effect: &Effect, end: &Outcome) {
    remember(run, effect, end);
    if let Outcome::Executed { report } = end
        && !matches!(
            effect,
            Effect::Execute {
                exec: ExecName::Ablate,
                ..
            }
        )
        && let Some(node) = run.node_mut(effect.node())
    {
        node.measure(report);
    }
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
            if let Some(since) = run.review_since.remove(node) {
                let ms = at.since_ms(since).max(0);
                run.longest_review_ms = Some(run.longest_review_ms.unwrap_or(0).max(ms));
            }
            let Some(reviewed) = run.node_mut(*node) else {
                return;
            };
            end_review(reviewed, end);
            let review = reviewed.review;
            if review.verdict.is_none() {
                run.pause(*node, Retry::Review, at, review.attempts);
            }
        }
        Effect::Execute { node, exec } | Effect::Score { node, exec } if *exec != SEED_0 => {
            let Run {
                nodes,
                index,
                names,
                policy,
                ..
            } = run;
            let position = usize::try_from(node.0).ok();
            if let Some(node) = position.and_then(|position| nodes.get_mut(position)) {
                end_rerun(node, *exec, end, &policy.objective, names);
                if exec.is_ranked() && matches!(end, Outcome::Scored { .. }) {
                    index.measured(node);
                }
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

fn end_rerun(
    node: &mut Node,
    exec: ExecName,
    end: &Outcome,
    objective: &Objective,
    names: &mut Names,
) {
    let Some(rerun) = node.reruns.get_mut(&exec) else {
        return;
    };
    let stage = std::mem::replace(&mut rerun.stage, RerunStage::Execute);
    rerun.stage = match (stage, end) {
        (_, Outcome::Interrupted { fault, detail }) => RerunStage::Lost {
            fault: *fault,
            detail: detail.clone(),
        },
        (RerunStage::Execute, Outcome::Executed { report }) => {
            rerun_executed(exec, names.exec(report))
        }
        (RerunStage::Score { report }, Outcome::Scored { result }) => {
            rerun_scored(report, result, objective, names)
        }
        (stage, _) => stage,
    };
}

fn rerun_executed(exec: ExecName, report: ExecReport) -> RerunStage {
    match report.result {
        ExecResult::Fault { fault, detail } => RerunStage::Faulty { fault, detail },
        ExecResult::Done { .. } if !exec.is_scored() => RerunStage::Ran { report },
        ExecResult::Done { .. } => RerunStage::Score { report },
    }
}

fn rerun_scored(
    report: ExecReport,
    result: &ScoreResult,
    objective: &Objective,
    names: &mut Names,
) -> RerunStage {
    match result {
        ScoreResult::InvalidFormat { detail } => RerunStage::Faulty {
            fault: CandidateFault::InvalidFormat,
            detail: detail.clone(),
        },
        ScoreResult::Done { report: score } => match missing_component(score, objective) {
            Some(detail) => RerunStage::Lost {
                fault: InfraFault::ScoreError,
                detail,
            },
            None => RerunStage::Scored {
                report,
                score: names.score(score),
            },
        },
    }
}

/// A node needs every objective component (O-RUL-4).
pub(super) fn missing_component(score: &ScoreReport, objective: &Objective) -> Option<String> {
    let ruler = objective
        .keys()
        .find(|ruler| !score.components.contains_key(*ruler))?;
    Some(format!("the scorer gave no component {ruler}"))
}

fn end_stage(run: &mut Run, effect: &Effect, end: &Outcome) {
    let objective = run.policy.objective.clone();
    let parent_key = run
        .node(effect.node())
        .and_then(|node| run.node(node.parent?)?.commit())
        .map(|commit| commit.runtime_key.clone());
    let Run { nodes, names, .. } = run;
    let position = usize::try_from(effect.node().0).ok();
    let Some(node) = position.and_then(|position| nodes.get_mut(position)) else {
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
                node.family = node.family.take().or_else(|| names.family(Some(family)));
            }
            Stage::Ending { ending }
        }
        (stage, Outcome::Interrupted { fault, detail }) => shelved(stage, *fault, detail),
        (Stage::Import, Outcome::Imported { commit }) => Stage::Execute {
            build: Build::SeedProgram(Box::new(commit.clone())),
        },
        (Stage::Plan, Outcome::Planned { result }) => {
            if let PlanResult::Valid { plan, .. } = result {
                let drawn = node.family.take();
                node.family = names.family(plan.family_id.as_ref()).or(drawn);
            }
            planned(result, names)
        }
        (Stage::Comply { plan }, Outcome::Complied { emptied, .. }) => complied(plan, *emptied),
        (Stage::Engineer { plan }, Outcome::Engineered { session }) => {
            let same_key =
                |commit: &CommitInfo| Some(&commit.runtime_key.clone()) == parent_key.as_ref();
            engineered(plan, session, same_key)
        }
        (Stage::Execute { build }, Outcome::Executed { report }) => {
            executed(build, names.exec(report))
        }
        (Stage::Score { build, report }, Outcome::Scored { result }) => {
            let is_analysed = build.is_analysed();
            scored(build, *report, result, &objective, names).after(is_analysed)
        }
        (stage, _) => stage,
    };
}

fn shelved(stage: Stage, fault: InfraFault, detail: &str) -> Stage {
    Stage::Ending {
        ending: Ending::Shelved {
            fault,
            ended: Box::new(Ended {
                detail: detail.to_owned(),
                kept: stage.kept(),
            }),
        },
    }
}

fn no_program(fault: GenFault, detail: &str, kept: Kept) -> Stage {
    Stage::Ending {
        ending: Ending::NoProgram {
            fault,
            ended: Box::new(Ended {
                detail: detail.to_owned(),
                kept,
            }),
        },
    }
}

fn planned(result: &PlanResult, names: &mut Names) -> Stage {
    match result {
        PlanResult::Valid { plan, .. } => Stage::Comply {
            plan: names.plan(plan),
        },
        PlanResult::Invalid { error } => no_program(
            GenFault::Failed,
            &format!("no valid plan: {error}"),
            Kept::Nothing,
        ),
    }
}

fn complied(plan: PackedPlan, emptied: bool) -> Stage {
    if !emptied {
        return Stage::Engineer { plan };
    }
    no_program(
        GenFault::Failed,
        "compliance removed the whole approach",
        Kept::Plan(plan),
    )
}

/// Commit checks (b.2 item 4 a, MTH-02, MTH-04, MTH-05).
fn engineered(
    plan: PackedPlan,
    session: &SessionReport,
    is_same_as_parent: impl Fn(&CommitInfo) -> bool,
) -> Stage {
    let made = Box::new(Engineered {
        plan,
        session: session.clone(),
    });
    match &session.commit {
        None => {
            let detail = if session.method == MethodState::Missing {
                "METHOD.md is missing or empty"
            } else {
                "there is no run.py"
            };
            no_program(GenFault::Failed, detail, Kept::Session(made))
        }
        Some(commit) if is_same_as_parent(commit) => no_program(
            GenFault::SameAsParent,
            "the program is the parent's: nothing that runs was changed",
            Kept::Session(made),
        ),
        Some(_) => Stage::Execute {
            build: Build::Engineered(made),
        },
    }
}

fn executed(build: Build, report: ExecReport) -> Stage {
    let is_analysed = build.is_analysed();
    match &report.result {
        ExecResult::Done { .. } => Stage::Score {
            build,
            report: Box::new(report),
        },
        ExecResult::Fault { fault, detail } => {
            let (fault, detail) = (*fault, detail.clone());
            faulty(fault, detail, build, report).after(is_analysed)
        }
    }
}

fn faulty(fault: CandidateFault, detail: String, build: Build, exec: ExecReport) -> Ending {
    Ending::Faulty {
        fault,
        faulty: Box::new(Faulty {
            detail,
            build,
            exec,
        }),
    }
}

fn scored(
    build: Build,
    exec: ExecReport,
    result: &ScoreResult,
    objective: &Objective,
    names: &mut Names,
) -> Ending {
    match result {
        ScoreResult::InvalidFormat { detail } => {
            let fault = CandidateFault::InvalidFormat;
            faulty(fault, detail.clone(), build, exec)
        }
        ScoreResult::Done { report } => match missing_component(report, objective) {
            Some(detail) => Ending::Shelved {
                fault: InfraFault::ScoreError,
                ended: Box::new(Ended {
                    detail,
                    kept: build.kept(),
                }),
            },
            None => Ending::Scored(Box::new(Scored {
                build,
                exec,
                score: names.score(report),
            })),
        },
    }
}

impl Build {
    /// Seeds are not analysed (SED-06), and imports were analysed where they are from.
    const fn is_analysed(&self) -> bool {
        matches!(self, Self::Engineered(_))
    }
}

impl Ending {
    /// Executed nodes are analysed, shelved ones are not.
    fn after(self, is_analysed: bool) -> Stage {
        match self {
            ending @ (Self::Scored(_) | Self::Faulty { .. }) if is_analysed => {
                Stage::Analyze { ending }
            }
            ending => Stage::Ending { ending },
        }
    }
}
