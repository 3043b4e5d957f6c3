//! Whose fault the end of an execution on one view was (EXE-05, EXE-06, EXE-09, EXE-11): a pure
//! table over what the sandbox, the accounting, the clock, the collection and the scorer say. What
//! a program prints decides nothing.

use vec_sandbox::{EndedBy, PayloadExit, SandboxReport};
use vec_types::{CandidateFault, InfraFault};

/// The verdict over memory (EXE-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oom {
    /// Memory ended nothing.
    None,
    /// The execution's own limit was hit.
    Candidate,
    /// The machine, or the slice around us, was short.
    Infra,
}

/// Which bound the sandbox's deadline stood for (EXE-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBound {
    /// The program's own time limit.
    Program,
    /// The end of the run's phase came first.
    Phase,
}

/// What became of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// Not tried: the program did not end well.
    NotTried,
    /// Prediction and declared weights are there.
    Done,
    /// No prediction, or one that breaks a cap.
    InvalidFormat,
    /// A declared weight of a first run is no use (PVW-06).
    Untrained,
    /// The harness could not read what may well be there.
    Failed,
}

/// What the scorer said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoring {
    /// Nothing yet, or nothing to score.
    NotAsked,
    /// A score.
    Done,
    /// The prediction fails the format check.
    InvalidFormat,
    /// The scorer failed.
    Failed,
}

/// Everything that is known when an execution has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The helper's account; `None`: there is none, the helper died.
    pub report: Option<&'a SandboxReport>,
    /// Processes that the supervisor could not end.
    pub left: u32,
    /// Our cut: the phase ended or the run gave the execution up.
    pub cut: bool,
    /// What the sandbox's deadline stood for.
    pub bound: TimeBound,
    /// Memory.
    pub oom: Oom,
    /// A stream passed the output limit.
    pub output_killed: bool,
    /// Results.
    pub collection: Collection,
    /// Score.
    pub scoring: Scoring,
}

/// Whose fault it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// Nobody's: a result.
    Done,
    /// The program's.
    Candidate(CandidateFault),
    /// Ours, or the machine's: shelved.
    Infra(InfraFault),
}

/// The table, first row that fits:
///
/// | what | whose |
/// |---|---|
/// | no report, refused set-up, lost control | `interrupted` |
/// | something of the tree is left (EXE-09) | `interrupted` |
/// | cut by us, or the deadline was the phase's | `budget_cut` |
/// | machine short of memory and the program did not succeed | `infra_oom` |
/// | own memory limit hit and the program did not succeed | `oom` |
/// | output limit | `crash` |
/// | own time limit | `timeout` |
/// | any other end than exit code 0 by itself | `crash` |
/// | weights of a first run fail validation | `crash` |
/// | prediction fails the caps or the format check | `invalid_format` |
/// | results unreadable for us | `interrupted` |
/// | the scorer failed | `score_error` |
#[must_use]
pub fn attribute(ending: &Ending<'_>) -> Attribution {
    use Attribution::{Candidate, Done, Infra};
    let Some(report) = ending.report else {
        return Infra(InfraFault::Interrupted);
    };
    if report.setup_error.is_some() || report.ended_by == EndedBy::ControlLost {
        return Infra(InfraFault::Interrupted);
    }
    if !report.tree_gone || ending.left > 0 {
        return Infra(InfraFault::Interrupted);
    }
    let phase_over = report.timed_out && ending.bound == TimeBound::Phase;
    if ending.cut || phase_over {
        return Infra(InfraFault::BudgetCut);
    }
    let succeeded = report.succeeded() && !ending.output_killed;
    match ending.oom {
        Oom::Infra if !succeeded => return Infra(InfraFault::InfraOom),
        Oom::Candidate if !succeeded => return Candidate(CandidateFault::Oom),
        _ => {}
    }
    if ending.output_killed {
        return Candidate(CandidateFault::Crash);
    }
    if report.timed_out {
        return Candidate(CandidateFault::Timeout);
    }
    if !succeeded || report.exit != PayloadExit::Code(0) {
        return Candidate(CandidateFault::Crash);
    }
    match (ending.collection, ending.scoring) {
        (Collection::Untrained, _) => Candidate(CandidateFault::Crash),
        (Collection::InvalidFormat, _) => Candidate(CandidateFault::InvalidFormat),
        // Never a result: what succeeded must be collected.
        (Collection::Failed | Collection::NotTried, _) => Infra(InfraFault::Interrupted),
        (Collection::Done, Scoring::InvalidFormat) => Candidate(CandidateFault::InvalidFormat),
        (Collection::Done, Scoring::Failed) => Infra(InfraFault::ScoreError),
        (Collection::Done, Scoring::NotAsked | Scoring::Done) => Done,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vec_sandbox::{REPORT_SCHEMA, SetupError, SetupStep};

    use super::*;

    fn report(exit: PayloadExit, ended_by: EndedBy) -> SandboxReport {
        SandboxReport {
            schema: REPORT_SCHEMA,
            exit,
            ended_by,
            timed_out: ended_by == EndedBy::Deadline,
            killed_tree: matches!(ended_by, EndedBy::Kill),
            tree_gone: true,
            wall_ms: 1,
            user_ms: 1,
            sys_ms: 1,
            max_rss_kib: 1,
            ids: 1,
            setup_ms: 1,
            setup_error: None,
        }
    }

    fn ending(report: &SandboxReport) -> Ending<'_> {
        Ending {
            report: Some(report),
            left: 0,
            cut: false,
            bound: TimeBound::Program,
            oom: Oom::None,
            output_killed: false,
            collection: Collection::Done,
            scoring: Scoring::Done,
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one row per line of the table")]
    fn every_row_of_the_table() {
        use Attribution::{Candidate, Done, Infra};
        let good = report(PayloadExit::Code(0), EndedBy::Payload);
        let bad = report(PayloadExit::Code(1), EndedBy::Payload);
        let own_kill = report(PayloadExit::Signal(9), EndedBy::Payload);
        let late = report(PayloadExit::Signal(15), EndedBy::Deadline);
        let late_zero = report(PayloadExit::Code(0), EndedBy::Deadline);
        let lost = report(PayloadExit::Signal(9), EndedBy::ControlLost);
        let mut left = good.clone();
        left.tree_gone = false;
        let mut refused = report(PayloadExit::NotStarted, EndedBy::Setup);
        refused.setup_error = Some(SetupError {
            step: SetupStep::Namespaces,
            errno: Some(1),
            message: "m".to_owned(),
            advice: String::new(),
        });
        let crash = Candidate(CandidateFault::Crash);
        let interrupted = Infra(InfraFault::Interrupted);
        type Row<'a> = (&'a str, Ending<'a>, Attribution);
        let rows: Vec<Row<'_>> = vec![
            ("result", ending(&good), Done),
            (
                "unscored",
                Ending {
                    scoring: Scoring::NotAsked,
                    ..ending(&good)
                },
                Done,
            ),
            (
                "no report",
                Ending {
                    report: None,
                    ..ending(&good)
                },
                interrupted,
            ),
            ("set-up", ending(&refused), interrupted),
            ("control lost", ending(&lost), interrupted),
            ("tree left", ending(&left), interrupted),
            (
                "group left",
                Ending {
                    left: 1,
                    ..ending(&good)
                },
                interrupted,
            ),
            (
                "cut",
                Ending {
                    cut: true,
                    ..ending(&late)
                },
                Infra(InfraFault::BudgetCut),
            ),
            (
                "cut, but done",
                Ending {
                    cut: true,
                    ..ending(&good)
                },
                Infra(InfraFault::BudgetCut),
            ),
            (
                "phase",
                Ending {
                    bound: TimeBound::Phase,
                    ..ending(&late)
                },
                Infra(InfraFault::BudgetCut),
            ),
            (
                "time limit",
                ending(&late),
                Candidate(CandidateFault::Timeout),
            ),
            (
                "exit 0 after TERM",
                ending(&late_zero),
                Candidate(CandidateFault::Timeout),
            ),
            (
                "oom",
                Ending {
                    oom: Oom::Candidate,
                    ..ending(&own_kill)
                },
                Candidate(CandidateFault::Oom),
            ),
            (
                "oom before output",
                Ending {
                    oom: Oom::Candidate,
                    output_killed: true,
                    ..ending(&bad)
                },
                Candidate(CandidateFault::Oom),
            ),
            (
                "pressure",
                Ending {
                    oom: Oom::Infra,
                    ..ending(&own_kill)
                },
                Infra(InfraFault::InfraOom),
            ),
            (
                "near the limit only",
                Ending {
                    oom: Oom::Candidate,
                    ..ending(&good)
                },
                Done,
            ),
            (
                "pressure survived",
                Ending {
                    oom: Oom::Infra,
                    ..ending(&good)
                },
                Done,
            ),
            ("own SIGKILL is no escape", ending(&own_kill), crash),
            (
                "flood",
                Ending {
                    output_killed: true,
                    ..ending(&good)
                },
                crash,
            ),
            ("exit 1", ending(&bad), crash),
            (
                "weights",
                Ending {
                    collection: Collection::Untrained,
                    ..ending(&good)
                },
                crash,
            ),
            (
                "no prediction",
                Ending {
                    collection: Collection::InvalidFormat,
                    ..ending(&good)
                },
                Candidate(CandidateFault::InvalidFormat),
            ),
            (
                "unreadable",
                Ending {
                    collection: Collection::Failed,
                    ..ending(&good)
                },
                interrupted,
            ),
            (
                "nothing collected",
                Ending {
                    collection: Collection::NotTried,
                    ..ending(&good)
                },
                interrupted,
            ),
            (
                "format",
                Ending {
                    scoring: Scoring::InvalidFormat,
                    ..ending(&good)
                },
                Candidate(CandidateFault::InvalidFormat),
            ),
            (
                "scorer",
                Ending {
                    scoring: Scoring::Failed,
                    ..ending(&good)
                },
                Infra(InfraFault::ScoreError),
            ),
        ];
        for (name, ending, whose) in rows {
            assert_eq!(attribute(&ending), whose, "{name}");
        }
    }

    proptest! {
        /// What we did, or could not do, never counts against a candidate; and whatever is left
        /// alive is never a result.
        #[test]
        fn our_doing_is_never_the_candidates_fault(
            code in any::<u8>(), timed_out: bool, cut: bool, left in 0_u32..2, gone: bool,
            phase: bool, oom in 0_usize..3, output_killed: bool,
        ) {
            let mut report = report(PayloadExit::Code(code.into()), EndedBy::Payload);
            report.timed_out = timed_out;
            report.tree_gone = gone;
            let ending = Ending {
                left,
                cut,
                bound: if phase { TimeBound::Phase } else { TimeBound::Program },
                oom: [Oom::None, Oom::Candidate, Oom::Infra][oom],
                output_killed,
                ..ending(&report)
            };
            let whose = attribute(&ending);
            if cut || left > 0 || !gone || (timed_out && phase) {
                prop_assert!(matches!(whose, Attribution::Infra(_)), "{:?}", whose);
            }
            if code != 0 {
                prop_assert!(whose != Attribution::Done);
            }
        }
    }
}
