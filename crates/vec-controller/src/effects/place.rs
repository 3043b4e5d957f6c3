//! Place: the `final` execution's prediction becomes the file in `final/`, with SELECTION.md
//! rewritten from what actually ran (FIN-03, FIN-12).

use vec_search::{Outcome, RunState};
use vec_store::{NewFile, rel};
use vec_types::{Digest, ExecName, NodeId};

use crate::check::check_format;
use crate::context::Context;
use crate::effects::execute::prediction_file;
use crate::effects::{Done, EffectError};
use crate::selection;

/// What to place.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    provisional: bool,
    selection: String,
    coverage: Vec<u8>,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
    provisional: bool,
) -> Result<Input, EffectError> {
    let coverage = vec_types::pretty_json(&selection::coverage(state))
        .map_err(|error| EffectError::failed("write DRAFT_COVERAGE.json", &error))?;
    Ok(Input {
        node,
        provisional,
        selection: selection::markdown(state, context, node, provisional),
        coverage,
    })
}

pub(crate) async fn perform(context: &Context, input: Input) -> Result<Done, EffectError> {
    let Input {
        node,
        provisional,
        selection,
        coverage,
    } = input;
    let view = &context.board().final_view;
    let path = prediction_file(context, node, ExecName::Final, view)?;
    let bytes = tokio::fs::read(&path)
        .await
        .map_err(|error| EffectError::io("read", &path, error))?;
    if let Some(problem) = check_format(context, node, view, &bytes).await? {
        tracing::error!(
            node = node.0,
            problem,
            "the final prediction fails the format check"
        );
        return Ok(Done::new(Outcome::Placed { sha256: None }));
    }
    let sha256 = Digest::of(&bytes);
    let bad = |error: vec_types::PathError| EffectError::failed("name the final file", &error);
    let name = format!("{}.csv", context.board().board.file_name());
    let text = selection.replace(selection::DIGEST_MARK, &sha256.to_string());
    let mut files = vec![
        NewFile::replace(rel::final_file(&name).map_err(bad)?, bytes),
        NewFile::replace(rel::selection(), text),
    ];
    if !provisional {
        let path = rel::final_file("DRAFT_COVERAGE.json").map_err(bad)?;
        files.push(NewFile::replace(path, coverage));
    }
    Ok(Done::new(Outcome::Placed {
        sha256: Some(sha256),
    })
    .with_files(files))
}
