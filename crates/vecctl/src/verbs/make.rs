//! Verbs that make what runs read: boards and Python environments.

use std::path::Path;

use anyhow::{Context as _, Result};
use vec_board::{BuildOptions, build, build_env};

use crate::context::Context;
use crate::output;

/// `vecctl board build`.
pub(crate) fn board(context: &Context, board: &Path, data: &Path, replace: bool) -> Result<()> {
    let path = std::path::absolute(board).with_context(|| format!("find {}", board.display()))?;
    let definition = vec_config::load_board(&path)?;
    let built = build(
        &definition,
        data,
        context.data.path(),
        BuildOptions { replace },
    )
    .with_context(|| format!("build board {}", definition.board))?;
    let rows = &built.record.rows;
    output::line(&format!(
        "board       {}: {}",
        definition.board, definition.title
    ));
    output::line(&format!(
        "rows        train {}, half A {}, half B search {}, half B guard {}",
        rows.train, rows.half_a, rows.half_b_search, rows.half_b_guard
    ));
    for (view, dir) in &built.views {
        output::line(&format!("view        {view}: {}", dir.display()));
    }
    output::line(&format!("truth       {}", built.truth_dir.display()));
    Ok(())
}

/// `vecctl env build`.
pub(crate) fn env(context: &Context, lockfile: &Path, python: Option<&Path>) -> Result<()> {
    let path =
        std::path::absolute(lockfile).with_context(|| format!("find {}", lockfile.display()))?;
    let env = build_env(&path, context.data.path(), python)
        .with_context(|| format!("build the environment of {}", path.display()))?;
    output::line(&format!(
        "environment {} (Python {})",
        env.facts.id, env.facts.version
    ));
    if let Some(dir) = &env.dir {
        output::line(&format!("files       {}", dir.display()));
    }
    Ok(())
}
