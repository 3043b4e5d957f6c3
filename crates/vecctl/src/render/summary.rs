//! The end of a run on one screen, and where a run stands.

use std::path::PathBuf;

use vec_search::{GuardVerdict, MechanismActive, RankedNode, RunStatus};
use vec_types::Digest;

use crate::render::event::number;

/// What is known about a run at its end, or now.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    pub(crate) status: RunStatus,
    pub(crate) run_dir: Option<PathBuf>,
    /// Head of the ledger's chain.
    pub(crate) ledger_head: Option<Digest>,
    /// Median of the harness's share per node in milliseconds.
    pub(crate) overhead_ms: Option<f64>,
    /// Reasons against submission; `None` = not known here.
    pub(crate) reasons: Option<Vec<String>>,
}

/// Aligned lines, a word and its facts each.
pub(crate) fn summary(finish: &Finish) -> Vec<String> {
    let status = &finish.status;
    let mut lines = vec![
        entry("run", &run_words(status)),
        entry("nodes", &node_words(status)),
    ];
    if !status.running.is_empty() {
        let words: Vec<String> = status
            .running
            .iter()
            .map(|node| format!("#{} {}", node.node, node.stage))
            .collect();
        lines.push(entry("in work", &words.join(", ")));
    }
    let none = || "none scored".to_owned();
    lines.push(entry(
        "best",
        &status.best.as_ref().map_or_else(none, ranked_words),
    ));
    lines.push(entry(
        "baseline",
        &status.baseline.as_ref().map_or_else(none, ranked_words),
    ));
    if let Some(guard) = &status.guard {
        lines.extend(guard_lines(guard));
    }
    let answer = match (&status.winner, &status.refusal) {
        (Some(winner), _) => {
            let is_baseline = status
                .baseline
                .as_ref()
                .is_some_and(|base| base.node == *winner);
            format!(
                "#{winner}, {}",
                if is_baseline {
                    "the baseline"
                } else {
                    "a candidate"
                }
            )
        }
        (None, Some(refusal)) => format!("none: {refusal}"),
        (None, None) => "none yet".to_owned(),
    };
    lines.push(entry("answer", &answer));
    if let Some(ms) = finish.overhead_ms {
        lines.push(entry("harness", &format!("{ms:.0} ms per node (median)")));
    }
    if let Some(reasons) = &finish.reasons {
        let words = match reasons.is_empty() {
            true => "yes".to_owned(),
            false => format!("no: {}", reasons.join("; ")),
        };
        lines.push(entry("submittable", &words));
    }
    if let Some(head) = &finish.ledger_head {
        lines.push(entry("ledger", &head.to_string()));
    }
    if let Some(run_dir) = &finish.run_dir {
        lines.push(entry("files", &run_dir.display().to_string()));
    }
    lines
}

fn entry(word: &str, facts: &str) -> String {
    format!("{word:<12}{facts}")
}

fn run_words(status: &RunStatus) -> String {
    let run = status
        .run
        .as_ref()
        .map_or_else(|| "not started".to_owned(), ToString::to_string);
    let mut text = match (&status.stop_reason, &status.stop_detail) {
        (Some(reason), Some(detail)) => format!("{run}, stopped: {} ({detail})", reason.as_str()),
        (Some(reason), None) => format!("{run}, stopped: {}", reason.as_str()),
        (None, _) => format!("{run}, {:?}", status.phase).to_lowercase(),
    };
    match status.resumes {
        0 => {}
        1 => text.push_str(", 1 restart"),
        many => text.push_str(&format!(", {many} restarts")),
    }
    text
}

fn node_words(status: &RunStatus) -> String {
    let total: u32 = status.nodes.values().sum();
    let mut counts: Vec<(&String, &u32)> = status.nodes.iter().filter(|(_, n)| **n > 0).collect();
    counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let words: Vec<String> = counts
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let seeds = total.saturating_sub(status.created);
    format!(
        "{} of {} and {seeds} seeds: {}",
        status.created,
        status.max_nodes,
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(", ")
        }
    )
}

fn ranked_words(node: &RankedNode) -> String {
    let family = node
        .family
        .as_ref()
        .map(|family| format!(", family {family}"));
    let mechanism = node.mechanism_active.map(MechanismActive::as_str);
    let mechanism = mechanism.map(|word| format!(", mechanism {word}"));
    let view_check = node.view_check.as_ref();
    let view_check = view_check.map(|word| format!(", view check {word}"));
    format!(
        "{}  #{}, {}{} (seeds: {}){}{}",
        node.ranking_score,
        node.node,
        node.operator.as_str(),
        family.unwrap_or_default(),
        node.seeds,
        mechanism.unwrap_or_default(),
        view_check.unwrap_or_default()
    )
}

fn guard_lines(guard: &GuardVerdict) -> Vec<String> {
    let verdict = if guard.replace {
        "replace the baseline"
    } else {
        "keep the baseline"
    };
    let mut lines = vec![
        entry("guard", &format!("{verdict}: {}", guard.why)),
        entry(
            "",
            &format!(
                "gain of #{} on fresh seeds: mean {}, sd {}, lower bound {}",
                guard.candidate,
                number(guard.mean),
                guard
                    .sd
                    .map_or_else(|| "-".to_owned(), |sd| format!("{sd:.4}")),
                number(guard.lower_bound),
            ),
        ),
    ];
    for pair in &guard.pairs {
        let score = |score: Option<vec_types::Score>| {
            score.map_or_else(|| "-".to_owned(), |score| score.to_string())
        };
        lines.push(entry(
            "",
            &format!(
                "seed {:>3}: candidate {:>9}, baseline {:>9}",
                pair.seed.0,
                score(pair.candidate),
                score(pair.baseline)
            ),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use vec_search::Pair;
    use vec_types::{NodeId, Operator, Phase, ProgramSeed, Score, StopReason, UnixMs};

    use super::*;

    fn score(value: f64) -> Score {
        Score::new(value).expect("finite")
    }

    fn node(id: u32, value: f64) -> RankedNode {
        RankedNode {
            node: NodeId(id),
            operator: Operator::Improve,
            family: Some("boosting".parse().expect("family")),
            ranking_score: score(value),
            seeds: 3,
            mechanism_active: None,
            view_check: None,
        }
    }

    fn checked(node: RankedNode) -> RankedNode {
        RankedNode {
            mechanism_active: Some(MechanismActive::Yes),
            view_check: Some("same".to_owned()),
            ..node
        }
    }

    fn finish() -> Finish {
        let counts = [("scored", 3), ("crash", 1), ("running", 0)];
        Finish {
            status: RunStatus {
                run: Some("20261130-101010-diabetes-abcd".parse().expect("id")),
                phase: Phase::Stopped,
                at: UnixMs(0),
                deadlines: None,
                created: 2,
                max_nodes: 16,
                resumes: 1,
                epoch: 0,
                plateau: false,
                nodes: BTreeMap::from(counts.map(|(word, n)| (word.to_owned(), n))),
                executions: 9,
                running: Vec::new(),
                effects: Vec::new(),
                best: Some(checked(node(3, 61.25))),
                baseline: Some(node(0, 50.0)),
                guard: Some(GuardVerdict {
                    candidate: NodeId(3),
                    pairs: vec![Pair {
                        seed: ProgramSeed(7),
                        candidate: Some(score(60.0)),
                        baseline: None,
                    }],
                    mean: Some(1.5),
                    sd: None,
                    lower_bound: Some(-0.25),
                    complete: false,
                    replace: false,
                    why: "a pair is missing".to_owned(),
                }),
                winner: Some(NodeId(0)),
                refusal: None,
                stop_reason: Some(StopReason::Budget),
                stop_detail: Some("16 nodes".to_owned()),
            },
            run_dir: Some("/runs/x".into()),
            ledger_head: Some(Digest::ZERO),
            overhead_ms: Some(41.7),
            reasons: Some(vec!["dirty".to_owned(), "scripted".to_owned()]),
        }
    }

    #[test]
    fn everything_a_person_wants_is_there_and_aligned() {
        let zeros = "0".repeat(64);
        let expected = [
            "run         20261130-101010-diabetes-abcd, stopped: budget (16 nodes), 1 restart",
            "nodes       2 of 16 and 2 seeds: 3 scored, 1 crash",
            "best        61.2500  #3, improve, family boosting (seeds: 3), mechanism yes, view check same",
            "baseline    50.0000  #0, improve, family boosting (seeds: 3)",
            "guard       keep the baseline: a pair is missing",
            "            gain of #3 on fresh seeds: mean +1.5000, sd -, lower bound -0.2500",
            "            seed   7: candidate   60.0000, baseline         -",
            "answer      #0, the baseline",
            "harness     42 ms per node (median)",
            "submittable no: dirty; scripted",
            &format!("ledger      {zeros}"),
            "files       /runs/x",
        ];
        assert_eq!(summary(&finish()), expected);
    }

    #[test]
    fn a_run_that_has_barely_begun_says_so() {
        let mut finish = finish();
        finish.status.phase = Phase::Seeding;
        finish.status.stop_reason = None;
        finish.status.best = None;
        finish.status.guard = None;
        finish.status.winner = None;
        finish.status.resumes = 0;
        let lines = summary(&finish);
        assert_eq!(
            lines[0],
            "run         20261130-101010-diabetes-abcd, seeding"
        );
        assert_eq!(lines[2], "best        none scored");
        assert_eq!(lines[4], "answer      none yet");
    }
}
