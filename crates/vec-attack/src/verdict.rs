//! What came of an attack, and the report over all of them.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Which layout the attacker is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Profile {
    /// A candidate execution.
    Exec,
    /// An Engineer session.
    Engineer,
}

/// Who started the helper.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartMode {
    /// Root: two mapped ids.
    Root,
    /// An ordinary user: one mapped id.
    User,
}

/// The judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Refused, and the control got through.
    Pass,
    /// The attacker got what it wanted.
    Fail,
    /// The control did not get through: the attack proves nothing here.
    Invalid,
    /// Not tried, for the reason given: this host cannot express it.
    Skipped,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Number in the threat list.
    pub(crate) case: u8,
    /// What was tried.
    pub(crate) attack: String,
    /// Where.
    pub(crate) profile: Profile,
    /// Started by whom.
    pub(crate) start: StartMode,
    /// The judgement.
    pub(crate) outcome: Outcome,
    /// What the attacker saw under the product's plan.
    pub(crate) seen: String,
    /// What the control saw, or why there is none.
    pub(crate) control: String,
}

/// Cases that come with the model gateway.
pub(crate) const LATER: &[u8] = &[17, 18, 19, 20, 21, 22, 39, 40];

/// Cases that are tests of the crates that they attack (`docs/attacks.md`).
pub(crate) const ELSEWHERE: &[u8] = &[24, 31];

/// All verdicts, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) verdicts: Vec<Verdict>,
}

impl Report {
    /// Number of verdicts with this outcome.
    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.verdicts
            .iter()
            .filter(|v| v.outcome == outcome)
            .count()
    }

    /// Nothing failed and every control was good.
    pub(crate) fn is_clean(&self) -> bool {
        self.count(Outcome::Fail) == 0 && self.count(Outcome::Invalid) == 0
    }

    /// One line.
    pub(crate) fn summary(&self) -> String {
        let bare = self
            .verdicts
            .iter()
            .filter(|v| v.outcome == Outcome::Pass && v.control.starts_with(NO_CONTROL))
            .count();
        format!(
            "{} attacks: {} pass ({bare} without a control), {} fail, {} invalid, {} skipped; cases {LATER:?} come with the gateway, {ELSEWHERE:?} are tests of their crates",
            self.verdicts.len(),
            self.count(Outcome::Pass),
            self.count(Outcome::Fail),
            self.count(Outcome::Invalid),
            self.count(Outcome::Skipped),
        )
    }

    /// A table for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| case | attack | profile | started by | result | seen | control |\n|---|---|---|---|---|---|---|\n",
        );
        for verdict in &self.verdicts {
            // A string cannot refuse what is written to it.
            let _ = writeln!(
                text,
                "| {} | `{}` | {} | {} | {} | {} | {} |",
                verdict.case,
                verdict.attack,
                word(&verdict.profile),
                word(&verdict.start),
                word(&verdict.outcome),
                cell(&verdict.seen),
                cell(&verdict.control),
            );
        }
        let _ = writeln!(text, "\n{}", self.summary());
        text
    }

    /// Writes `attack.json` and `attack.md`.
    pub(crate) fn write(&self, out: &Path) -> Result<()> {
        std::fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let write = |name: &str, text: &str| {
            let path = out.join(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        write("attack.json", &serde_json::to_string_pretty(self)?)?;
        write("attack.md", &self.markdown())
    }
}

/// How the control column begins when there is none.
pub(crate) const NO_CONTROL: &str = "no safe control: ";

fn cell(text: &str) -> String {
    let text: String = text.chars().take(160).collect();
    text.replace('|', "/").replace('\n', " ")
}

/// A unit variant's name as serde writes it.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
