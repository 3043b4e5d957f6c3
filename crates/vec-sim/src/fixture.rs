//! Policies and results to build runs from; the same for the scenario tests of `vec-search`.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{
    Budget, CommitInfo, Continuation, Draft, EngineerEnd, Event, ExecReport, ExecResult, Family,
    Guard, GuardKind, MethodState, Outcome, PlanResult, Plateau, Policy, ScoreResult, SeedProgram,
    Select, SessionReport, ViewCheck,
};
use vec_types::{
    CandidateFault, Digest, ExecName, FamilyId, Part, Plan, ProgramSeed, Score, ScoreReport,
    SearchSeed, SeedState, Table, TreeId, UnixMs, ViewId,
};

/// When runs start.
pub const T0: UnixMs = UnixMs(1_800_000_000_000);

/// A seed program; all but the anchor are of family `linear`.
///
/// # Panics
/// When `id` is not an id.
#[must_use]
pub fn seed_program(id: &str, state: SeedState) -> SeedProgram {
    SeedProgram {
        id: id.parse().expect("id"),
        state,
        family: (state != SeedState::Anchor).then(|| "linear".parse().expect("family")),
    }
}

/// A family of the library.
///
/// # Panics
/// When `id` is not an id.
#[must_use]
pub fn family(id: &str, category: Option<&str>) -> Family {
    Family {
        id: id.parse().expect("id"),
        category: category.map(str::to_owned),
    }
}

/// One objective ruler `main` on view `main`, an anchor and an exploration seed, ample time.
///
/// # Panics
/// Never: the ids are constant.
#[must_use]
pub fn policy() -> Policy {
    let ruler: vec_types::RulerId = "main".parse().expect("ruler");
    Policy {
        search_seed: SearchSeed(7),
        concurrency_nodes: 1,
        draft_p: 0.15,
        debug_p: 0.15,
        tune_p: 0.0,
        debug_max_attempts: 2,
        select: Select {
            c_puct: 1.0,
            streak_counts_gen: false,
            streak_len: 2,
            reserve_improve: None,
        },
        draft: Draft::RoundRobin,
        plateau: Plateau {
            enabled: false,
            window: 8,
            top_k: 5,
            draft_p: 0.5,
        },
        families: vec![family("linear", None), family("trees", None)],
        seed_programs: vec![
            seed_program("train_mean", SeedState::Anchor),
            seed_program("ols", SeedState::Exploration),
        ],
        seed_max_children: 2,
        objective: BTreeMap::from([(ruler.clone(), 1.0)]),
        ruler_views: BTreeMap::from([(ruler, "main".parse().expect("view"))]),
        final_view: "main".parse().expect("view"),
        promotion_top_k: 5,
        promotion_seeds: vec![ProgramSeed(1), ProgramSeed(2)],
        final_top_k: 5,
        guard: Guard {
            kind: GuardKind::Noninferiority,
            fresh_seeds: (3..8).map(ProgramSeed).collect(),
        },
        ablation: false,
        view_check: ViewCheck {
            lock_wait_ms: 300_000,
            sample: 0.0,
            views: BTreeSet::from(["main".parse().expect("a view")]),
        },
        budget: Budget {
            max_nodes: 16,
            wall_ms: 3_600_000,
            final_reserve_ms: 600_000,
            node_tail_ms: 60_000,
            settle_extra_ms: 30_000,
            settle_guard_ms: 10_000,
            term_grace_ms: 5_000,
            place_room_ms: 10_000,
        },
        reserve: None,
        continuation: Continuation::default(),
    }
}

/// The first fact of a run.
///
/// # Panics
/// Never: the id is constant.
#[must_use]
pub fn run_start(policy: &Policy) -> Event {
    Event::RunStart {
        run: "20270115-080000-diabetes-abcd".parse().expect("run id"),
        policy: Box::new(policy.clone()),
    }
}

/// A commit whose ids come out of `text`.
///
/// # Panics
/// Never: digests are ids.
#[must_use]
pub fn commit(text: &str) -> CommitInfo {
    let id = |kind: &str| -> TreeId {
        let digest = Digest::of(format!("{kind}{text}").as_bytes());
        digest.to_string().parse().expect("tree id")
    };
    CommitInfo {
        commit: id("commit"),
        tree: id("tree"),
        runtime_key: id("key"),
    }
}

/// A valid plan without a family of its own.
#[must_use]
pub fn planned() -> Outcome {
    plan_of(None)
}

/// A valid plan that names a family.
#[must_use]
pub fn plan_of(family: Option<FamilyId>) -> Outcome {
    Outcome::Planned {
        result: PlanResult::Valid {
            plan: plan(family),
            attempts: 1,
        },
    }
}

/// A plan.
#[must_use]
pub fn plan(family_id: Option<FamilyId>) -> Plan {
    Plan {
        name: "idea".to_owned(),
        motivation: String::new(),
        approach: "do it".to_owned(),
        expected_groups: Vec::new(),
        risks: Vec::new(),
        family_id,
        mechanism: None,
        ablate: None,
    }
}

/// An Engineer session that ended by itself.
#[must_use]
pub fn session(commit: Option<CommitInfo>, method: MethodState) -> Outcome {
    Outcome::Engineered {
        session: SessionReport {
            end: EngineerEnd::Finished,
            has_run_py: commit.is_some() || method == MethodState::Missing,
            method,
            commit,
            queries_used: Some(2),
            wall_ms: 1_000,
        },
    }
}

/// METHOD.md with this first line.
#[must_use]
pub fn written(line: &str) -> MethodState {
    MethodState::Written {
        first_line: line.to_owned(),
    }
}

/// A finished execution whose prediction on every view has the digest of `text`.
#[must_use]
pub fn done(policy: &Policy, exec: ExecName, text: &str, wall_ms: i64) -> Outcome {
    let views = check_views(policy, exec);
    let digest = |view: &ViewId| Digest::of(format!("{view}{text}").as_bytes());
    Outcome::Executed {
        report: ExecReport {
            result: ExecResult::Done {
                digests: views.iter().map(|v| (v.clone(), digest(v))).collect(),
            },
            wall_ms: views.iter().map(|view| (view.clone(), wall_ms)).collect(),
            max_rss_kib: Some(1_000),
            harness_ms: 10,
        },
    }
}

/// A finished execution of a check whose predictions are those of `before`, if that has all views.
#[must_use]
pub fn done_as(
    policy: &Policy,
    exec: ExecName,
    before: &Table<ViewId, Digest>,
    wall_ms: i64,
) -> Option<Outcome> {
    let digests: Table<ViewId, Digest> = check_views(policy, exec)
        .into_iter()
        .map(|view| Some((view.clone(), *before.get(&view)?)))
        .collect::<Option<_>>()?;
    Some(Outcome::Executed {
        report: ExecReport {
            wall_ms: digests.keys().map(|view| (view.clone(), wall_ms)).collect(),
            result: ExecResult::Done { digests },
            max_rss_kib: Some(1_000),
            harness_ms: 10,
        },
    })
}

/// Views that an execution is for.
fn check_views(policy: &Policy, exec: ExecName) -> Vec<ViewId> {
    match exec {
        ExecName::Final => vec![policy.final_view.clone()],
        ExecName::ViewCheck { .. } | ExecName::ViewCheckConfirm { .. } => {
            policy.view_check.views.iter().cloned().collect()
        }
        _ => policy.objective_views().into_iter().cloned().collect(),
    }
}

/// A candidate's fault during execution.
#[must_use]
pub fn fault(fault: CandidateFault) -> Outcome {
    Outcome::Executed {
        report: ExecReport {
            result: ExecResult::Fault {
                fault,
                detail: "exit status 1".to_owned(),
            },
            wall_ms: Table::new(),
            max_rss_kib: None,
            harness_ms: 10,
        },
    }
}

/// A score with the same number in every component.
///
/// # Panics
/// When `total` is not finite.
#[must_use]
pub fn scored(policy: &Policy, total: f64) -> Outcome {
    Outcome::Scored {
        result: ScoreResult::Done {
            report: score_report(policy, Score::new(total).expect("finite")),
        },
    }
}

/// The report behind such a score.
#[must_use]
pub fn score_report(policy: &Policy, total: Score) -> ScoreReport {
    let part = |ruler: &vec_types::RulerId| Part {
        ruler: ruler.clone(),
        metric: "rmse".to_owned(),
        raw: 1.0,
        skill: 0.5,
        points: total.get(),
    };
    let rulers = policy.objective.keys();
    ScoreReport {
        total,
        components: rulers.clone().map(|ruler| (ruler.clone(), total)).collect(),
        parts: rulers.map(part).collect(),
    }
}
