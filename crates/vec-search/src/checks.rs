//! The two checks of a scored program as pure comparisons of prediction digests: does its mechanism
//! do anything (ABL), and does its output depend on how a view is dressed (VCK).
//!
//! Invariants: evidence of the ablation is never part of any ranking (ABL-05); a check that could
//! not be had has no verdict, which never means passed.

use serde::{Deserialize, Serialize};
use vec_types::{Digest, ExecName, Hasher, InfraFault, NodeId, Operator, Table, ViewId};

use crate::node::{Ending, Node, Rerun, RerunStage, Stage};
use crate::planted::{self, Bug};
use crate::state::Run;
use crate::{Effect, ExecResult};

/// View checks of a node that may end without a verdict before it is left out (O-VCK-2). Those that
/// were only cut for lack of time do not count.
pub const VIEW_CHECK_ATTEMPTS_MAX: u32 = 3;

/// Does the program's output change when its mechanism is switched off (ABL-02)?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MechanismActive {
    /// On at least one objective view.
    Yes,
    /// On none.
    No,
    /// The control run gave no comparable result (ABL-04).
    Unclear,
}

impl MechanismActive {
    /// The word as stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}

/// Result of one view check (VCK-02).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewVerdict {
    /// The same output on the view in disguise.
    Same,
    /// Another output in disguise, the original one without: never a parent, promoted or final.
    ViewDependent,
    /// Another output each time: recorded, no consequence.
    Nondeterministic,
    /// No result; tried again at the next trigger.
    Unknown,
}

impl ViewVerdict {
    /// The word as stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::ViewDependent => "view_dependent",
            Self::Nondeterministic => "nondeterministic",
            Self::Unknown => "unknown",
        }
    }
}

/// What asked for a view check (VCK-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewTrigger {
    /// A share of all nodes, by hash.
    #[default]
    Sample,
    /// It is about to be promoted.
    Promotion,
    /// It is a candidate of final selection.
    Final,
}

/// What is known of a node's view check. Verdicts outlive data epochs: views never change.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ViewState {
    /// Never `unknown`.
    pub verdict: Option<ViewVerdict>,
    /// Checks that ended without a verdict.
    pub attempts: u32,
    /// Those of them that were cut for lack of time.
    pub cuts: u32,
    /// Who asked for the present one.
    pub trigger: ViewTrigger,
}

impl ViewState {
    /// May it be promoted and be final?
    pub(crate) fn is_fit(&self) -> bool {
        match self.verdict {
            Some(ViewVerdict::Same | ViewVerdict::Nondeterministic) => true,
            Some(ViewVerdict::ViewDependent) => planted::is(Bug::ViewDependentStays),
            Some(ViewVerdict::Unknown) | None => false,
        }
    }

    /// Is there nothing more to find out, and no fitness?
    pub(crate) fn is_out(&self) -> bool {
        match self.verdict {
            Some(verdict) => {
                matches!(verdict, ViewVerdict::ViewDependent)
                    && !planted::is(Bug::ViewDependentStays)
            }
            None => self.counted() >= VIEW_CHECK_ATTEMPTS_MAX,
        }
    }

    /// Checks without a verdict that count.
    pub(crate) const fn counted(&self) -> u32 {
        self.attempts.saturating_sub(self.cuts)
    }

    /// The word for what is known; absent before the first check has ended.
    pub(crate) const fn outcome(&self) -> Option<&'static str> {
        match self.verdict {
            Some(verdict) => Some(verdict.as_str()),
            None if self.attempts > 0 => Some(ViewVerdict::Unknown.as_str()),
            None => None,
        }
    }
}

/// Does a node of this kind get a control run (ABL-05)? Only what is analysed does.
pub(crate) fn takes_ablation(node: &Node) -> bool {
    let is_before_analysis = matches!(
        &node.stage,
        Stage::Analyze {
            ending: Ending::Scored(_)
        }
    );
    is_before_analysis && !matches!(node.operator, Operator::Seed | Operator::Tune)
}

/// The control run's result, once it has ended (O-ABL-1).
pub(crate) fn ablation(run: &Run, node: &Node) -> Option<(MechanismActive, String)> {
    let rerun = node.reruns.get(&ExecName::Ablate)?;
    if let Some(failure) = rerun.failure() {
        let why = format!("the control run ended with {failure}");
        return Some((MechanismActive::Unclear, why));
    }
    let RerunStage::Scored { .. } = &rerun.stage else {
        return None;
    };
    if rerun.epoch != Some(node.epoch) {
        let why = "new data came between seed 0 and the control run".to_owned();
        return Some((MechanismActive::Unclear, why));
    }
    let (base, control) = (node.digests(), digests(rerun));
    let views = run.policy.objective_views().into_iter();
    let mut views = views.map(|view| {
        let of = |table: Option<&Table<ViewId, Digest>>| table.and_then(|t| t.get(view).copied());
        (view, of(base), of(control))
    });
    Some(match views.find(|(_, base, control)| base != control) {
        Some((view, ..)) => (
            MechanismActive::Yes,
            format!("another output on view {view}"),
        ),
        None => (
            MechanismActive::No,
            "the same output on every objective view".to_owned(),
        ),
    })
}

/// O-VCK-1: a hash of search seed and node, so that no random number is drawn.
pub(crate) fn is_sampled(run: &Run, node: NodeId) -> bool {
    let mut hasher = Hasher::default();
    hasher.update(b"view check");
    hasher.update(&run.policy.search_seed.0.to_le_bytes());
    hasher.update(&node.0.to_le_bytes());
    let digest = hasher.finish();
    let head = digest.as_bytes().first_chunk().copied().unwrap_or_default();
    // 53 bits, as a number in 0..1.
    let share = (u64::from_le_bytes(head) >> 11) as f64 / (1_u64 << 53) as f64;
    share < run.policy.view_check.sample
}

/// How far a node's view check has come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Course {
    /// This is needed next.
    Needs(Effect),
    /// It has ended.
    Over(ViewVerdict, String),
}

/// The course of the present attempt; also names the first effect of one that nobody has begun.
pub(crate) fn course(run: &Run, node: &Node) -> Course {
    let attempt = node.view.attempts;
    let (check, confirm) = (
        ExecName::ViewCheck { attempt },
        ExecName::ViewCheckConfirm { attempt },
    );
    let execute = |exec| {
        Course::Needs(Effect::Execute {
            node: node.id,
            exec,
        })
    };
    let unknown = |why: String| Course::Over(ViewVerdict::Unknown, why);
    let disguised = match look(node, check) {
        Look::Open => return execute(check),
        Look::Lost(why) => return unknown(format!("the run in disguise ended with {why}")),
        Look::Ended(rerun) => rerun,
    };
    let views = &run.policy.view_check.views;
    let equal = |a: Option<&Table<ViewId, Digest>>, b: Option<&Table<ViewId, Digest>>| {
        let (Some(a), Some(b)) = (a, b) else {
            return false;
        };
        views
            .iter()
            .all(|view| a.get(view).is_some() && a.get(view) == b.get(view))
    };
    let original = node.digests();
    if equal(original, digests(disguised)) {
        return Course::Over(ViewVerdict::Same, "the same output in disguise".to_owned());
    }
    let plain = match look(node, confirm) {
        Look::Open => return execute(confirm),
        Look::Lost(why) => return unknown(format!("the confirming run ended with {why}")),
        Look::Ended(rerun) => rerun,
    };
    if plain.epoch != disguised.epoch {
        return unknown("new data came between its two runs".to_owned());
    }
    if equal(original, digests(plain)) {
        let why = match disguised.failure() {
            Some(failure) => format!("in disguise it ended with {failure}"),
            None => "another output in disguise, the original one without".to_owned(),
        };
        return Course::Over(ViewVerdict::ViewDependent, why);
    }
    // An output of an earlier data epoch, or of an earlier run, cannot tell data from chance.
    let is_comparable = disguised.epoch == Some(node.epoch) && original.is_some();
    if !is_comparable && equal(digests(plain), digests(disguised)) {
        let why = "the same output in disguise as without".to_owned();
        return Course::Over(ViewVerdict::Same, why);
    }
    if !is_comparable {
        return unknown("seed 0 was measured with other data".to_owned());
    }
    let why = "another output also without a disguise".to_owned();
    Course::Over(ViewVerdict::Nondeterministic, why)
}

/// The fault of ours that the present check of a node came to.
pub(crate) fn fault(node: &Node) -> Option<InfraFault> {
    let attempt = node.view.attempts;
    let execs = [
        ExecName::ViewCheck { attempt },
        ExecName::ViewCheckConfirm { attempt },
    ];
    let runs = execs.iter().filter_map(|exec| node.reruns.get(exec));
    runs.filter_map(Rerun::lost).next()
}

enum Look<'a> {
    Open,
    Lost(String),
    /// With a prediction, or with a fault of the program.
    Ended(&'a Rerun),
}

fn look(node: &Node, exec: ExecName) -> Look<'_> {
    match node.reruns.get(&exec) {
        None => Look::Open,
        Some(rerun) => match &rerun.stage {
            RerunStage::Lost { .. } => Look::Lost(rerun.failure().unwrap_or_default()),
            RerunStage::Ran { .. } | RerunStage::Faulty { .. } => Look::Ended(rerun),
            _ => Look::Open,
        },
    }
}

fn digests(rerun: &Rerun) -> Option<&Table<ViewId, Digest>> {
    match &rerun.report()?.result {
        ExecResult::Done { digests } => Some(digests),
        ExecResult::Fault { .. } => None,
    }
}

/// May this execution of a check start? Those of promotions, of the guard and of the answer are
/// asked for by events of their own.
pub(crate) fn is_due(run: &Run, node: &Node, exec: ExecName) -> bool {
    if node.reruns.contains_key(&exec) {
        return false;
    }
    match exec {
        ExecName::Ablate => run.policy.ablation && node.ablation.is_none() && takes_ablation(node),
        ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. } => {
            let is_scored = node.score(crate::node::SEED_0).is_some();
            let needs = Course::Needs(Effect::Execute {
                node: node.id,
                exec,
            });
            is_scored && node.view.verdict.is_none() && course(run, node) == needs
        }
        _ => false,
    }
}
