//! Read access for everybody else: nodes, ranking, deadlines, final selection. Views borrow from
//! the state; nothing here computes policy.

use std::collections::BTreeMap;

use vec_types::{
    Digest, ExecName, FamilyId, NodeId, NodeStatus, Operator, Phase, RunId, RunNode, Score,
    ScoreReport, SeedProgramId, SeedState, Table, UnixMs, ViewId,
};

use crate::MechanismActive;
use crate::decide::patience;
use crate::inputs::{promotion_word, review_word};
use crate::node::{Node, PlanView, PromotionState, Rerun, RerunStage, SEED_0};
use crate::state::Run;
use crate::{
    CommitInfo, Deadlines, Effect, ExecReport, GuardVerdict, OutOfPool, Policy, RunOutcome,
    RunState, SessionReport, SkipReason, drafts, plateau, ranking, resume, select,
};

/// One node as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeView<'a> {
    /// Id.
    pub id: NodeId,
    /// How it came to be.
    pub operator: Operator,
    /// Parent; absent for seeds and drafts.
    pub parent: Option<NodeId>,
    /// Family: the plan's, else the one drawn or inherited.
    pub family: Option<&'a FamilyId>,
    /// Seed program, for seeds.
    pub seed_program: Option<&'a SeedProgramId>,
    /// What the seed program may become.
    pub seed_state: Option<SeedState>,
    /// Status; `running` until it is settled.
    pub status: NodeStatus,
    /// One word for where it stands in the pipeline.
    pub stage: &'static str,
    /// Plan, once it is valid.
    pub plan: Option<PlanView<'a>>,
    /// Engineer session, once it has ended.
    pub session: Option<&'a SessionReport>,
    /// Commit in programs.git.
    pub commit: Option<&'a CommitInfo>,
    /// Executions that came to a report, by name.
    pub executions: BTreeMap<ExecName, &'a ExecReport>,
    /// Scores by execution.
    pub scores: BTreeMap<ExecName, &'a ScoreReport>,
    /// Prediction digests of seed 0 by view.
    pub digests: Option<&'a Table<ViewId, Digest>>,
    /// Mean of three seeds after promotion, else seed 0; scored nodes only.
    pub ranking_score: Option<Score>,
    /// Real visits.
    pub visits: u64,
    /// Virtual visits of running descendants.
    pub virtual_visits: u64,
    /// `none`, `running`, `done`, `failed`.
    pub promotion: &'static str,
    /// Why the promotion failed.
    pub promotion_failure: Option<&'a str>,
    /// `none`, `pass`, `fail`.
    pub review: &'static str,
    /// Review calls that have ended.
    pub review_attempts: u32,
    /// Output or program equal to the parent's.
    pub no_progress: bool,
    /// Program equal to the parent's.
    pub same_as_parent: bool,
    /// Cut by a deadline of the run.
    pub budget_cut: bool,
    /// METHOD.md was never written by the Engineer.
    pub is_method_auto: bool,
    /// Refuted direction that it left under its parent.
    pub refuted: Option<&'a str>,
    /// Failure in words; empty for scored and running nodes.
    pub detail: &'a str,
    /// When it was created.
    pub created_at: UnixMs,
    /// When it was settled.
    pub settled_at: Option<UnixMs>,
    /// Settlements before its own, imports included; absent while it is in work.
    pub settled_order: Option<u32>,
    /// Family that it was drawn for, for drafts.
    pub drawn_family: Option<&'a FamilyId>,
    /// Data epoch that its rank belongs to (SEL-13).
    pub epoch: u32,
    /// Data epoch of seed 0 (EPO-02).
    pub seed_0_epoch: u32,
    /// The node of an earlier run that it is, for imports (CON-06).
    pub origin: Option<&'a RunNode>,
    /// Excluded by the view-blindness check (SEL-08).
    pub view_dependent: bool,
    /// Result of the control run; absent where none was due (ABL-02).
    pub mechanism_active: Option<MechanismActive>,
    /// `same`, `view_dependent`, `nondeterministic`, `unknown`; absent where none has ended (VCK-02).
    pub view_check: Option<&'static str>,
    /// The carried-over work that it holds (CAR-14).
    pub work: Option<&'a RunNode>,
}

impl<'a> NodeView<'a> {
    fn of(run: &Run, node: &'a Node) -> Self {
        let settled = node.settled();
        let seed_0 = node.seed_0_report().map(|report| (SEED_0, report));
        let reruns = node.reruns.iter();
        let reports = reruns.filter_map(|(exec, rerun)| Some((*exec, rerun.report()?)));
        let scored = node.score(SEED_0).map(|score| (SEED_0, score));
        let scores = node.reruns.iter();
        let scores = scores.filter_map(|(exec, rerun)| Some((*exec, rerun.score()?)));
        Self {
            id: node.id,
            operator: node.operator,
            parent: node.parent,
            family: node.family.as_ref(),
            seed_program: node.seed.as_ref().map(|seed| &seed.id),
            seed_state: node.seed.as_ref().map(|seed| seed.state),
            status: node.status(),
            stage: node.stage.word(),
            plan: node.plan(),
            session: node.session(),
            commit: node.commit(),
            executions: seed_0.into_iter().chain(reports).collect(),
            scores: scored.into_iter().chain(scores).collect(),
            digests: node.digests(),
            ranking_score: node.ranking_score(),
            visits: node.visits.into(),
            virtual_visits: node.virtual_visits.into(),
            promotion: promotion_word(node, run.epoch),
            promotion_failure: match &node.promotion.state {
                PromotionState::Failed { why, .. } => Some(why),
                _ => None,
            },
            review: review_word(node),
            review_attempts: node.review.attempts,
            no_progress: settled.is_some_and(|settled| settled.no_progress),
            same_as_parent: settled.is_some_and(|settled| settled.same_as_parent),
            budget_cut: settled.is_some_and(|settled| settled.budget_cut),
            is_method_auto: node.is_method_auto(),
            refuted: node.refuted.as_deref(),
            detail: settled.map_or("", |settled| &*settled.detail),
            created_at: node.created_at,
            settled_at: settled.map(|settled| settled.at),
            settled_order: settled.map(|settled| settled.order),
            drawn_family: node.drawn_family.as_ref(),
            epoch: node.rank_epoch(),
            seed_0_epoch: node.epoch,
            origin: node.past.as_ref().map(|past| &past.origin),
            view_dependent: node.is_view_dependent(),
            mechanism_active: node.ablation,
            view_check: node.view.outcome(),
            work: resume::carried(node).map(|(work, _)| work),
        }
    }
}

impl RunState {
    /// The run's id, once started.
    #[must_use]
    pub fn run(&self) -> Option<&RunId> {
        self.run_data().map(|run| &run.id)
    }

    /// The locked rules, once started.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.run_data().map(|run| &run.policy)
    }

    /// The phase; `launching` before `run_start`, `stopped` after `stop`.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.run_data() {
            None => Phase::Launching,
            Some(run) if run.outcome.is_some() => Phase::Stopped,
            Some(run) => run.phase,
        }
    }

    /// The data epoch (EPO-01).
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.run_data().map_or(0, |run| run.epoch)
    }

    /// Does the search stand still, as far as the nodes say now (PLT-01)?
    #[must_use]
    pub fn is_plateau(&self) -> bool {
        self.run_data().is_some_and(plateau::is_active)
    }

    /// Every node that the next improve could not choose, and why.
    #[must_use]
    pub fn out_of_pool(&self) -> Vec<(NodeId, OutOfPool)> {
        let run = self.run_data();
        run.map_or_else(Vec::new, |run| select::out_of_pool(run, run.plateau))
    }

    /// Families in the order in which drafts cover them (DRF-02).
    #[must_use]
    pub fn coverage_order(&self) -> Vec<&FamilyId> {
        let policy = self.policy();
        policy.map_or_else(Vec::new, |policy| {
            drafts::coverage_order(&policy.families, policy.search_seed.0)
        })
    }

    /// The deadlines; the guard's moves earlier as run times are measured.
    #[must_use]
    pub fn deadlines(&self) -> Option<Deadlines> {
        self.run_data().map(Run::deadlines)
    }

    /// How the run ended.
    #[must_use]
    pub fn outcome(&self) -> Option<&RunOutcome> {
        self.run_data()?.outcome.as_ref()
    }

    /// Restarts recorded so far; the next `run_resume` carries a larger number.
    #[must_use]
    pub fn resumes(&self) -> u32 {
        self.run_data().map_or(0, |run| run.resumes)
    }

    /// Every node in order of creation.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.run_data()
            .into_iter()
            .flat_map(|run| run.nodes.iter().map(|node| NodeView::of(run, node)))
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<NodeView<'_>> {
        let run = self.run_data()?;
        run.node(id).map(|node| NodeView::of(run, node))
    }

    /// The node of the anchor seed program: the newest, since a shelved seed is tried again.
    #[must_use]
    pub fn baseline(&self) -> Option<NodeId> {
        self.run_data()?.anchor().map(|node| node.id)
    }

    /// Scored nodes, best ranking score first, the older first among equals.
    #[must_use]
    pub fn ranked(&self) -> Vec<NodeId> {
        let ranked = self.run_data().into_iter().flat_map(ranking::ranked);
        ranked.map(|(node, _)| node.id).collect()
    }

    /// Directions already refuted under a parent, in order of creation (REF-02).
    #[must_use]
    pub fn refuted_under(&self, parent: NodeId) -> Vec<&str> {
        self.run_data()
            .into_iter()
            .flat_map(|run| run.nodes.iter())
            .filter(|node| node.parent == Some(parent))
            .filter_map(|node| node.refuted.as_deref())
            .collect()
    }

    /// Candidates of final selection as it began, best first.
    #[must_use]
    pub fn final_candidates(&self) -> Vec<NodeId> {
        let finale = self.run_data().and_then(|run| run.finale.as_ref());
        finale.map_or_else(Vec::new, |finale| finale.candidates.clone())
    }

    /// Candidates that are out, and why.
    #[must_use]
    pub fn skipped(&self) -> BTreeMap<NodeId, SkipReason> {
        let finale = self.run_data().and_then(|run| run.finale.as_ref());
        finale.map_or_else(BTreeMap::new, |finale| finale.skipped.clone())
    }

    /// The guard's verdict.
    #[must_use]
    pub fn guard_verdict(&self) -> Option<&GuardVerdict> {
        self.run_data()?.finale.as_ref()?.verdict.as_ref()
    }

    /// Why final selection gave no answer (FIN-04).
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.run_data()?.refused.as_deref()
    }

    /// The next moment at which `decide` could say something without a new fact.
    #[must_use]
    pub fn next_deadline(&self, at: UnixMs) -> Option<UnixMs> {
        let run = self.run_data().filter(|run| run.outcome.is_none())?;
        let wait = patience::until(run).filter(|until| *until > at);
        let deadline = run.deadlines().next_after(at);
        let points = [deadline, wait, run.next_retry(at)];
        points.into_iter().flatten().min()
    }

    /// When the driver must cut an effect in work (BUD-03, BUD-04, FIN-09); absent for an effect
    /// of an unknown node. Promotion runs are not cut at the settlement deadline but dropped by a
    /// decision (PRO-06), so that final selection may still run them.
    #[must_use]
    pub fn effect_deadline(&self, effect: &Effect) -> Option<UnixMs> {
        let run = self.run_data()?;
        let times = run.deadlines();
        run.node(effect.node())?;
        Some(match effect {
            Effect::Plan { .. } | Effect::Comply { .. } | Effect::Engineer { .. } => times.handoff,
            Effect::ImportSeed { .. } => times.cutoff,
            Effect::Execute { exec, .. } if matches!(*exec, SEED_0 | ExecName::Ablate) => {
                times.cutoff
            }
            Effect::Execute {
                exec: ExecName::Final,
                ..
            } => times.place_deadline,
            Effect::Score { exec, .. } if matches!(*exec, SEED_0 | ExecName::Ablate) => {
                times.settle_deadline
            }
            Effect::Analyze { .. } => times.settle_deadline,
            Effect::Execute { .. } | Effect::Score { .. } | Effect::Review { .. } => {
                times.guard_deadline
            }
            Effect::Place { .. } => times.stop_at,
        })
    }
}

impl Run {
    /// Executions that are done, for the status page.
    pub(crate) fn executions_done(&self) -> usize {
        let reruns = self.nodes.iter().flat_map(|node| node.reruns.values());
        let further = reruns.filter(|rerun| rerun.report().is_some() && !is_unscored(rerun));
        let first = self
            .nodes
            .iter()
            .filter(|node| node.seed_0_report().is_some());
        further.count() + first.count()
    }
}

const fn is_unscored(rerun: &Rerun) -> bool {
    matches!(rerun.stage, RerunStage::Score { .. })
}
