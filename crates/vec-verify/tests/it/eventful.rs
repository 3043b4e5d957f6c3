//! A run in memory in which everything happens: imports, carried-over work, re-scoring, an epoch,
//! a restart, every kind of fault, failed promotions and reviews.

use vec_search::{
    CarriedKind, CommitInfo, Continuation, Draft, Effect, Event, ExecResult, Import, ImportEnd,
    Outcome, PlanResult, Plateau, Policy, Reserve, ReviewVerdict, RunState, ScoreResult,
};
use vec_store::StoredEvent;
use vec_types::{
    CandidateFault, Digest, ExecName, InfraFault, NodeId, Operator, ProgramSeed, RunNode, Score,
    UnixMs, canonical_json,
};

use crate::fixture::{Made, T0, plan, run_id, score_report};

/// Facts before the epoch advances, and before the controller is restarted.
const EPOCH_AT: u32 = 60;
const RESTART_AT: u32 = 90;

/// Its events, as they would be stored.
pub(crate) fn rows(made: &Made) -> Vec<StoredEvent> {
    let mut run = Run {
        state: RunState::new(),
        now: T0,
        rows: Vec::new(),
        batch: 0,
    };
    run.fact(Event::RunStart {
        run: run_id(),
        policy: Box::new(policy(&made.policy)),
    });
    for (node, import) in (0..).zip(imports()) {
        let (node, import) = (NodeId(node), Box::new(import));
        run.fact(Event::Imported { node, import });
    }
    for facts in 0_u32.. {
        assert!(facts < 2_000, "the run does not end");
        if run.state.outcome().is_some() {
            break;
        }
        run.step(made, facts);
    }
    run.rows
}

struct Run {
    state: RunState,
    now: UnixMs,
    rows: Vec<StoredEvent>,
    batch: u64,
}

impl Run {
    fn step(&mut self, made: &Made, facts: u32) {
        self.now = self.now.plus_ms(100);
        if facts == EPOCH_AT {
            let (epoch, added) = (1, vec!["more".to_owned()]);
            return self.fact(Event::EpochAdvance { epoch, added });
        }
        if facts == RESTART_AT {
            return self.fact(Event::RunResume { start: 1 });
        }
        let Some(effect) = self.state.wanted().into_iter().next() else {
            self.now = self.state.next_deadline(self.now).expect("a deadline");
            return self.decisions();
        };
        let end = answer(made, &effect);
        self.fact(Event::EffectEnded { effect, end });
    }

    fn fact(&mut self, fact: Event) {
        self.store(&[fact]);
        self.decisions();
    }

    fn decisions(&mut self) {
        loop {
            let batch = self.state.decide(self.now);
            if batch.is_empty() {
                return;
            }
            self.store(&batch);
        }
    }

    fn store(&mut self, events: &[Event]) {
        self.batch += 1;
        for event in events {
            self.state.apply(self.now, event).expect("fits");
            let json = canonical_json(event).expect("encodes");
            self.rows.push(StoredEvent {
                seq: self.rows.len() as u64 + 1,
                batch: self.batch,
                at: self.now,
                kind: event.kind(),
                node: event.node(),
                json: String::from_utf8(json).expect("text"),
                prev: Digest::ZERO,
                hash: Digest::ZERO,
            });
        }
    }
}

/// The demo's rules with everything switched on.
fn policy(locked: &Policy) -> Policy {
    let mut policy = locked.clone();
    policy.concurrency_nodes = 2;
    policy.draft = Draft::CoverageBandit {
        failed_cap: 1,
        min_explore: 0.5,
    };
    policy.plateau = Plateau {
        enabled: true,
        window: 3,
        top_k: 1,
        draft_p: 0.5,
    };
    policy.reserve = Some(Reserve {
        margin_ms: 1_000,
        queue_ms: 100,
        time_limit_ms: 6_000,
    });
    policy.continuation = Continuation {
        imports: 6,
        rescore_top_k: 1,
        max_resume: 1,
    };
    policy
}

fn imports() -> Vec<Import> {
    let scored = || ImportEnd::Scored {
        commit: commit("import"),
        digests: [("main".parse().expect("view"), Digest::of(b"import"))].into(),
        scores: [(0, 51.0), (1, 52.0), (2, 53.0)]
            .map(|(seed, total)| (ExecName::Seed(ProgramSeed(seed)), score_report(total)))
            .into(),
        mean: Some(score(52.0)),
    };
    let unscored = |ranking| ImportEnd::Unscored {
        commit: commit("unscored"),
        ranking: score(ranking),
    };
    let work = CarriedKind::Engineer {
        plan: plan(NodeId(5)),
    };
    let ends = [
        scored(),
        unscored(70.0),
        unscored(40.0),
        ImportEnd::Faulty {
            commit: commit("faulty"),
            fault: CandidateFault::Timeout,
        },
        ImportEnd::GenFailed,
        ImportEnd::CarriedOver {
            work: origin(5),
            kind: Box::new(work),
        },
    ];
    (0..)
        .zip(ends)
        .map(|(node, end)| import(node, end))
        .collect()
}

fn import(node: u32, end: ImportEnd) -> Import {
    Import {
        origin: origin(node),
        operator: match node {
            0 => Operator::Draft,
            _ => Operator::Improve,
        },
        parent: (node > 0).then_some(NodeId(0)),
        family: Some("linear".parse().expect("family")),
        drawn_family: (node == 0).then(|| "linear".parse().expect("family")),
        seed_program: None,
        end,
        review: (node == 0).then_some(ReviewVerdict::Pass),
        no_progress: false,
        same_as_parent: false,
        method_auto: false,
        view_dependent: false,
        refuted: None,
        resumed: None,
    }
}

fn origin(node: u32) -> RunNode {
    let text = format!("20270114-080000-diabetes-abcd#{node}");
    text.parse().expect("a node of a run")
}

fn score(value: f64) -> Score {
    Score::new(value).expect("finite")
}

fn commit(text: &str) -> CommitInfo {
    let id = |kind: &str| {
        let digest = Digest::of(format!("{kind}{text}").as_bytes());
        digest.to_string().parse().expect("tree id")
    };
    CommitInfo {
        commit: id("commit"),
        tree: id("tree"),
        runtime_key: id("key"),
    }
}

/// What the fixture answers, but for the nodes to which something happens.
fn answer(made: &Made, effect: &Effect) -> Outcome {
    let node = effect.node().0;
    let second = ExecName::Seed(ProgramSeed(2));
    let lost = |fault| Outcome::Interrupted {
        fault,
        detail: "lost".to_owned(),
    };
    match effect {
        Effect::Plan { .. } if node % 9 == 4 => Outcome::Planned {
            result: PlanResult::Invalid {
                error: "no name".to_owned(),
            },
        },
        Effect::Execute { exec, .. } if node % 7 == 3 || node % 5 == 4 && *exec == second => {
            crashed(made, effect)
        }
        Effect::Score { exec, .. } if node % 7 == 5 && *exec != ExecName::Final => {
            let detail = "a row is missing".to_owned();
            let result = ScoreResult::InvalidFormat { detail };
            Outcome::Scored { result }
        }
        Effect::Score { exec, .. } if node % 5 == 2 && *exec == second => {
            lost(InfraFault::ScoreError)
        }
        Effect::Score { exec, .. } if node == 8 && *exec != second => lost(InfraFault::ScoreError),
        Effect::Score { .. } if node == 11 => {
            // A scorer that leaves out a component.
            let mut report = score_report(60.0);
            report.components = [].into();
            let result = ScoreResult::Done { report };
            Outcome::Scored { result }
        }
        Effect::Score { .. } => {
            // They rise and fall, so that the search stands still at times.
            let report = score_report(50.0 + f64::from(node * 7 % 11));
            let result = ScoreResult::Done { report };
            Outcome::Scored { result }
        }
        Effect::Review { .. } if node % 4 == 1 => Outcome::Reviewed {
            verdict: ReviewVerdict::Fail,
        },
        Effect::Review { attempt: 0, .. } => Outcome::Reviewed {
            verdict: ReviewVerdict::Error,
        },
        Effect::Analyze { .. } if node % 6 == 1 => lost(InfraFault::Interrupted),
        Effect::ImportSeed { .. } | Effect::Engineer { .. } => committed(made, effect),
        _ => made.answer(effect).1,
    }
}

/// The program's fault, with the times of a real execution.
fn crashed(made: &Made, effect: &Effect) -> Outcome {
    let Outcome::Executed { mut report } = made.answer(effect).1 else {
        panic!("an execution");
    };
    report.result = ExecResult::Fault {
        fault: CandidateFault::Crash,
        detail: "exit 1".to_owned(),
    };
    Outcome::Executed { report }
}

/// A commit without a repository behind it.
fn committed(made: &Made, effect: &Effect) -> Outcome {
    let made_up = commit(&effect.node().to_string());
    match effect {
        Effect::Engineer { .. } => Outcome::Engineered {
            session: crate::fixture::session(made_up),
        },
        Effect::ImportSeed { .. } => Outcome::Imported { commit: made_up },
        _ => made.answer(effect).1,
    }
}
