//! The pass over a plan: sentences that hit a pattern go, and say that they went.

use vec_types::Plan;

use crate::Rules;
use crate::rules::Scope;
use crate::sentences::sentences;

/// What stands where a sentence was.
pub const MARK: &str = "[compliance: removed]";

/// A removed sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Field of the plan.
    pub key: &'static str,
    /// Name of the first pattern that hit.
    pub pattern: String,
    /// The sentence, trimmed.
    pub sentence: String,
}

/// A plan after the pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The redacted plan.
    pub plan: Plan,
    /// What was removed, in order of the plan's fields.
    pub removed: Vec<Removed>,
    /// Nothing of the approach is left → `gen_failed` (CMP-02).
    pub emptied: bool,
    /// More than half of the main text is gone (O-CMP-2).
    pub over_half: bool,
}

/// Removes every sentence of `plan` that hits a pattern of `rules`.
#[must_use]
pub fn check_plan(plan: &Plan, rules: &Rules) -> Checked {
    let mut removed = Vec::new();
    let mut pass = |key, text: &str| redact(key, text, rules, &mut removed);
    let name = pass("name", &plan.name);
    let motivation = pass("motivation", &plan.motivation);
    let approach = pass("approach", &plan.approach);
    let mechanism = plan.mechanism.as_ref().map(|text| pass("mechanism", text));
    let expected_groups = plan
        .expected_groups
        .iter()
        .map(|text| pass("expected_groups", text).text);
    let expected_groups = expected_groups.collect();
    let risks = plan
        .risks
        .iter()
        .map(|text| pass("risks", text).text)
        .collect();
    // The control's name is one word: it is kept whole or dropped.
    let ablate = plan
        .ablate
        .as_ref()
        .filter(|word| pass("ablate", word).chars == 0)
        .cloned();

    let gone = approach.chars + motivation.chars + mechanism.as_ref().map_or(0, |m| m.chars);
    let all = [
        Some(&plan.approach),
        Some(&plan.motivation),
        plan.mechanism.as_ref(),
    ];
    let all: usize = all
        .into_iter()
        .flatten()
        .map(|text| text.chars().count())
        .sum();
    let over_half = gone * 2 > all || approach.chars * 2 > plan.approach.chars().count();
    let emptied = approach.text.replace(MARK, "").trim().is_empty();
    Checked {
        plan: Plan {
            name: name.text,
            motivation: motivation.text,
            approach: approach.text,
            expected_groups,
            risks,
            family_id: plan.family_id.clone(),
            mechanism: mechanism.map(|mechanism| mechanism.text),
            ablate,
        },
        removed,
        emptied,
        over_half,
    }
}

struct Redacted {
    text: String,
    /// Characters removed.
    chars: usize,
}

fn redact(key: &'static str, text: &str, rules: &Rules, removed: &mut Vec<Removed>) -> Redacted {
    let spans: Vec<(usize, usize, &str)> = rules
        .patterns()
        .iter()
        .filter(|pattern| pattern.scope == Scope::Text)
        .flat_map(|pattern| {
            let found = pattern.regex.find_iter(text);
            found.map(|found| (found.start(), found.end(), pattern.name.as_str()))
        })
        .collect();
    let mut out = Redacted {
        text: String::with_capacity(text.len()),
        chars: 0,
    };
    for range in sentences(text) {
        let sentence = &text[range.clone()];
        let hit = rules
            .patterns()
            .iter()
            .find(|pattern| pattern.scope == Scope::Sentence && pattern.regex.is_match(sentence))
            .map(|pattern| pattern.name.as_str())
            .or_else(|| {
                let touched = |(start, end, _): &&(usize, usize, &str)| {
                    *start < range.end && range.start < *end
                };
                spans.iter().find(touched).map(|(_, _, name)| *name)
            })
            .filter(|_| !sentence.trim().is_empty());
        match hit {
            None => out.text.push_str(sentence),
            Some(pattern) => {
                out.chars += sentence.chars().count();
                removed.push(Removed {
                    key,
                    pattern: pattern.to_owned(),
                    sentence: sentence.trim().to_owned(),
                });
                let trimmed = sentence.trim_start();
                out.text
                    .push_str(&sentence[..sentence.len() - trimmed.len()]);
                out.text.push_str(MARK);
                out.text.push_str(&trimmed[trimmed.trim_end().len()..]);
            }
        }
    }
    out
}
