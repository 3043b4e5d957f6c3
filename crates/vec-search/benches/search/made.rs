//! Runs to measure: a tree of imports of any size, and a run that `decide` drove. Two rulers of four
//! metrics, as the largest real board has.

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{
    Budget, CommitInfo, Continuation, Draft, Effect, EngineerEnd, Event, ExecReport, ExecResult,
    Family, Guard, GuardKind, Import, ImportEnd, MethodState, Mt19937, Outcome, PlanResult,
    Plateau, Policy, ReviewVerdict, RunState, ScoreResult, SeedProgram, Select, SessionReport,
    ViewCheck,
};
use vec_types::{
    CandidateFault, Digest, ExecName, NodeId, Operator, Part, Plan, ProgramSeed, RunNode, Score,
    ScoreReport, SearchSeed, SeedState, Table, UnixMs, ViewId,
};

pub(crate) const T0: UnixMs = UnixMs(1_800_000_000_000);
const RULERS: [&str; 2] = ["proxy10", "X3"];
const METRICS: [&str; 4] = ["de_score", "de_direction", "mmd_u", "variogram"];
const DAY_MS: i64 = 86_400_000;

pub(crate) type Stored = (UnixMs, Event);

fn policy(max_nodes: u32, imports: u32) -> Policy {
    let family = |id: &str, category: &str| Family {
        id: id.parse().expect("id"),
        category: Some(category.to_owned()),
    };
    Policy {
        search_seed: SearchSeed(3),
        concurrency_nodes: 1,
        draft_p: 0.30,
        debug_p: 0.15,
        tune_p: 0.0,
        debug_max_attempts: 2,
        select: Select {
            c_puct: 1.0,
            streak_counts_gen: false,
            streak_len: 2,
            reserve_improve: Some(10.0),
        },
        draft: Draft::CoverageBandit {
            failed_cap: 2,
            min_explore: 0.25,
        },
        plateau: Plateau {
            enabled: true,
            window: 8,
            top_k: 5,
            draft_p: 0.5,
        },
        families: vec![family("a", "one"), family("b", "two"), family("c", "one")],
        seed_programs: vec![SeedProgram {
            id: "copy_last".parse().expect("id"),
            state: SeedState::Anchor,
            family: None,
        }],
        seed_max_children: 2,
        objective: RULERS.map(|r| (r.parse().expect("id"), 0.5)).into(),
        ruler_views: RULERS
            .map(|r| (r.parse().expect("id"), r.parse().expect("id")))
            .into(),
        final_view: "final".parse().expect("id"),
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
            views: RULERS.iter().map(|r| r.parse().expect("id")).collect(),
        },
        budget: Budget {
            max_nodes,
            wall_ms: 100 * DAY_MS,
            final_reserve_ms: DAY_MS,
            node_tail_ms: 1_000,
            settle_extra_ms: 1_000,
            settle_guard_ms: 1_000,
            term_grace_ms: 1_000,
            place_room_ms: 1_000,
        },
        reserve: None,
        continuation: Continuation {
            imports,
            ..Continuation::default()
        },
    }
}

fn start(max_nodes: u32, imports: u32) -> Event {
    Event::RunStart {
        run: "20270115-080000-bench-abcd".parse().expect("run id"),
        policy: Box::new(policy(max_nodes, imports)),
    }
}

fn commit(text: &str) -> CommitInfo {
    let id = |kind: &str| Digest::of(format!("{kind}{text}").as_bytes()).to_string();
    let tree = |kind: &str| id(kind).parse().expect("tree id");
    CommitInfo {
        commit: tree("commit"),
        tree: tree("tree"),
        runtime_key: tree("key"),
    }
}

fn report(total: f64) -> ScoreReport {
    let score = Score::new(total).expect("finite");
    let part = |ruler: &str, metric: &str| Part {
        ruler: ruler.parse().expect("id"),
        metric: metric.to_owned(),
        raw: total,
        skill: total,
        points: total,
    };
    ScoreReport {
        total: score,
        components: RULERS.map(|r| (r.parse().expect("id"), score)).into(),
        parts: RULERS
            .iter()
            .flat_map(|ruler| METRICS.map(|metric| part(ruler, metric)))
            .collect(),
    }
}

fn digests(text: &str) -> Table<ViewId, Digest> {
    let digest = |view: &str| Digest::of(format!("{view}{text}").as_bytes());
    RULERS.map(|v| (v.parse().expect("id"), digest(v))).into()
}

/// A run in search whose tree is `size` imports: a third failed, many ties, random parents.
pub(crate) fn imported(size: u32) -> RunState {
    let mut random = Mt19937::new(SearchSeed(1));
    let mut state = RunState::new();
    let apply = |state: &mut RunState, event: Event| {
        state
            .apply(T0, &event)
            .unwrap_or_else(|error| panic!("{error}"));
    };
    apply(&mut state, start(10, size));
    let mut scored: Vec<NodeId> = Vec::new();
    for index in 0..size {
        let below = |random: &mut Mt19937, n: usize| (random.random() * n as f64) as usize;
        let parent = (!scored.is_empty() && random.random() < 0.8)
            .then(|| scored[below(&mut random, scored.len())]);
        let is_scored = random.random() < 0.7;
        if is_scored {
            scored.push(NodeId(index));
        }
        let total = (random.random() * 4_000.0).round() / 100.0 + 20.0;
        let import = import(index, parent, is_scored.then_some(total));
        let node = NodeId(index);
        apply(
            &mut state,
            Event::Imported {
                node,
                import: Box::new(import),
            },
        );
    }
    // Seeding: the baseline is executed and scored; then the first draw is due.
    let world = World { at: T0 };
    let mut events = Vec::new();
    loop {
        let batch = state.decide(T0);
        if matches!(batch.first(), Some(Event::Draw { .. })) {
            return state;
        }
        for event in batch {
            world.store(&mut state, &mut events, event);
        }
        world.end_one(&mut state, &mut events);
    }
}

fn import(index: u32, parent: Option<NodeId>, total: Option<f64>) -> Import {
    let end = match total {
        Some(total) => ImportEnd::Scored {
            commit: commit(&index.to_string()),
            digests: digests(&index.to_string()),
            scores: BTreeMap::from([(ExecName::Seed(ProgramSeed(0)), report(total))]),
            // Nobody is promoted before the selection that is measured.
            mean: Some(Score::new(total).expect("finite")),
        },
        None => ImportEnd::Faulty {
            commit: commit(&index.to_string()),
            fault: CandidateFault::Crash,
        },
    };
    Import {
        origin: RunNode {
            run: "20270114-080000-bench-abcd".parse().expect("run id"),
            node: NodeId(index),
        },
        operator: if parent.is_some() {
            Operator::Improve
        } else {
            Operator::Draft
        },
        parent,
        family: Some("a".parse().expect("id")),
        drawn_family: parent.is_none().then(|| "a".parse().expect("id")),
        seed_program: None,
        end,
        review: Some(ReviewVerdict::Pass),
        no_progress: false,
        same_as_parent: false,
        method_auto: false,
        view_dependent: false,
        refuted: None,
        resumed: None,
    }
}

/// Every effect ends at once.
struct World {
    at: UnixMs,
}

impl World {
    fn turn(&self, state: &mut RunState, events: &mut Vec<Stored>) {
        loop {
            let batch = state.decide(self.at);
            if batch.is_empty() {
                break;
            }
            for event in batch {
                self.store(state, events, event);
            }
        }
        self.end_one(state, events);
    }

    fn end_one(&self, state: &mut RunState, events: &mut Vec<Stored>) {
        if let Some(effect) = state.wanted().into_iter().next() {
            let end = outcome(state, &effect);
            self.store(state, events, Event::EffectEnded { effect, end });
        }
    }

    fn store(&self, state: &mut RunState, events: &mut Vec<Stored>, event: Event) {
        state
            .apply(self.at, &event)
            .unwrap_or_else(|error| panic!("{error}"));
        events.push((self.at, event));
    }
}

/// All events of a run of `nodes` nodes, and the bytes of texts that its nodes carry.
pub(crate) fn grown(nodes: u32) -> (Vec<Stored>, u64) {
    let mut state = RunState::new();
    let mut events = Vec::new();
    let mut world = World { at: T0 };
    world.store(&mut state, &mut events, start(nodes, 0));
    while state.outcome().is_none() {
        world.turn(&mut state, &mut events);
        world.at = world.at.plus_ms(1);
    }
    let texts: BTreeSet<(NodeId, usize)> = state
        .nodes()
        .map(|node| {
            (
                node.id,
                node.plan.map_or(0, |p| p.name.len() + p.approach.len()),
            )
        })
        .collect();
    let bytes = texts.iter().map(|(_, bytes)| *bytes as u64).sum();
    (events, bytes)
}

fn outcome(state: &RunState, effect: &Effect) -> Outcome {
    let id = effect.id().to_string();
    let noise = f64::from(Digest::of(id.as_bytes()).as_bytes()[0]);
    match effect {
        Effect::ImportSeed { .. } => Outcome::Imported {
            commit: commit(&id),
        },
        Effect::Plan { .. } => Outcome::Planned {
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
        },
        Effect::Comply { .. } => Outcome::Complied {
            removed: 0,
            emptied: false,
        },
        Effect::Engineer { .. } => Outcome::Engineered {
            session: SessionReport {
                end: EngineerEnd::Finished,
                method: MethodState::Written {
                    first_line: "method".to_owned(),
                },
                has_run_py: true,
                commit: Some(commit(&id)),
                queries_used: Some(2),
                wall_ms: 1_000,
            },
        },
        Effect::Execute { exec, .. } => Outcome::Executed {
            report: executed(state, *exec, &id, noise),
        },
        Effect::Score { node, .. } => Outcome::Scored {
            result: ScoreResult::Done {
                report: report(50.0 + f64::from(node.0).sqrt() * 0.1 + noise / 64.0),
            },
        },
        Effect::Analyze { .. } => Outcome::Analyzed {
            written: true,
            family: None,
        },
        Effect::Review { .. } => Outcome::Reviewed {
            verdict: ReviewVerdict::Pass,
        },
        Effect::Place { .. } => Outcome::Placed {
            sha256: Some(Digest::of(id.as_bytes())),
        },
    }
}

fn executed(state: &RunState, exec: ExecName, id: &str, noise: f64) -> ExecReport {
    let mut digests = digests(id);
    if exec == ExecName::Final {
        let view = state.policy().expect("started").final_view.clone();
        digests = [(view, Digest::of(id.as_bytes()))].into();
    }
    let wall_ms = digests.keys().map(|view| (view.clone(), 1_000)).collect();
    let is_faulty =
        exec == ExecName::Seed(ProgramSeed(0)) && noise > 200.0 && !id.ends_with("-0-seed0");
    ExecReport {
        result: if is_faulty {
            ExecResult::Fault {
                fault: CandidateFault::Crash,
                detail: "exit status 1".to_owned(),
            }
        } else {
            ExecResult::Done { digests }
        },
        wall_ms,
        max_rss_kib: Some(100_000),
        harness_ms: 10,
    }
}
