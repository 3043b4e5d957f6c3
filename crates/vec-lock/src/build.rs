//! The lock itself: pure assembly of what was measured, copied and configured.

use std::collections::{BTreeMap, BTreeSet};

use vec_config::{
    Admission, Anchor, AnchorKey, Board, BuildRecord, CandidateEnvironment, CodeSnapshot, Config,
    EvalSpec, ExecutionSpec, Hashes, LOCK_VERSION, Lock, PinnedInput, RulerSpec, SandboxRecord,
    ScorerFacts, ScoringRules, SelfTest, Supervisor, TruthFacts, TruthIsolation, ViewSpec,
    effective_limits, eval_hash, policy_of, scoring_fingerprint, search_hash,
};
use vec_types::{Digest, ProgramSeed, RulerId, RunId, UnixMs, ViewId, canonical_json};

use crate::error::LockBuildError;
use crate::reasons::{LockFacts, reasons};
use crate::views::ViewFacts;

/// Everything that a lock is made from.
#[derive(Debug, Clone)]
pub struct LockInputs {
    /// The run.
    pub run_id: RunId,
    /// Now.
    pub created_at: UnixMs,
    /// Validated configuration.
    pub config: Config,
    /// Bytes of the configuration file.
    pub config_source: Vec<u8>,
    /// `--set key=value` in order.
    pub config_sets: Vec<String>,
    /// Validated board.
    pub board: Board,
    /// BUILD.json.
    pub build: BuildRecord,
    /// From [`crate::snapshot_code`].
    pub code_snapshot: CodeSnapshot,
    /// From [`crate::prompt_hashes`].
    pub prompt_hashes: BTreeMap<String, Digest>,
    /// From [`crate::view_facts`], per view of the run directory.
    pub views: BTreeMap<ViewId, ViewFacts>,
    /// From [`crate::pin_inputs`].
    pub pinned_inputs: Vec<PinnedInput>,
    /// What the scorer's prebuild said.
    pub truth: TruthInputs,
    /// The candidates' Python, variables and CPU.
    pub environment: CandidateEnvironment,
    /// The sandbox and what it isolates here.
    pub sandbox: SandboxRecord,
    /// Who owns process trees.
    pub supervisor: Supervisor,
    /// What keeps truth from other processes.
    pub truth_isolation: TruthIsolation,
    /// Tainted runs that this one builds on.
    pub tainted_ancestors: BTreeSet<RunId>,
}

/// What the scorer's prebuild said: digests and anchors, never rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TruthInputs {
    /// sha256 of each half's `truth.csv`, by half (`A`, `B`).
    pub sha256: BTreeMap<String, Digest>,
    /// Anchors per ruler.
    pub anchors: BTreeMap<RulerId, BTreeMap<AnchorKey, Anchor>>,
    /// Mean target of the training rows.
    pub floor_prediction: f64,
    /// Manifest hash over the scorer's sources.
    pub scorer_hash: Digest,
    /// Its self-test.
    pub self_test: SelfTest,
}

/// Assembles the lock.
///
/// # Errors
/// [`LockBuildError`]: parts that contradict each other, a configuration that makes no run.
pub fn build_lock(inputs: LockInputs) -> Result<Lock, LockBuildError> {
    check(&inputs)?;
    let eval_spec = eval_spec(&inputs);
    let encode = |what| move |source| LockBuildError::Encode { what, source };
    let facts = LockFacts::of(
        &inputs.config,
        inputs.build.dirty,
        inputs.supervisor,
        &inputs.sandbox.isolation,
        &inputs.tainted_ancestors,
    );
    let reasons = reasons(&facts);
    let models = inputs.config.models.roles.iter();
    let models = models.filter_map(|(role, chain)| Some((*role, chain.first()?.clone())));
    Ok(Lock {
        lock_version: LOCK_VERSION,
        run_id: inputs.run_id,
        created_at: inputs.created_at,
        board: inputs.board.board.clone(),
        mode: inputs.config.mode,
        config_source_sha256: Digest::of(&inputs.config_source),
        config_sets: inputs.config_sets,
        hashes: Hashes {
            code: inputs.code_snapshot.tree.clone(),
            prompts: inputs.prompt_hashes,
            search: inputs.build.source_tree.clone(),
        },
        eval_hash: eval_hash(&eval_spec).map_err(encode("evaluation spec"))?,
        scoring_fingerprint: scoring_fingerprint(&eval_spec)
            .map_err(encode("scorer side of the evaluation spec"))?,
        search_hash: search_hash(&eval_spec).map_err(encode("search side"))?,
        view_files: inputs
            .views
            .into_iter()
            .map(|(view, facts)| (view, facts.files))
            .collect(),
        environment: eval_spec.environment.python.clone(),
        eval_spec,
        models: models.collect(),
        models_fallback: inputs.config.models.roles.clone(),
        code_snapshot: inputs.code_snapshot,
        pinned_inputs: inputs.pinned_inputs,
        sandbox: inputs.sandbox,
        supervisor: inputs.supervisor,
        admission: Admission::Semaphore,
        truth_isolation: inputs.truth_isolation,
        self_test: inputs.truth.self_test,
        tainted_ancestors: inputs.tainted_ancestors,
        submittable: reasons.is_empty(),
        reasons,
        board_definition: inputs.board,
        build: inputs.build,
        config: inputs.config,
    })
}

/// The bytes of `config.lock.json`: compact JSON with sorted keys, written once.
///
/// # Errors
/// [`LockBuildError::Encode`].
pub fn lock_bytes(lock: &Lock) -> Result<Vec<u8>, LockBuildError> {
    canonical_json(lock).map_err(|source| LockBuildError::Encode {
        what: "lock",
        source,
    })
}

fn check(inputs: &LockInputs) -> Result<(), LockBuildError> {
    let problems = policy_of(&inputs.config, &inputs.board).problems();
    if !problems.is_empty() {
        return Err(LockBuildError::Policy(problems));
    }
    let inconsistent = |text: String| Err(LockBuildError::Inconsistent(text));
    for view in inputs.board.views.keys() {
        let Some(facts) = inputs.views.get(view) else {
            return inconsistent(format!("view `{view}` of the board is not in the run"));
        };
        if facts.limits != inputs.board.limits {
            return inconsistent(format!(
                "the manifest of view `{view}` has other limits than the board; build the board \
                 again"
            ));
        }
    }
    if inputs.views.len() != inputs.board.views.len() {
        return inconsistent("the run has views that the board does not name".to_owned());
    }
    for ruler in inputs.board.rulers.keys() {
        if inputs
            .truth
            .anchors
            .get(ruler)
            .is_none_or(BTreeMap::is_empty)
        {
            return inconsistent(format!("the scorer gave no anchors for ruler `{ruler}`"));
        }
    }
    if inputs.code_snapshot.binaries != inputs.build.binaries {
        return inconsistent("the code snapshot has other binaries than BUILD.json".to_owned());
    }
    Ok(())
}

fn eval_spec(inputs: &LockInputs) -> EvalSpec {
    let views = &inputs.views;
    let mut search_seeds = BTreeSet::from([ProgramSeed(0)]);
    search_seeds.extend(&inputs.config.promotion.seeds);
    EvalSpec {
        schema: 1,
        board: inputs.board.board.clone(),
        views: views
            .iter()
            .map(|(view, facts)| {
                let spec = ViewSpec {
                    content: facts.content,
                    limits: facts.limits.clone(),
                };
                (view.clone(), spec)
            })
            .collect(),
        truth: TruthFacts {
            sha256: inputs.truth.sha256.clone(),
        },
        rulers: inputs
            .board
            .rulers
            .iter()
            .map(|(id, ruler)| {
                let spec = RulerSpec {
                    view: ruler.view.clone(),
                    role: ruler.role,
                    weight: ruler.weight,
                    metric: ruler.metric,
                    anchors: inputs.truth.anchors.get(id).cloned().unwrap_or_default(),
                };
                (id.clone(), spec)
            })
            .collect(),
        scoring: ScoringRules {
            truth_fraction: inputs.board.scoring.truth_fraction,
            search_seeds,
            guard_seeds: inputs.config.guard.fresh_seeds.clone(),
            floor_prediction: inputs.truth.floor_prediction,
        },
        scorer: ScorerFacts {
            scorer_hash: inputs.truth.scorer_hash,
        },
        environment: inputs.environment.clone(),
        execution: ExecutionSpec {
            programs: views
                .iter()
                .map(|(view, facts)| {
                    (
                        view.clone(),
                        effective_limits(&inputs.config, &facts.limits),
                    )
                })
                .collect(),
        },
    }
}
