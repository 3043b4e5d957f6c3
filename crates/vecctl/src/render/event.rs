//! One line per event: `seq  time  kind  node  facts`. Facts are short; the whole event is in the
//! archive.

use vec_search::{
    Effect, Event, ExecResult, MethodState, Outcome, Pair, PlanResult, ReviewVerdict, ScoreResult,
    SelectReason, Standing,
};
use vec_types::{NodeId, UnixMs};

/// Longest fact text in characters.
const FACTS_CHARS_MAX: usize = 100;

/// The line of one stored event.
pub(crate) fn event_line(seq: u64, at: UnixMs, event: &Event) -> String {
    let node = event
        .node()
        .map(|node| format!("#{node}"))
        .unwrap_or_default();
    let time = at.to_string();
    // RFC 3339: the time of day stands between `T` and `Z`.
    let time = time
        .split('T')
        .nth(1)
        .unwrap_or(&time)
        .trim_end_matches('Z');
    let facts = clip(&facts(event), FACTS_CHARS_MAX);
    format!("{seq:>5}  {time}  {:<18}  {node:<5}  {facts}", event.kind())
        .trim_end()
        .to_owned()
}

/// At most `chars_max` characters of one line.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    let mut short: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn facts(event: &Event) -> String {
    match event {
        Event::RunStart { run, policy } => format!(
            "{run}: {} nodes, search seed {}",
            policy.budget.max_nodes, policy.search_seed
        ),
        Event::RunResume { start } => format!("start {start}"),
        Event::StopRequested { reason, detail } => format!("{}: {detail}", reason.as_str()),
        Event::EffectEnded { effect, end } => format!("{}{}", exec_of(effect), ended(end)),
        Event::PhaseChange { from, to } => format!("{} -> {}", word(from), word(to)),
        Event::Draw { u, operator, .. } => format!("{} (u {u:.4})", operator.as_str()),
        Event::FallbackToImprove { from, why, .. } => {
            format!("instead of {}: {why}", from.as_str())
        }
        Event::FallbackToDraft { from, why, .. } => format!("instead of {}: {why}", from.as_str()),
        Event::Select {
            parent,
            reason,
            plateau,
            pool,
            standings,
            ..
        } => selected(*parent, *reason, *plateau, *pool, standings),
        Event::DraftPick {
            family,
            mode,
            plateau,
            ..
        } => format!("family {family} ({}{})", word(mode), plateau_word(*plateau)),
        Event::Imported { import, .. } => {
            format!("{} of {}", import.end.status().as_str(), import.origin)
        }
        Event::EpochAdvance { epoch, added } => format!("epoch {epoch}: {}", added.join(", ")),
        Event::ResumePick { work, .. } => format!("work of {work}"),
        Event::ResumeRefused { work, why, .. } => format!("work of {work}: {why}"),
        Event::Plateau { active, .. } => if *active { "begins" } else { "ends" }.to_owned(),
        Event::RescoreCut { why, .. } => why.clone(),
        Event::FinalReserve { reserve_ms, .. } => format!("{} min", reserve_ms / 60_000),
        Event::NodeCreated {
            operator,
            parent,
            family,
            seed_program,
            ..
        } => {
            let mut text = operator.as_str().to_owned();
            if let Some(program) = seed_program {
                text.push_str(&format!(" {program}"));
            }
            if let Some(parent) = parent {
                text.push_str(&format!(" of #{parent}"));
            }
            if let Some(family) = family {
                text.push_str(&format!(", family {family}"));
            }
            text
        }
        Event::EffectStarted { effect } => exec_of(effect).trim_end_matches(": ").to_owned(),
        Event::NodeSettled { .. } => settled(event),
        Event::RefutedDirection { parent, text, .. } => format!("under #{parent}: {text}"),
        _ => closing_facts(event),
    }
}

fn closing_facts(event: &Event) -> String {
    match event {
        Event::PromotionStart { execs, .. } => {
            let execs: Vec<String> = execs.iter().map(ToString::to_string).collect();
            format!("runs {}", execs.join(", "))
        }
        Event::AblationResult {
            mechanism_active,
            why,
            ..
        } => format!("{}: {why}", word(mechanism_active)),
        Event::ViewCheckResult {
            verdict,
            trigger,
            why,
            ..
        } => format!("{} ({}): {why}", word(verdict), word(trigger)),
        Event::PromotionDone { mean, .. } => format!("mean of 3 seeds {mean}"),
        Event::PromotionFailed { why, .. } => why.clone(),
        Event::FinalStart {
            baseline,
            candidates,
            ..
        } => format!("baseline #{baseline}, candidates {}", ids(candidates)),
        Event::CandidateSkipped { why, .. } => format!("out: {}", word(why)),
        Event::GuardStart {
            candidate,
            baseline,
            seeds,
        } => format!(
            "#{candidate} against #{baseline} on {} fresh seeds",
            seeds.len()
        ),
        Event::GuardResult {
            pairs,
            mean,
            lower_bound,
            replace,
            why,
            ..
        } => format!(
            "{}; {} of {} pairs, gain {}, lower bound {}: {why}",
            if *replace {
                "replace"
            } else {
                "keep the baseline"
            },
            pairs.iter().filter(|pair| is_whole(pair)).count(),
            pairs.len(),
            number(*mean),
            number(*lower_bound),
        ),
        Event::FinalGuardRefused { why } => why.clone(),
        Event::WinnerChosen { is_baseline, .. } => if *is_baseline {
            "the baseline"
        } else {
            "a candidate"
        }
        .to_owned(),
        Event::Stop { reason, detail, .. } => format!("{}: {detail}", reason.as_str()),
        _ => String::new(),
    }
}

fn is_whole(pair: &Pair) -> bool {
    pair.candidate.is_some() && pair.baseline.is_some()
}

/// A signed number, or a dash.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:+.4}"))
}

fn ids(nodes: &[NodeId]) -> String {
    if nodes.is_empty() {
        return "none".to_owned();
    }
    let words: Vec<String> = nodes.iter().map(|node| format!("#{node}")).collect();
    words.join(" ")
}

// The serde word of a plain enum, which is also its word in files and logs.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

const fn plateau_word(plateau: bool) -> &'static str {
    if plateau { ", plateau" } else { "" }
}

fn selected(
    parent: NodeId,
    reason: SelectReason,
    plateau: bool,
    pool: u32,
    standings: &[Standing],
) -> String {
    let u = standings.iter().find(|standing| standing.node == parent);
    let u = u
        .map(|standing| format!(", U {:.3}", standing.u))
        .unwrap_or_default();
    let plateau = plateau_word(plateau);
    format!("#{parent} of {pool} ({}{plateau}{u})", word(&reason))
}

fn exec_of(effect: &Effect) -> String {
    match effect {
        Effect::ImportSeed { program, .. } => format!("{program}: "),
        Effect::Execute { exec, .. } | Effect::Score { exec, .. } => format!("{exec}: "),
        Effect::Place { provisional, .. } => if *provisional {
            "provisional: "
        } else {
            "final: "
        }
        .to_owned(),
        Effect::Review { attempt, .. } if *attempt > 0 => format!("attempt {}: ", attempt + 1),
        _ => String::new(),
    }
}

fn ended(end: &Outcome) -> String {
    match end {
        Outcome::Imported { commit } => format!("commit {}", short(&commit.commit.to_string())),
        Outcome::Planned { result } => match result {
            PlanResult::Valid { plan, .. } => plan.name.clone(),
            PlanResult::Invalid { error } => format!("no valid plan: {error}"),
        },
        Outcome::Complied { removed, emptied } => match (removed, emptied) {
            (_, true) => "nothing of the approach is left".to_owned(),
            (0, _) => "in order".to_owned(),
            (removed, _) => format!("{removed} sentences removed"),
        },
        Outcome::Engineered { session } => engineered(session),
        Outcome::Executed { report } => {
            let wall_ms: i64 = report.wall_ms.values().sum();
            match &report.result {
                ExecResult::Done { .. } => format!("done in {:.2} s", wall_ms as f64 / 1e3),
                ExecResult::Fault { fault, detail } => format!("{}: {detail}", word(fault)),
            }
        }
        Outcome::Scored { result } => match result {
            ScoreResult::Done { report } => format!("score {}", report.total),
            ScoreResult::InvalidFormat { detail } => format!("invalid format: {detail}"),
        },
        Outcome::Analyzed { written, .. } => if *written {
            "written"
        } else {
            "no usable reply"
        }
        .to_owned(),
        Outcome::Reviewed { verdict } => match verdict {
            ReviewVerdict::Pass => "pass".to_owned(),
            ReviewVerdict::Fail => "fail".to_owned(),
            ReviewVerdict::Error => "no usable reply".to_owned(),
        },
        Outcome::Placed { sha256 } => match sha256 {
            Some(digest) => format!("placed {}", digest.short(12)),
            None => "could not be placed".to_owned(),
        },
        Outcome::Interrupted { fault, detail } => format!("{}: {detail}", word(fault)),
    }
}

fn engineered(session: &vec_search::SessionReport) -> String {
    let wall_s = session.wall_ms as f64 / 1e3;
    let mut text = format!("{} after {wall_s:.1} s", word(&session.end));
    if let Some(queries) = session.queries_used {
        text.push_str(&format!(", {queries} queries"));
    }
    match &session.method {
        MethodState::Written { first_line } => text.push_str(&format!(", {first_line}")),
        MethodState::Placeholder => text.push_str(", METHOD.md untouched"),
        MethodState::Missing => text.push_str(", METHOD.md missing"),
    }
    if !session.has_run_py {
        text.push_str(", no run.py");
    }
    text
}

fn short(hex: &str) -> &str {
    hex.get(..12).unwrap_or(hex)
}

fn settled(event: &Event) -> String {
    let Event::NodeSettled {
        status,
        no_progress,
        same_as_parent,
        budget_cut,
        detail,
        ..
    } = event
    else {
        return String::new();
    };
    let marks = [
        (*no_progress, "no progress"),
        (*same_as_parent, "same as parent"),
        (*budget_cut, "cut by the budget"),
    ];
    let mut words = vec![status.as_str().to_owned()];
    words.extend(
        marks
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, text)| (*text).to_owned()),
    );
    if !detail.is_empty() {
        words.push(detail.clone());
    }
    words.join(", ")
}

#[cfg(test)]
mod tests;
