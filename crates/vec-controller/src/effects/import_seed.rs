//! ImportSeed: commit a seed program from the code snapshot to programs.git.

use vec_search::{CommitInfo, Outcome};
use vec_types::{NodeId, SeedProgramId};

use crate::commit::{commit, program_name};
use crate::context::Context;
use crate::effects::{Done, EffectError};

pub(crate) async fn perform(
    context: &Context,
    node: NodeId,
    program: &SeedProgramId,
) -> Result<Done, EffectError> {
    let directory = context
        .lock
        .code_snapshot
        .seeds
        .under(&context.layout.code())
        .join(program.as_str());
    let message = format!(
        "node {node}: seed program {}",
        program_name(program.as_str())
    );
    let info: CommitInfo = commit(context, node, directory, None, message).await?;
    Ok(Done::new(Outcome::Imported { commit: info }))
}
