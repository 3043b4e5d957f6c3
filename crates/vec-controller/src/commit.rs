//! Commits to programs.git, off the runtime's threads.

use std::path::PathBuf;

use vec_search::CommitInfo;
use vec_types::{NodeId, TreeId, UnixMs};

use crate::context::Context;
use crate::effects::EffectError;
use crate::spool::blocking;

/// Longest program name in a commit message.
const NAME_CHARS_MAX: usize = 80;

/// Commits `directory` as the program of `node`. Idempotent: the same content gives the same
/// commit, because author and time are fixed by the run.
pub(crate) async fn commit(
    context: &Context,
    node: NodeId,
    directory: PathBuf,
    parent: Option<TreeId>,
    message: String,
) -> Result<CommitInfo, EffectError> {
    let programs = context.programs.clone();
    let at: UnixMs = context.lock.created_at;
    let written = blocking("commit a program", move || {
        programs.commit_dir(node, &directory, parent.as_ref(), &message, at)
    })
    .await?
    .map_err(|error| EffectError::failed("commit the program", &error))?;
    Ok(CommitInfo {
        commit: written.commit,
        tree: written.tree,
        runtime_key: written.runtime_key,
    })
}

/// One line of printable text for a commit message.
pub(crate) fn program_name(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_control())
        .take(NAME_CHARS_MAX)
        .collect()
}
