//! Seed programs and the idea library.

use std::collections::BTreeSet;

use vec_types::{FamilyId, SeedProgramId, SeedState};

use crate::board::written::{WrittenFamily, WrittenSeedProgram};
use crate::board::{BoardFamily, SeedEntry};
use crate::load::Checker;

/// Most seed programs.
const SEED_PROGRAMS_MAX: usize = 64;
/// Most families of an idea library.
const FAMILIES_MAX: usize = 256;

pub(super) fn families(
    written: Option<Vec<WrittenFamily>>,
    check: &mut Checker<'_>,
) -> Vec<BoardFamily> {
    let written = written.unwrap_or_default();
    if written.is_empty() || written.len() > FAMILIES_MAX {
        check.refuse("families", format!("give 1 to {FAMILIES_MAX} families"));
    }
    let mut families: Vec<BoardFamily> = Vec::new();
    for (index, WrittenFamily { id, title }) in written.into_iter().enumerate() {
        let key = format!("families.{index}");
        let id: Option<FamilyId> =
            check.parse_required(&format!("{key}.id"), id, "the family's id");
        let title_key = format!("{key}.title");
        let title = check.required(&title_key, title, "one line for prompts");
        let title = check.text(&title_key, title);
        let (Some(id), Some(title)) = (id, title) else {
            continue;
        };
        if families.iter().any(|family| family.id == id) {
            check.refuse(
                &format!("{key}.id"),
                format!("family `{id}` is given twice"),
            );
        } else {
            families.push(BoardFamily { id, title });
        }
    }
    families
}

pub(super) fn seed_programs(
    written: Option<Vec<WrittenSeedProgram>>,
    families: &[BoardFamily],
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
    families: &[BoardFamily],
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
            if !families.iter().any(|known| known.id == family) {
                check.refuse(&family_key, format!("no family `{family}` in families"));
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
