//! Seed programs and the idea library.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vec_types::{FamilyId, SeedProgramId, SeedState};

use crate::board::SeedEntry;
use crate::board::written::WrittenSeedProgram;
use crate::load::Checker;
use crate::{BoardFamily, IdeaLibrary, load_ideas};

/// Most seed programs.
const SEED_PROGRAMS_MAX: usize = 64;

/// The library's file and what it says.
pub(super) fn ideas(
    written: Option<String>,
    check: &mut Checker<'_>,
) -> Option<(PathBuf, IdeaLibrary)> {
    let key = "idea_library";
    let written = check.required(key, written, "the path of an idea library")?;
    let path = check.layers().resolve(&written);
    let library = check.loaded(key, load_ideas(&path))?;
    Some((path, library))
}

pub(super) fn seed_programs(
    written: Option<Vec<WrittenSeedProgram>>,
    families: Option<&[BoardFamily]>,
    check: &mut Checker<'_>,
) -> Vec<SeedEntry> {
    let written = written.unwrap_or_default();
    if written.is_empty() || written.len() > SEED_PROGRAMS_MAX {
        check.refuse(
            "seed_programs",
            format!("give 1 to {SEED_PROGRAMS_MAX} seed programs"),
        );
    }
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, written) in written.into_iter().enumerate() {
        let key = format!("seed_programs.{index}");
        let Some(entry) = seed_program(&key, written, families, check) else {
            continue;
        };
        if !seen.insert(entry.id.clone()) {
            check.refuse(
                &format!("{key}.id"),
                format!("seed program `{}` is given twice", entry.id),
            );
        }
        entries.push(entry);
    }
    entries
}

fn seed_program(
    key: &str,
    written: WrittenSeedProgram,
    families: Option<&[BoardFamily]>,
    check: &mut Checker<'_>,
) -> Option<SeedEntry> {
    let WrittenSeedProgram { id, state, family } = written;
    let id = check.parse_required(&format!("{key}.id"), id, "the directory's name");
    let state = check.required(
        &format!("{key}.state"),
        state,
        "`anchor`, `exploration` or `reference_only`",
    );
    let family_key = format!("{key}.family");
    let family = match family {
        Some(text) => {
            let family: FamilyId = check.parse(&family_key, &text)?;
            // A library that was refused has no families to compare with.
            let is_known = |all: &[BoardFamily]| all.iter().any(|known| known.id == family);
            if !families.is_none_or(is_known) {
                check.refuse(
                    &family_key,
                    format!("no family `{family}` in the idea library"),
                );
            }
            Some(family)
        }
        None => None,
    };
    match (state, &family) {
        (Some(SeedState::Anchor), Some(_)) => {
            check.refuse(&family_key, "the anchor covers no family; leave it out");
        }
        (Some(SeedState::Exploration), None) => {
            check.refuse(&family_key, "missing; an exploration seed covers a family");
        }
        _ => {}
    }
    Some(SeedEntry {
        id: id?,
        state: state?,
        family,
    })
}

pub(super) fn baseline(
    written: Option<String>,
    seed_programs: &[SeedEntry],
    check: &mut Checker<'_>,
) -> Option<SeedProgramId> {
    let baseline: SeedProgramId =
        check.parse_required("baseline", written, "the id of the anchor")?;
    let anchors: Vec<&SeedEntry> = seed_programs
        .iter()
        .filter(|entry| entry.state == SeedState::Anchor)
        .collect();
    if anchors.len() != 1 || anchors[0].id != baseline {
        check.refuse(
            "baseline",
            format!("`{baseline}` must be the one seed program with state anchor"),
        );
    }
    Some(baseline)
}
