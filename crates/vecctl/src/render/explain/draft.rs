//! The choice of a family: one sentence, and how every family stood.

use vec_search::DraftMode;

use super::{entry, ids};
use crate::explain::{Draft, FamilyRow};
use crate::render::{Align, table};

pub(super) fn lines(draft: &Draft) -> Vec<String> {
    let mut lines = vec![entry("why", &sentence(draft)), String::new()];
    let head = [
        ("family", Align::Left),
        ("category", Align::Left),
        ("drafts", Align::Right),
        ("failed", Align::Right),
        ("scored", Align::Right),
        ("state", Align::Left),
        ("", Align::Left),
    ];
    let rows: Vec<Vec<String>> = draft
        .families
        .iter()
        .map(|row| cells(row, draft.failed_cap))
        .collect();
    lines.extend(table(&head, &rows));
    lines.push(String::new());
    lines
}

fn sentence(draft: &Draft) -> String {
    let family = &draft.family;
    let row = draft.families.iter().find(|row| row.chosen);
    match draft.mode {
        DraftMode::RoundRobin => format!(
            "families take turns in library order (DRF-08): {family} has the fewest drafts{}",
            row.map_or_else(String::new, |row| format!(", {}", row.drafts))
        ),
        DraftMode::Coverage => {
            format!("{family} is the first family in coverage order that nothing covers (DRF-03)")
        }
        DraftMode::Explore => format!(
            "every family is covered, and this draft explores: {family} has the fewest drafts \
             (DRF-05)"
        ),
        DraftMode::Exploit => format!(
            "every family is covered: the promoted nodes of {family} gained most on the baseline \
             (DRF-05)"
        ),
        DraftMode::Plateau if row.is_some_and(|row| row.scored > 0) => {
            format!("the search stood still: {family} has the fewest scored drafts (DRF-10)")
        }
        DraftMode::Plateau => {
            format!("the search stood still: {family} has no scored draft (DRF-10)")
        }
    }
}

fn cells(row: &FamilyRow, failed_cap: Option<u32>) -> Vec<String> {
    vec![
        row.family.to_string(),
        row.category.clone().unwrap_or_else(|| "-".to_owned()),
        row.drafts.to_string(),
        row.failed.to_string(),
        row.scored.to_string(),
        state(row, failed_cap),
        if row.chosen { "<- chosen" } else { "" }.to_owned(),
    ]
}

fn state(row: &FamilyRow, failed_cap: Option<u32>) -> String {
    match row.covered_by.as_slice() {
        [] if failed_cap.is_some_and(|cap| row.failed >= cap) => "given up".to_owned(),
        [] => "open".to_owned(),
        nodes => format!("covered by {}", ids(nodes)),
    }
}
