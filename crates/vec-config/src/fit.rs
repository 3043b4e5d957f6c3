//! Does a configuration fit the board that it names?

use std::path::Path;

use crate::{Board, Config, ConfigError, DraftPolicy, Problem};

/// Checks the keys of a configuration that depend on its board; `source` is the configuration's
/// file, for the error.
///
/// # Errors
/// [`ConfigError::Invalid`]: `draft.policy: coverage_bandit` on an idea library without
/// categories, which has nothing to cover in turn (DRF-02).
pub fn check_fit(source: &Path, config: &Config, board: &Board) -> Result<(), ConfigError> {
    if config.draft.policy != DraftPolicy::CoverageBandit || !board.categories.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`coverage_bandit` goes through the categories of the idea library, but {}: categories: \
         there are none; give every family a category there, or set `round_robin` here",
        board.idea_library.display()
    );
    Err(ConfigError::Invalid(vec![Problem {
        source: source.display().to_string(),
        key: "draft.policy".to_owned(),
        message,
    }]))
}
