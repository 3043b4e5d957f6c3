//! Which events of final selection may follow each other.

use vec_types::Phase;

use super::{Finale, Run};
use crate::{CorruptRun, Event};

pub(super) fn check(run: &Run, event: &Event) -> Result<(), CorruptRun> {
    let kind = event.kind();
    if run.phase != Phase::Final {
        let phase = run.phase;
        return Err(CorruptRun::WrongPhase { kind, phase });
    }
    let fits = match (event, &run.finale) {
        (
            Event::FinalStart {
                baseline,
                candidates,
                ..
            },
            None,
        ) => {
            let mut sides = candidates.iter().chain([baseline]);
            if let Some(node) = sides.find(|id| run.node(**id).is_none()) {
                return Err(CorruptRun::UnknownNode { kind, node: *node });
            }
            true
        }
        (Event::FinalGuardRefused { .. }, _) => run.refused.is_none(),
        (event, Some(finale)) => finale_fits(run, finale, event),
        (_, None) => false,
    };
    if fits {
        return Ok(());
    }
    let why = "it does not follow from final selection so far";
    Err(CorruptRun::Final { kind, why })
}

fn finale_fits(run: &Run, finale: &Finale, event: &Event) -> bool {
    match event {
        Event::CandidateSkipped { node, .. } => {
            finale.guard.is_none() && finale.remaining().any(|id| id == *node)
        }
        Event::GuardStart {
            candidate,
            baseline,
            ..
        } => {
            finale.guard.is_none()
                && *baseline == finale.baseline
                && finale.remaining().any(|id| id == *candidate)
                && run.node(*candidate).is_some_and(|node| node.view.is_fit())
        }
        Event::GuardResult { candidate, .. } => {
            let guarded = finale.guard.as_ref().map(|guard| guard.candidate);
            finale.verdict.is_none() && guarded == Some(*candidate)
        }
        Event::WinnerChosen { node, is_baseline } => {
            let expected = if *is_baseline {
                Some(finale.baseline)
            } else {
                let verdict = finale.verdict.as_ref().filter(|verdict| verdict.replace);
                verdict.map(|verdict| verdict.candidate)
            };
            run.winner.is_none() && expected == Some(*node)
        }
        _ => false,
    }
}
