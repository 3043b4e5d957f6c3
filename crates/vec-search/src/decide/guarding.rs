//! The guard and the answer: exactly one candidate runs against the baseline on fresh seeds; only a
//! complete guard with a lower bound above 0 replaces it (FIN-07, FIN-09, FIN-11).

use vec_types::{ExecName, NodeId, ProgramSeed, UnixMs};

use super::finale::{FinalRun, Step, place, run_final};
use super::{first_failure, next_rerun, start};
use crate::identity::rerun_output;
use crate::inputs::sides_digest;
use crate::state::{Finale, GuardRun, Run};
use crate::{Effect, Event, GuardVerdict, Pair, SkipReason, guard_stats};

pub(super) fn advance(run: &Run, finale: &Finale, at: UnixMs) -> Vec<Event> {
    let step = match (&finale.guard, &finale.verdict) {
        (None, _) => pick(run, finale, at),
        (Some(guard), None) => measure(run, finale, guard, at),
        (Some(guard), Some(verdict)) if verdict.replace => {
            replace(run, finale, guard.candidate, at)
        }
        (Some(_), Some(_)) => Step::Passed,
    };
    match step {
        Step::Do(batch) => batch,
        Step::Wait => Vec::new(),
        Step::Passed => keep_baseline(run, finale),
    }
}

/// The one candidate: the largest mean over three seeds, the older among equals.
fn pick(run: &Run, finale: &Finale, at: UnixMs) -> Step {
    let best = finale
        .remaining()
        .filter_map(|id| Some((run.node(id)?.ranking_score()?, std::cmp::Reverse(id))))
        .max();
    let Some((_, std::cmp::Reverse(candidate))) = best else {
        return Step::Passed;
    };
    Step::Do(vec![if at >= run.deadlines().guard_deadline {
        Event::CandidateSkipped {
            node: candidate,
            why: SkipReason::Deadline,
        }
    } else {
        Event::GuardStart {
            candidate,
            baseline: finale.baseline,
            seeds: run.policy.guard.fresh_seeds.clone(),
        }
    }])
}

/// Both sides, seed by seed. The first seed that fails ends the guard: it can only be incomplete.
fn measure(run: &Run, finale: &Finale, guard: &GuardRun, at: UnixMs) -> Step {
    let sides = [guard.candidate, finale.baseline];
    let reruns: Vec<(NodeId, ExecName)> = guard
        .seeds
        .iter()
        .flat_map(|seed| sides.map(|node| (node, ExecName::Fresh(*seed))))
        .collect();
    let is_in = |(node, exec): &(NodeId, ExecName)| {
        run.node(*node)
            .is_some_and(|node| node.score(*exec).is_some())
    };
    let problem = first_failure(run, &reruns).or_else(|| {
        let late = at >= run.deadlines().guard_deadline && !reruns.iter().all(is_in);
        late.then(|| "the guard's deadline came before all fresh seeds were in".to_owned())
    });
    if problem.is_none() && !reruns.iter().all(is_in) {
        return match next_rerun(run, &reruns, run.rerun_limit()) {
            Some(effect) => Step::Do(start(effect)),
            None => Step::Wait,
        };
    }
    Step::Do(vec![result(run, finale, guard, problem)])
}

fn result(run: &Run, finale: &Finale, guard: &GuardRun, problem: Option<String>) -> Event {
    let pairs: Vec<Pair> = guard
        .seeds
        .iter()
        .map(|seed| pair(run, finale, guard.candidate, *seed))
        .collect();
    let execs: Vec<ExecName> = guard.seeds.iter().map(|s| ExecName::Fresh(*s)).collect();
    let outputs_differ = execs.iter().any(|exec| {
        let output = |node| rerun_output(run.rerun(node, *exec)?, &run.views);
        output(guard.candidate) != output(finale.baseline)
    });
    let verdict = judge(guard.candidate, pairs, outputs_differ, problem);
    Event::GuardResult {
        candidate: verdict.candidate,
        pairs: verdict.pairs,
        mean: verdict.mean,
        sd: verdict.sd,
        lower_bound: verdict.lower_bound,
        complete: verdict.complete,
        replace: verdict.replace,
        why: verdict.why,
        inputs_digest: sides_digest(run, [guard.candidate, finale.baseline], &execs),
    }
}

fn pair(run: &Run, finale: &Finale, candidate: NodeId, seed: ProgramSeed) -> Pair {
    let score = |node: NodeId| {
        let report = run.node(node)?.score(ExecName::Fresh(seed))?;
        Some(report.total)
    };
    Pair {
        seed,
        candidate: score(candidate),
        baseline: score(finale.baseline),
    }
}

/// The verdict on pairs; `problem` says why they are not complete. Pure, so that the guard's error
/// rate can be simulated without a run.
pub(crate) fn judge(
    candidate: NodeId,
    pairs: Vec<Pair>,
    outputs_differ: bool,
    problem: Option<String>,
) -> GuardVerdict {
    let gains: Option<Vec<f64>> = pairs
        .iter()
        .map(|pair| Some(pair.candidate?.get() - pair.baseline?.get()))
        .collect();
    let stats = gains.as_deref().and_then(guard_stats);
    let problem = problem.or_else(|| match &stats {
        None => Some("a fresh seed has no score on both sides".to_owned()),
        Some(stats) if stats.sd == 0.0 && outputs_differ => Some(
            "every fresh seed gave the same gain although the outputs differ, so the spread is \
             unknown"
                .to_owned(),
        ),
        Some(_) => None,
    });
    let stats = stats.filter(|_| problem.is_none());
    let replace = stats.is_some_and(|stats| stats.sd > 0.0 && stats.lower_bound > 0.0);
    let why = match (problem, stats) {
        (Some(why), _) => format!("incomplete, the baseline is kept: {why}"),
        (None, Some(stats)) if replace => {
            format!(
                "lower bound {:.4} > 0: the candidate replaces the baseline",
                stats.lower_bound
            )
        }
        (None, Some(stats)) => {
            format!(
                "lower bound {:.4} is not above 0: the baseline is kept",
                stats.lower_bound
            )
        }
        (None, None) => "no figures: the baseline is kept".to_owned(),
    };
    GuardVerdict {
        candidate,
        pairs,
        mean: stats.map(|stats| stats.mean),
        sd: stats.map(|stats| stats.sd),
        lower_bound: stats.map(|stats| stats.lower_bound),
        complete: stats.is_some(),
        replace,
        why,
    }
}

/// The candidate's answer takes the baseline's place, if it can be made in time.
fn replace(run: &Run, finale: &Finale, candidate: NodeId, at: UnixMs) -> Step {
    match finale.placed.get(&(candidate, false)) {
        Some(Some(_)) => {
            return Step::Do(vec![Event::WinnerChosen {
                node: candidate,
                is_baseline: false,
            }]);
        }
        Some(None) => return Step::Passed,
        None if is_keeping(run, finale) => return Step::Passed,
        None => {}
    }
    let is_late = at >= run.times.place_deadline;
    match run_final(run, candidate) {
        FinalRun::Done => place(run, candidate, false),
        FinalRun::Failed(_) => Step::Passed,
        FinalRun::Start(_) | FinalRun::Open if is_late => Step::Passed,
        FinalRun::Start(effect) => Step::Do(start(effect)),
        FinalRun::Open => Step::Wait,
    }
}

/// Was the baseline already settled on? Then a late run of the candidate changes nothing.
fn is_keeping(run: &Run, finale: &Finale) -> bool {
    let (node, provisional) = (finale.baseline, false);
    finale.placed.contains_key(&(node, provisional))
        || run.is_in_work(&Effect::Place { node, provisional })
}

/// The baseline stays: SELECTION.md is rewritten with what ran (FIN-12), then it is the answer. Its
/// prediction is in `final/` already, so a failed rewrite changes nothing about that.
fn keep_baseline(run: &Run, finale: &Finale) -> Vec<Event> {
    let baseline = finale.baseline;
    if finale.placed.contains_key(&(baseline, false)) {
        return vec![Event::WinnerChosen {
            node: baseline,
            is_baseline: true,
        }];
    }
    match place(run, baseline, false) {
        Step::Do(batch) => batch,
        Step::Wait | Step::Passed => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Beta, ContinuousCDF};
    use vec_types::{Score, SearchSeed};

    use super::*;
    use crate::Mt19937;

    const RUNS: u32 = 10_000;

    /// Guards that replace, of 10,000 with five gains of mean `shift` and spread 1 around it.
    fn replacements(shift: f64) -> u32 {
        let mut random = Mt19937::new(SearchSeed(20_260_130));
        let mut normal = || (0..12).map(|_| random.random()).sum::<f64>() - 6.0;
        let mut replaced = 0;
        for _ in 0..RUNS {
            let pairs = (3..8)
                .map(|seed| Pair {
                    seed: ProgramSeed(seed),
                    candidate: Score::new(50.0 + shift + normal()).ok(),
                    baseline: Score::new(50.0 + normal()).ok(),
                })
                .collect();
            replaced += u32::from(judge(NodeId(1), pairs, true, None).replace);
        }
        replaced
    }

    /// Lower end of the exact (Clopper-Pearson) one-sided 99 % interval of a rate.
    fn lower_bound_99(hits: u32) -> f64 {
        let (hits, misses) = (f64::from(hits), f64::from(RUNS - hits));
        let beta = Beta::new(hits, misses + 1.0).expect("positive parameters");
        beta.inverse_cdf(0.01)
    }

    #[test]
    fn equal_sides_are_replaced_in_at_most_one_of_forty_guards() {
        let replaced = replacements(0.0);
        assert!(replaced > 0);
        let bound = lower_bound_99(replaced);
        assert!(bound <= 0.025, "{replaced} of {RUNS}, bound {bound}");
    }

    #[test]
    fn the_simulation_would_notice_a_guard_that_is_too_easy() {
        // A shift of a third of the spread stands for a bound that is too lenient.
        assert!(lower_bound_99(replacements(0.3)) > 0.025);
        assert!(replacements(5.0) > RUNS * 9 / 10, "a clear gain is seen");
    }
}
