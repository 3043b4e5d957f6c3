//! Why a node exists, as a few lines and a small table.

mod child;
mod draft;

use vec_search::MechanismActive;
use vec_types::{NodeId, Operator, SeedState};

use crate::explain::{After, Draw, Explanation, Fallback, Why};
use crate::render::clip;

/// Longest list of node ids.
const IDS_MAX: usize = 16;

/// Longest text of a program or model, in characters.
const TEXT_CHARS_MAX: usize = 100;

/// Everything, in the order in which it was decided.
pub(crate) fn explanation(of: &Explanation) -> Vec<String> {
    let mut lines = vec![entry("node", &head(of))];
    if let Some(draw) = &of.draw {
        lines.extend(drawn(draw));
    }
    lines.extend(of.fallbacks.iter().map(fallback));
    match &of.why {
        Why::Child(why) => lines.extend(child::lines(why)),
        Why::Draft(why) => lines.extend(draft::lines(why)),
        other => lines.push(entry("why", &origin(other))),
    }
    lines.extend(after(of.parent, &of.after));
    lines
}

pub(crate) fn entry(word: &str, facts: &str) -> String {
    format!("{word:<12}{facts}")
}

/// `#1, #2 and 3 more`.
pub(crate) fn ids(nodes: &[NodeId]) -> String {
    let shown: Vec<String> = nodes
        .iter()
        .take(IDS_MAX)
        .map(|id| format!("#{id}"))
        .collect();
    match nodes.len().saturating_sub(IDS_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn head(of: &Explanation) -> String {
    let mut text = format!("#{}, {}", of.node, of.operator.as_str());
    if let Some(parent) = of.parent {
        text.push_str(&format!(" of #{parent}"));
    }
    if let Some(family) = &of.family {
        text.push_str(&format!(", family {family}"));
    }
    format!("{text} (event {}, {})", of.event, of.created_at)
}

/// The number, and the intervals that it fell among (OPR-01).
fn drawn(draw: &Draw) -> [String; 2] {
    let standing_still = if draw.plateau {
        "; the search stood still, so drafts were more likely (PLT-02)"
    } else {
        ""
    };
    let number = format!(
        "number {}: u = {:.6} is {}{standing_still}",
        draw.index,
        draw.u,
        draw.operator.as_str()
    );
    let lengths = [
        (Operator::Draft, draw.draft_p),
        (Operator::Debug, draw.debug_p),
        (Operator::Tune, draw.tune_p),
    ];
    let mut from = 0.0;
    let mut intervals: Vec<String> = Vec::new();
    for (operator, length) in lengths {
        if length > 0.0 {
            intervals.push(interval(operator, from, from + length));
        }
        from += length;
    }
    if from < 1.0 {
        intervals.push(interval(Operator::Improve, from, 1.0));
    }
    [entry("draw", &number), entry("", &intervals.join("  "))]
}

fn interval(operator: Operator, from: f64, to: f64) -> String {
    format!("{} [{from:.4}, {to:.4})", operator.as_str())
}

fn fallback(fallback: &Fallback) -> String {
    let Fallback { from, to, why } = fallback;
    let text = format!("{} instead of {}: {why}", to.as_str(), from.as_str());
    entry("fall-back", &text)
}

/// Origins that nothing was chosen for.
fn origin(why: &Why) -> String {
    match why {
        Why::Resume {
            carried,
            work,
            origin,
            max_resume,
        } => {
            let from = origin
                .as_ref()
                .map(|origin| format!(", imported from {origin}"));
            format!(
                "carried-over work {work} is the oldest that nobody has taken up (CAR-13); it came \
                 with node {carried}{}; a run takes up at most {max_resume}, and draws nothing for it",
                from.unwrap_or_default()
            )
        }
        Why::Seed {
            program,
            state,
            place,
            of,
            before,
        } => {
            let again = match before.as_slice() {
                [] => String::new(),
                nodes => format!("; tried again, since {} came to nothing", ids(nodes)),
            };
            let role = match state {
                SeedState::Anchor => "the baseline",
                SeedState::Exploration => "a possible parent",
                SeedState::ReferenceOnly => "for reference only, never a parent",
            };
            format!(
                "seed program {program} is number {place} of {of} in locked order (SED-01), {role}{again}"
            )
        }
        Why::Import { origin, of } => {
            format!("imported from {origin}, one of {of} nodes in the order of that run (CON-01)")
        }
        Why::Child(_) | Why::Draft(_) => String::new(),
    }
}

/// What became of it, two to five lines.
fn after(parent: Option<NodeId>, after: &After) -> Vec<String> {
    let mut lines = vec![entry("then", &status(parent, after))];
    if !after.consequence.is_empty() {
        lines.push(entry("", &after.consequence.join(", ")));
    }
    if let Some(checks) = checks(after) {
        lines.push(entry("", &checks));
    }
    match after.children.as_slice() {
        [] => lines.push(entry("", "no children")),
        [one] => lines.push(entry("", &format!("parent of #{one}"))),
        many => lines.push(entry(
            "",
            &format!("parent of {}: {}", many.len(), ids(many)),
        )),
    }
    if after.is_answer {
        lines.push(entry("", "the run's answer"));
    }
    lines
}

fn status(parent: Option<NodeId>, after: &After) -> String {
    let Some(took_ms) = after.took_ms else {
        return format!("in work: {}", after.stage);
    };
    let mut text = after.status.as_str().to_owned();
    if let Some(score) = after.score {
        text.push_str(&format!(" with {score}"));
    }
    if let Some(seed_0) = after.seed_0.filter(|seed_0| Some(*seed_0) != after.score) {
        text.push_str(&format!(" (seed 0: {seed_0})"));
    }
    text.push_str(&format!(" after {:.1} s", took_ms as f64 / 1e3));
    // A program that is the parent's says so in its detail.
    if after.no_progress && !after.same_as_parent {
        let id = parent.map(|id| format!(", node {id}")).unwrap_or_default();
        text.push_str(&format!("; its output is the same as its parent's{id}"));
    }
    if after.budget_cut {
        text.push_str("; cut by a deadline of the run");
    }
    if !after.detail.is_empty() {
        text.push_str(&format!(": {}", clip(&after.detail, TEXT_CHARS_MAX)));
    }
    text
}

/// Control run, view check, promotion and review, where there was one.
fn checks(after: &After) -> Option<String> {
    let promotion = match (after.promotion, &after.promotion_failure) {
        ("none", _) => None,
        ("failed", Some(why)) => Some(format!("promotion failed: {}", clip(why, TEXT_CHARS_MAX))),
        (word, _) => Some(format!("promotion {word}")),
    };
    let review = match (after.review, after.review_attempts) {
        ("none", 0) => None,
        ("none", n) => Some(format!("no verdict after {n} review calls")),
        ("fail", _) => Some("review failed, so it is never a parent again".to_owned()),
        (word, _) => Some(format!("review: {word}")),
    };
    let control = after.mechanism_active.map(|active| match active {
        MechanismActive::Yes => "its mechanism changes the output".to_owned(),
        MechanismActive::No => "its mechanism changes nothing".to_owned(),
        MechanismActive::Unclear => "its control run says nothing".to_owned(),
    });
    let view = match after.view_check {
        None => None,
        Some("view_dependent") => Some(
            "view check: view_dependent, so it is never a parent, promoted or final".to_owned(),
        ),
        Some(word) => Some(format!("view check: {word}")),
    };
    let all = [control, view, promotion, review];
    let words: Vec<String> = all.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests;
