//! REPRO.json: is the output of a cold start that of the scored execution (PVW-11)? Diagnostic
//! only; it changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use vec_exec::{Comparison, compare};
use vec_store::{NewFile, rel};
use vec_types::{ExecName, ProgramSeed, ViewId};

use super::{Input, PREDICTION, prediction_file};
use crate::context::Context;
use crate::effects::EffectError;

/// What the cold start is compared with.
const BASE: ExecName = ExecName::Seed(ProgramSeed(0));

/// The document, over the predictions that lie in `results`.
pub(super) fn file(
    context: &Context,
    input: &Input,
    results: &Path,
) -> Result<NewFile, EffectError> {
    let mut views: BTreeMap<&ViewId, Comparison> = BTreeMap::new();
    for view in &input.views {
        let base = prediction_file(context, input.node, BASE, view)?;
        let again = results.join(view.as_str()).join(PREDICTION);
        let compared = compare(&base, &again)
            .map_err(|error| EffectError::failed("compare predictions", &error))?;
        views.insert(view, compared);
    }
    let document = json!({
        "schema": 1,
        "node": input.node,
        "exec": input.exec,
        "base": BASE,
        "equal": views.values().all(|view| view.equal),
        "views": views,
    });
    let bytes = vec_types::pretty_json(&document)
        .map_err(|error| EffectError::failed("write REPRO.json", &error))?;
    Ok(NewFile::replace(rel::repro(input.node), bytes))
}
