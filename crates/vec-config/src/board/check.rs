//! Written board definition → [`Board`], by exhaustive destructuring.

mod parts;
mod programs;

use vec_types::BoardId;

use super::written::{WrittenBoard, WrittenEnvironment, WrittenEnvironmentKind};
use super::{Board, EnvironmentChoice};
use crate::ConfigError;
use crate::load::{Checker, Layers};

pub(super) fn validate(written: WrittenBoard, layers: &Layers) -> Result<Board, ConfigError> {
    let mut check = Checker::new(layers);
    let board = convert(written, &mut check);
    check.finish(board)
}

fn convert(written: WrittenBoard, check: &mut Checker<'_>) -> Option<Board> {
    let WrittenBoard {
        board,
        title,
        source,
        task,
        data,
        split,
        halves,
        views,
        rulers,
        final_view,
        limits,
        scoring,
        baseline,
        seed_programs,
        seeds_dir,
        idea_library,
        environment,
    } = written;
    let board: Option<BoardId> = check.parse_required("board", board, "the board's id");
    let title = check.required("title", title, "one line for people");
    let title = check.text("title", title);
    let source = check.required("source", source, "where the data is from");
    let source = check.text("source", source);
    let task = check.required("task", task, "`tabular_regression`");
    let views = parts::views(views, check);
    let rulers = parts::rulers(rulers, &views, check);
    let final_view = parts::final_view(final_view, &views, check);
    let ideas = programs::ideas(idea_library, check);
    let families = ideas.as_ref().map(|(_, ideas)| ideas.families.as_slice());
    let seed_programs = programs::seed_programs(seed_programs, families, check);
    let baseline = programs::baseline(baseline, &seed_programs, check);
    let data = parts::data(data, check);
    let split = parts::split(split, check);
    let halves = parts::halves(halves, check);
    let limits = parts::limits(limits, check);
    let scoring = parts::truth_sampling(scoring, check);
    let environment = environment_choice(environment, check);
    let board = board?;
    let (idea_library, ideas) = ideas?;
    let seeds_dir = seeds_dir.unwrap_or_else(|| format!("../../seeds/{}", board.file_name()));
    Some(Board {
        seeds_dir: check.layers().resolve(&seeds_dir),
        board,
        title: title?,
        source: source?,
        task: task?,
        data: data?,
        split: split?,
        halves,
        views,
        rulers,
        final_view: final_view?,
        limits,
        scoring,
        baseline: baseline?,
        seed_programs,
        idea_library,
        categories: ideas.categories,
        preamble: ideas.preamble,
        families: ideas.families,
        environment: environment?,
    })
}

fn environment_choice(
    written: Option<WrittenEnvironment>,
    check: &mut Checker<'_>,
) -> Option<EnvironmentChoice> {
    let WrittenEnvironment { kind, lock } = Checker::block(written);
    let kind = check.required("environment.kind", kind, "`stdlib` or `venv`")?;
    let key = "environment.lock";
    match (kind, lock) {
        (WrittenEnvironmentKind::Stdlib, None) => Some(EnvironmentChoice::Stdlib),
        (WrittenEnvironmentKind::Stdlib, Some(_)) => {
            check.refuse(key, "only `kind: venv` has a lock; leave it out");
            None
        }
        (WrittenEnvironmentKind::Venv, None) => {
            check.refuse(key, "missing; give the path of a hashed requirements file");
            None
        }
        (WrittenEnvironmentKind::Venv, Some(lock)) => Some(EnvironmentChoice::Venv {
            lock: check.layers().resolve(&lock),
        }),
    }
}
