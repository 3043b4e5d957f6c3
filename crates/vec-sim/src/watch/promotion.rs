//! Promotion (PRO, EPO-04): one at a time, every seed measured in the epoch of the promotion, the mean
//! of exactly those seeds.

use vec_search::{Event, RunState};
use vec_types::{ExecName, NodeId, ProgramSeed};

use crate::Invariant::Promotion;
use crate::book::Book;
use crate::must;

/// Sees an event before it is in the book.
pub(super) fn saw(state: &RunState, book: &Book, event: &Event) {
    match event {
        Event::PromotionStart {
            node, epoch, execs, ..
        } => {
            must(*epoch == book.epoch, Promotion, || {
                format!(
                    "node {node} is promoted in epoch {epoch}, it is {}",
                    book.epoch
                )
            });
            let due: Vec<ProgramSeed> = seeds(state)
                .into_iter()
                .filter(|seed| measured(state, book, (*node, *seed, *epoch)).is_none())
                .collect();
            let found: Vec<ProgramSeed> = execs.iter().map(|exec| exec.program_seed()).collect();
            must(found == due, Promotion, || {
                format!("node {node} runs {execs:?} for seeds {due:?} in epoch {epoch}")
            });
        }
        Event::PromotionDone {
            node, epoch, mean, ..
        } => {
            let scores: Option<Vec<f64>> = seeds(state)
                .into_iter()
                .map(|seed| measured(state, book, (*node, seed, *epoch)))
                .collect();
            let due = scores.map(|scores| scores.iter().sum::<f64>() / scores.len() as f64);
            must(due == Some(mean.get()), Promotion, || {
                format!("node {node} has mean {mean:?} in epoch {epoch}; its seeds give {due:?}")
            });
        }
        _ => {}
    }
}

fn seeds(state: &RunState) -> Vec<ProgramSeed> {
    let further = state.policy().map(|policy| policy.promotion_seeds.clone());
    let mut seeds = vec![ProgramSeed(0)];
    seeds.extend(further.unwrap_or_default());
    seeds
}

/// The score of a seed from an execution that began in the epoch.
fn measured(
    state: &RunState,
    book: &Book,
    (node, seed, epoch): (NodeId, ProgramSeed, u32),
) -> Option<f64> {
    let view = state.node(node)?;
    let entry = book.entry(node)?;
    let fits = |exec: &ExecName| {
        let is_ranked = matches!(exec, ExecName::Seed(_) | ExecName::Again { .. });
        is_ranked && exec.program_seed() == seed && entry.epochs.get(exec) == Some(&epoch)
    };
    let mut scores = view.scores.iter().filter(|(exec, _)| fits(exec));
    scores.next().map(|(_, report)| report.total.get())
}
