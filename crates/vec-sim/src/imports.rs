//! Seeded imports: what a run takes over from an earlier one, of every kind and shape.

use std::collections::BTreeMap;

use vec_search::{
    CarriedKind, CommitInfo, EngineerEnd, Event, Import, ImportEnd, MethodState, Policy,
    ReviewVerdict, SessionReport,
};
use vec_types::{
    CandidateFault, Digest, ExecName, FamilyId, NodeId, Operator, ProgramSeed, RunNode, Score,
    ScoreReport, SeedState, ViewId,
};

use crate::fixture::{commit, plan, score_report};
use crate::random::Random;

/// The run that the imports are from, and the one before it, which carried-over work may be from.
const RUNS: [&str; 2] = [
    "20270114-080000-diabetes-abcd",
    "20270113-080000-diabetes-abcd",
];

/// The facts that import `policy.continuation.imports` nodes, in order.
///
/// # Panics
/// Never: the ids are well-formed.
#[must_use]
pub(crate) fn facts(policy: &Policy, random: &mut Random) -> Vec<Event> {
    let imports = 0..policy.continuation.imports;
    imports
        .map(|node| Event::Imported {
            node: NodeId(node),
            import: Box::new(import(node, policy, random)),
        })
        .collect()
}

fn run_node(run: usize, node: u32) -> RunNode {
    let text = format!("{}#{node}", RUNS[run]);
    text.parse().expect("run and node")
}

fn import(node: u32, policy: &Policy, random: &mut Random) -> Import {
    let parent = (node > 0 && random.hits(60)).then(|| NodeId(random.small(u64::from(node))));
    let family = any_family(policy, random);
    let operator = operator(parent, random);
    let drafted = operator == Operator::Draft;
    Import {
        origin: run_node(0, node),
        operator,
        parent,
        family: family.clone(),
        drawn_family: if random.hits(80) {
            family.filter(|_| drafted)
        } else {
            any_family(policy, random).filter(|_| drafted)
        },
        seed_program: (operator == Operator::Seed).then(|| seed_program(random)),
        end: end(node, policy, random),
        review: match random.below(4) {
            0 => Some(ReviewVerdict::Pass),
            1 => Some(ReviewVerdict::Fail),
            _ => None,
        },
        no_progress: random.hits(10),
        same_as_parent: random.hits(5),
        method_auto: random.hits(10),
        view_dependent: random.hits(10),
        refuted: random.hits(10).then(|| "tried: no gain".to_owned()),
        resumed: (operator == Operator::Resume).then(|| work(node, random)),
    }
}

fn any_family(policy: &Policy, random: &mut Random) -> Option<FamilyId> {
    let place = random.index(policy.families.len() + 1);
    policy.families.get(place).map(|family| family.id.clone())
}

fn operator(parent: Option<NodeId>, random: &mut Random) -> Operator {
    let choices: &[Operator] = match parent {
        Some(_) => &[
            Operator::Improve,
            Operator::Improve,
            Operator::Debug,
            Operator::Resume,
        ],
        None => &[Operator::Draft, Operator::Draft, Operator::Seed],
    };
    choices[random.index(choices.len())]
}

fn seed_program(random: &mut Random) -> (vec_types::SeedProgramId, SeedState) {
    let states = [
        SeedState::Anchor,
        SeedState::Exploration,
        SeedState::ReferenceOnly,
    ];
    let id = "ols".parse().expect("id");
    (id, states[random.index(states.len())])
}

/// Few different works, so that some are carried twice or were resumed before.
fn work(node: u32, random: &mut Random) -> RunNode {
    run_node(
        1,
        if random.hits(50) {
            random.small(6)
        } else {
            node + 10
        },
    )
}

fn end(node: u32, policy: &Policy, random: &mut Random) -> ImportEnd {
    let is_twin = random.hits(10);
    let commit = commit(&if is_twin {
        "twin".to_owned()
    } else {
        format!("import{node}")
    });
    let faults = [
        CandidateFault::Crash,
        CandidateFault::Timeout,
        CandidateFault::InvalidFormat,
    ];
    match random.below(12) {
        0..=4 => scored(node, commit, policy, random),
        5 | 6 => ImportEnd::Unscored {
            commit,
            ranking: score(random),
        },
        7 => ImportEnd::GenFailed,
        8 => ImportEnd::GenEmpty,
        9 => ImportEnd::Faulty {
            commit,
            fault: faults[random.index(faults.len())],
        },
        _ => ImportEnd::CarriedOver {
            work: work(node, random),
            kind: Box::new(carried(node, random)),
        },
    }
}

fn scored(node: u32, commit: CommitInfo, policy: &Policy, random: &mut Random) -> ImportEnd {
    let mut seeds = vec![ProgramSeed(0)];
    let is_promoted = random.hits(40);
    if is_promoted {
        seeds.extend(&policy.promotion_seeds);
    }
    let scores: BTreeMap<ExecName, ScoreReport> = seeds
        .iter()
        .map(|seed| {
            let report = score_report(policy, score(random));
            (ExecName::Seed(*seed), report)
        })
        .collect();
    let sum: f64 = scores.values().map(|report| report.total.get()).sum();
    let mean = Score::new(sum / f64::from(u32::try_from(scores.len()).unwrap_or(1)));
    let text = if random.hits(15) {
        "shared".to_owned()
    } else {
        format!("import{node}")
    };
    let digest = |view: &ViewId| Digest::of(format!("{view}{text}/seed0").as_bytes());
    let views = policy.objective_views().into_iter();
    ImportEnd::Scored {
        commit,
        digests: views.map(|view| (view.clone(), digest(view))).collect(),
        scores,
        mean: mean.ok().filter(|_| is_promoted),
    }
}

fn score(random: &mut Random) -> Score {
    let points = 50.0 + random.normal();
    let points = if random.hits(40) {
        points.round()
    } else {
        points
    };
    Score::new(points).expect("finite")
}

fn carried(node: u32, random: &mut Random) -> CarriedKind {
    let plan = plan(None);
    if random.hits(50) {
        return CarriedKind::Engineer { plan };
    }
    CarriedKind::Execution {
        plan,
        session: SessionReport {
            end: EngineerEnd::HandOff,
            has_run_py: true,
            method: MethodState::Written {
                first_line: "method".to_owned(),
            },
            commit: Some(commit(&format!("carried{node}"))),
            queries_used: None,
            wall_ms: 1_000,
        },
    }
}
