//! Tests of `event`.

use vec_search::{ExecReport, SkipReason};
use vec_types::{
    CandidateFault, Digest, ExecName, InfraFault, NodeStatus, Operator, Parts, Phase, ProgramSeed,
    Score, ScoreReport, StopReason, Table,
};

use super::*;

fn line(event: &Event) -> String {
    event_line(12, UnixMs(1_798_761_599_999), event)
}

fn execute() -> Effect {
    Effect::Execute {
        node: NodeId(3),
        exec: ExecName::Seed(ProgramSeed(0)),
    }
}

fn score(value: f64) -> Score {
    Score::new(value).expect("finite")
}

fn executed(end: Outcome) -> Event {
    Event::EffectEnded {
        effect: execute(),
        end,
    }
}

fn report(result: ExecResult) -> Outcome {
    Outcome::Executed {
        report: ExecReport {
            result,
            wall_ms: [("main".parse().expect("view"), 1_250)].into(),
            max_rss_kib: None,
            harness_ms: 3,
        },
    }
}

#[test]
fn decisions_are_aligned_and_say_what_was_decided() {
    let created = Event::NodeCreated {
        node: NodeId(3),
        operator: Operator::Improve,
        parent: Some(NodeId(1)),
        family: Some("linear".parse().expect("family")),
        seed_program: None,
    };
    let settled = Event::NodeSettled {
        node: NodeId(3),
        status: NodeStatus::Scored,
        no_progress: true,
        same_as_parent: false,
        budget_cut: false,
        epoch: 0,
        detail: String::new(),
        inputs_digest: Digest::ZERO,
    };
    let phase = Event::PhaseChange {
        from: Phase::Seeding,
        to: Phase::Search,
    };
    let skipped = Event::CandidateSkipped {
        node: NodeId(3),
        why: SkipReason::Review,
    };
    let stop = Event::Stop {
        reason: StopReason::Budget,
        detail: "16 nodes".to_owned(),
        inputs_digest: Digest::ZERO,
    };
    let lines = [&phase, &created, &settled, &skipped, &stop].map(line);
    assert_eq!(
        lines,
        [
            "   12  23:59:59.999  phase_change               seeding -> search",
            "   12  23:59:59.999  node_created        #3     improve of #1, family linear",
            "   12  23:59:59.999  node_settled        #3     scored, no progress",
            "   12  23:59:59.999  candidate_skipped   #3     out: review",
            "   12  23:59:59.999  stop                       budget: 16 nodes",
        ]
    );
}

#[test]
fn executions_say_how_they_ended() {
    let started = Event::EffectStarted { effect: execute() };
    let done = executed(report(ExecResult::Done {
        digests: Table::new(),
    }));
    let crashed = executed(report(ExecResult::Fault {
        fault: CandidateFault::Crash,
        detail: "exit 1".to_owned(),
    }));
    let interrupted = executed(Outcome::Interrupted {
        fault: InfraFault::Interrupted,
        detail: "restart".to_owned(),
    });
    let lines = [&started, &done, &crashed, &interrupted].map(line);
    assert_eq!(
        lines,
        [
            "   12  23:59:59.999  execute_start       #3     seed0",
            "   12  23:59:59.999  execute_end         #3     seed0: done in 1.25 s",
            "   12  23:59:59.999  execute_end         #3     seed0: crash: exit 1",
            "   12  23:59:59.999  execute_end         #3     seed0: interrupted: restart",
        ]
    );
}

#[test]
fn the_guard_shows_its_numbers() {
    let pair = |candidate: Option<f64>| Pair {
        seed: ProgramSeed(3),
        candidate: candidate.map(score),
        baseline: Some(score(50.0)),
    };
    let event = Event::GuardResult {
        candidate: NodeId(7),
        pairs: vec![pair(Some(60.0)), pair(None)],
        mean: None,
        sd: None,
        lower_bound: None,
        complete: false,
        replace: false,
        why: "a pair is missing".to_owned(),
        inputs_digest: Digest::ZERO,
    };
    let text = line(&event);
    assert!(
        text.ends_with("keep the baseline; 1 of 2 pairs, gain -, lower bound -: a pair is missing"),
        "{text}"
    );
}

#[test]
fn scores_are_shown_and_long_texts_of_models_are_cut_to_one_line() {
    let event = |end| Event::EffectEnded {
        effect: Effect::Score {
            node: NodeId(3),
            exec: ExecName::Final,
        },
        end,
    };
    let scored = Outcome::Scored {
        result: ScoreResult::Done {
            report: ScoreReport {
                total: score(61.25),
                components: Table::new(),
                parts: Parts::default(),
            },
        },
    };
    assert!(line(&event(scored)).ends_with("final: score 61.2500"));
    let long = Outcome::Scored {
        result: ScoreResult::InvalidFormat {
            detail: "a\nb ".repeat(100),
        },
    };
    let text = line(&event(long));
    assert!(!text.contains('\n') && text.ends_with('…'), "{text}");
    assert_eq!(text.chars().count(), 48 + FACTS_CHARS_MAX);
}
