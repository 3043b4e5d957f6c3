//! `vecctl explain`: read only, from the run directory alone, while the run goes on or afterwards.

use anyhow::Result;
use vec_launcher::run_view;
use vec_store::RunLayout;
use vec_types::NodeId;

use crate::context::Context;
use crate::explain::explain as reasons;
use crate::output;
use crate::render::explanation;

/// `vecctl explain RUN NODE`.
pub(crate) async fn explain(context: &Context, run: &str, node: u32) -> Result<()> {
    let run = context.run(run)?;
    let layout = RunLayout::of_run_dir(run.dir()?)?;
    let rows = run_view::events(&layout, 0).await?;
    let found = reasons(&run.id, &rows, NodeId(node))?;
    if context.json {
        return output::json(&found);
    }
    explanation(&found)
        .iter()
        .for_each(|line| output::line(line));
    Ok(())
}
