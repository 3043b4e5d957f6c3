//! Policies and results to build runs from.

use std::collections::BTreeMap;

use vec_search::{
    Budget, ChecksMode, CommitInfo, Continuation, Draft, EngineerEnd, Event, ExecReport,
    ExecResult, Family, Guard, GuardKind, MethodState, Outcome, PlanResult, Plateau, Policy,
    ScoreResult, SeedProgram, Select, SessionReport,
};
use vec_types::{
    CandidateFault, Digest, ExecName, Part, Plan, ProgramSeed, Score, ScoreReport, SearchSeed,
    SeedState, TreeId, UnixMs,
};

pub(crate) const T0: UnixMs = UnixMs(1_800_000_000_000);

pub(crate) fn seed_program(id: &str, state: SeedState) -> SeedProgram {
    SeedProgram {
        id: id.parse().expect("id"),
        state,
        family: (state != SeedState::Anchor).then(|| "linear".parse().expect("family")),
    }
}

pub(crate) fn family(id: &str, category: Option<&str>) -> Family {
    Family {
        id: id.parse().expect("id"),
        category: category.map(str::to_owned),
    }
}

/// One objective ruler `main` on view `main`, an anchor and an exploration seed, ample time.
pub(crate) fn policy() -> Policy {
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
        checks: ChecksMode::FirstLight,
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

pub(crate) fn run_start(policy: &Policy) -> Event {
    Event::RunStart {
        run: "20270115-080000-diabetes-abcd".parse().expect("run id"),
        policy: Box::new(policy.clone()),
    }
}

pub(crate) fn commit(text: &str) -> CommitInfo {
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

pub(crate) fn planned() -> Outcome {
    Outcome::Planned {
        result: PlanResult::Valid {
            plan: Plan {
                name: "idea".to_owned(),
                motivation: String::new(),
                approach: "do it".to_owned(),
                expected_groups: Vec::new(),
                risks: Vec::new(),
                family_id: None,
                mechanism: None,
                ablate: None,
            },
            attempts: 1,
        },
    }
}

pub(crate) fn session(commit: Option<CommitInfo>, method: MethodState) -> Outcome {
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

pub(crate) fn written(line: &str) -> MethodState {
    MethodState::Written {
        first_line: line.to_owned(),
    }
}

/// A finished execution whose prediction on every view has the digest of `text`.
pub(crate) fn done(policy: &Policy, exec: ExecName, text: &str, wall_ms: i64) -> Outcome {
    let mut views: Vec<_> = policy.objective_views().into_iter().cloned().collect();
    if exec == ExecName::Final {
        views = vec![policy.final_view.clone()];
    }
    let digest = |view: &vec_types::ViewId| Digest::of(format!("{view}{text}").as_bytes());
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

pub(crate) fn fault(fault: CandidateFault) -> Outcome {
    Outcome::Executed {
        report: ExecReport {
            result: ExecResult::Fault {
                fault,
                detail: "exit status 1".to_owned(),
            },
            wall_ms: vec_types::Table::new(),
            max_rss_kib: None,
            harness_ms: 10,
        },
    }
}

pub(crate) fn scored(policy: &Policy, total: f64) -> Outcome {
    let total = Score::new(total).expect("finite");
    let part = |ruler: &vec_types::RulerId| Part {
        ruler: ruler.clone(),
        metric: "rmse".to_owned(),
        raw: 1.0,
        skill: 0.5,
        points: total.get(),
    };
    Outcome::Scored {
        result: ScoreResult::Done {
            report: ScoreReport {
                total,
                components: policy
                    .objective
                    .keys()
                    .map(|r| (r.clone(), total))
                    .collect(),
                parts: policy.objective.keys().map(part).collect(),
            },
        },
    }
}
