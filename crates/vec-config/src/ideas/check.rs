//! Front matter and sections → [`IdeaLibrary`].

use std::collections::BTreeSet;
use std::path::Path;

use vec_types::{BoardId, CategoryId, FamilyId};

use super::IdeaLibrary;
use super::text::{Body, Section, line_key};
use super::written::{WrittenFamily, WrittenIdeas};
use crate::load::{Checker, Layers, nearest};
use crate::{BoardFamily, ConfigError};

/// Most families of an idea library.
const FAMILIES_MAX: usize = 256;
/// Longest preamble in characters; a prompt shows as much of one section.
const PREAMBLE_CHARS_MAX: usize = 8_000;
/// Longest text of a family in characters; a prompt shows as much of one section.
const FAMILY_CHARS_MAX: usize = 8_000;
/// The word of plans outside of the library (DRF-11).
const RESERVED: &str = "other";

pub(super) fn validate(
    written: WrittenIdeas,
    body: &Body,
    path: &Path,
    layers: &Layers,
) -> Result<IdeaLibrary, ConfigError> {
    let mut check = Checker::new(layers);
    let library = convert(written, body, path, &mut check);
    check.finish(library)
}

fn convert(
    written: WrittenIdeas,
    body: &Body,
    path: &Path,
    check: &mut Checker<'_>,
) -> Option<IdeaLibrary> {
    let WrittenIdeas {
        board,
        categories,
        families,
    } = written;
    let board = board_of(board, path, check);
    let categories = all_categories(categories, check);
    let families = families.unwrap_or_default();
    for category in &categories {
        let of_category = |family: &WrittenFamily| {
            let written = family.category.as_deref();
            written == Some(category.as_str())
        };
        if !families.iter().any(of_category) {
            let message = format!("category `{category}` has no family; remove it or add one");
            check.refuse("categories", message);
        }
    }
    let families = all_families(families, &categories, check);
    let preamble_chars = body.preamble.chars().count();
    if preamble_chars > PREAMBLE_CHARS_MAX {
        let message = format!("{preamble_chars} characters; at most {PREAMBLE_CHARS_MAX}");
        check.refuse("(preamble)", message);
    }
    Some(IdeaLibrary {
        board: board?,
        categories,
        preamble: body.preamble.clone(),
        families: with_texts(families, &body.sections, check),
    })
}

// The name says what the file is: copied into a run it lies among the role prompts.
fn board_of(written: Option<String>, path: &Path, check: &mut Checker<'_>) -> Option<BoardId> {
    let board: BoardId = check.parse_required("board", written, "the board's id")?;
    let right = format!("ideas_{}.md", board.file_name());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name != right {
        check.refuse(
            "board",
            format!("the library of board `{board}` must be named {right}, not {name}"),
        );
    }
    Some(board)
}

fn all_categories(written: Option<Vec<String>>, check: &mut Checker<'_>) -> Vec<CategoryId> {
    let mut categories = Vec::new();
    for (index, text) in written.unwrap_or_default().into_iter().enumerate() {
        let key = format!("categories.{index}");
        let Some(category) = check.parse(&key, &text) else {
            continue;
        };
        if categories.contains(&category) {
            check.refuse(&key, format!("category `{category}` is given twice"));
        } else {
            categories.push(category);
        }
    }
    categories
}

fn all_families(
    written: Vec<WrittenFamily>,
    categories: &[CategoryId],
    check: &mut Checker<'_>,
) -> Vec<BoardFamily> {
    if written.is_empty() || written.len() > FAMILIES_MAX {
        let found = written.len();
        check.refuse(
            "families",
            format!("{found} families; give 1 to {FAMILIES_MAX}"),
        );
    }
    let mut families: Vec<BoardFamily> = Vec::new();
    for (index, written) in written.into_iter().enumerate() {
        let key = format!("families.{index}");
        let Some(family) = family(&key, written, categories, check) else {
            continue;
        };
        if families.iter().any(|known| known.id == family.id) {
            let message = format!("family `{}` is given twice", family.id);
            check.refuse(&format!("{key}.id"), message);
        } else {
            families.push(family);
        }
    }
    families
}

fn family(
    key: &str,
    written: WrittenFamily,
    categories: &[CategoryId],
    check: &mut Checker<'_>,
) -> Option<BoardFamily> {
    let WrittenFamily {
        id,
        category,
        title,
    } = written;
    let id_key = format!("{key}.id");
    let id: Option<FamilyId> = check.parse_required(&id_key, id, "the family's id");
    if id.as_ref().is_some_and(|id| id.as_str() == RESERVED) {
        check.refuse(
            &id_key,
            format!("`{RESERVED}` is the word of plans outside of the library; take another"),
        );
    }
    let title_key = format!("{key}.title");
    let title = check.required(&title_key, title, "one line for prompts");
    let title = check.text(&title_key, title);
    let category = category_of(&format!("{key}.category"), category, categories, check);
    Some(BoardFamily {
        id: id?,
        category,
        title: title?,
        text: String::new(),
    })
}

fn category_of(
    key: &str,
    written: Option<String>,
    categories: &[CategoryId],
    check: &mut Checker<'_>,
) -> Option<CategoryId> {
    let known = || categories.iter().map(CategoryId::as_str);
    let Some(text) = written else {
        if !categories.is_empty() {
            let all = known().collect::<Vec<_>>().join(", ");
            check.refuse(key, format!("missing; give one of {all}"));
        }
        return None;
    };
    let category: CategoryId = check.parse(key, &text)?;
    if !categories.contains(&category) {
        let hint = nearest(&text, known()).map_or_else(
            || "there are none; leave it out".to_owned(),
            |nearest| format!("nearest: {nearest}"),
        );
        check.refuse(
            key,
            format!("category `{category}` is not in categories; {hint}"),
        );
    }
    Some(category)
}

fn with_texts(
    mut families: Vec<BoardFamily>,
    sections: &[Section],
    check: &mut Checker<'_>,
) -> Vec<BoardFamily> {
    // A family that was refused would make its section look wrong, too.
    if !check.is_clean() {
        return families;
    }
    let mut seen = BTreeSet::new();
    for section in sections {
        let key = line_key(section.line);
        let known = families.iter().map(|family| family.id.as_str());
        let near = nearest(&section.id, known).map(str::to_owned);
        let family = families
            .iter_mut()
            .find(|family| family.id.as_str() == section.id);
        let Some(family) = family else {
            let hint = near.map_or_else(String::new, |near| format!("; nearest: {near}"));
            let message = format!("section `{}` is no family of the front matter", section.id);
            check.refuse(&key, message + &hint);
            continue;
        };
        let chars = section.text.chars().count();
        if !seen.insert(section.id.as_str()) {
            check.refuse(&key, format!("section `{}` is given twice", section.id));
        } else if !(1..=FAMILY_CHARS_MAX).contains(&chars) {
            let message = format!(
                "the text of section `{}` has {chars} characters; give 1 to {FAMILY_CHARS_MAX}",
                section.id
            );
            check.refuse(&key, message);
        }
        family.text.clone_from(&section.text);
    }
    for (index, family) in families.iter().enumerate() {
        if !seen.contains(family.id.as_str()) {
            check.refuse(
                &format!("families.{index}"),
                format!(
                    "family `{0}` has no section; add `## {0}` and a text",
                    family.id
                ),
            );
        }
    }
    families
}
