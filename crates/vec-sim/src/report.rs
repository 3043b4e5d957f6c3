//! What a batch came to, for people; and the command that shows a failure again.

use crate::batch::{Failure, Outcome};
use crate::{Rule, Tally};

/// From this many seeds on every rule must have fired.
pub const SEEDS_FOR_RULES: u64 = 500;

/// Characters shown of a text in a list.
const TEXT_CHARS: usize = 160;

/// Columns of the table of rules.
const COLUMNS: usize = 3;

/// One line with the figures.
#[must_use]
pub fn figures(outcome: &Outcome) -> String {
    let seconds = outcome.wall.as_secs_f64().max(1e-9);
    format!(
        "{} seeds in {seconds:.1} s ({:.1} seeds/s), {} events, {} nodes",
        outcome.seeds,
        outcome.seeds as f64 / seconds,
        outcome.events,
        outcome.nodes
    )
}

/// How often each rule fired, in columns.
#[must_use]
pub fn table(tally: &Tally) -> String {
    let cells: Vec<String> = Rule::ALL
        .iter()
        .map(|rule| format!("{:<26}{:>9}", rule.as_str(), tally.count(*rule)))
        .collect();
    let height = cells.len().div_ceil(COLUMNS);
    let line = |row: usize| -> String {
        let cells: Vec<&str> = (0..COLUMNS)
            .filter_map(|column| cells.get(column * height + row).map(String::as_str))
            .collect();
        format!("  {}\n", cells.join("   "))
    };
    (0..height).map(line).collect()
}

/// The failing seed, what it broke, its last events, and how to see it again with `program`.
#[must_use]
pub fn failure(failure: &Failure, program: &str) -> String {
    format!(
        "seed {} breaks {}: {}\nthe last {} events:\n  {}\nagain: {program} --seeds 1 --first-seed {}",
        failure.seed,
        failure.invariant,
        failure.what,
        failure.last.len(),
        failure.last.join("\n  "),
        failure.seed
    )
}

/// The beginning of a text that may be long.
#[must_use]
pub fn first_chars(text: &str) -> String {
    text.chars().take(TEXT_CHARS).collect()
}

/// Rules that should have fired and did not, in words; absent when there are too few seeds to tell.
#[must_use]
pub fn gaps(outcome: &Outcome) -> Option<String> {
    let never = outcome.tally.never();
    if never.is_empty() || outcome.seeds < SEEDS_FOR_RULES {
        return None;
    }
    let words: Vec<&str> = never.into_iter().map(Rule::as_str).collect();
    Some(format!(
        "never fired in {} seeds: {}",
        outcome.seeds,
        words.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_never_fires_is_named_once_there_are_enough_seeds() {
        let mut outcome = Outcome {
            seeds: SEEDS_FOR_RULES,
            ..Outcome::default()
        };
        for rule in Rule::ALL.iter().filter(|rule| **rule != Rule::Late) {
            outcome.tally.add(*rule);
        }
        assert!(gaps(&outcome).is_some_and(|text| text.ends_with(": late")));
        outcome.seeds -= 1;
        assert_eq!(gaps(&outcome), None);
    }

    #[test]
    fn every_rule_stands_in_the_table_once() {
        let table = table(&Tally::default());
        for rule in Rule::ALL {
            let padded = format!(" {:<26}", rule.as_str());
            assert_eq!(table.matches(&padded).count(), 1, "{}", rule.as_str());
        }
    }
}
