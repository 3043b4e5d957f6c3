//! Idea libraries: Markdown files with YAML front matter that tell a Researcher what each method
//! family is (DRF-01, O-DRF-1). Libraries are data; the loaded texts are part of the lock.
//!
//! ```text
//! ---
//! board: diabetes
//! categories: [parametric, local]          # may be absent: no categories
//! families:
//!   - { id: linear, category: parametric, title: "Linear models" }
//! ---
//! What every family has in common: the preamble.
//!
//! ## linear
//! What a Researcher reads who plans a program of this family.
//! ```

mod check;
mod text;
mod written;

use std::path::Path;

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, CategoryId, FamilyId};

use crate::ConfigError;
use crate::load::{Layers, Problem};

/// A validated idea library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdeaLibrary {
    /// The board that it was written for; other boards may use it, too.
    pub board: BoardId,
    /// Categories in order, each with at least one family; empty = no family has one.
    pub categories: Vec<CategoryId>,
    /// What holds for every family; may be empty, at most 8,000 characters.
    pub preamble: String,
    /// Families in library order, 1 to 256, with different ids, none of them `other`.
    pub families: Vec<BoardFamily>,
}

/// A family of the idea library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardFamily {
    /// Its id.
    pub id: FamilyId,
    /// Its category; absent where the library has no categories.
    pub category: Option<CategoryId>,
    /// One line for prompts.
    pub title: String,
    /// What a Researcher reads who plans a program of it; 1 to 8,000 characters.
    pub text: String,
}

/// Loads and validates an idea library. A byte order mark is dropped and CRLF read as LF, so that
/// the same words are the same texts in the lock.
///
/// # Errors
/// [`ConfigError`]; [`ConfigError::Invalid`] holds every problem found, each with the file and
/// the key of the front matter or the line.
pub fn load_ideas(path: &Path) -> Result<IdeaLibrary, ConfigError> {
    let at_line = |fault: text::AtLine| {
        ConfigError::Invalid(vec![Problem {
            source: path.display().to_string(),
            key: fault.key(),
            message: fault.message,
        }])
    };
    let plain = text::plain(&crate::load::read_text(path)?).map_err(at_line)?;
    let (front, body) = text::cut(&plain).map_err(at_line)?;
    let layers = Layers::of_text(path, &front)?;
    let written = layers.read::<written::WrittenIdeas>()?;
    check::validate(written, &body, path, &layers)
}
