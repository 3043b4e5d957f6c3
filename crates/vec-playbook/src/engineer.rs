//! The scripted Engineer: runs inside the real Engineer sandbox, writes `solution/`, tries
//! settings with the real tools, keeps the best, and plays the card that the node was dealt.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use vec_types::FamilyId;

use crate::deal::{Dice, Operator, OutcomeCard, deal};
use crate::program::{read_header, render};
use crate::session::{Brief, Session, read_brief};
use crate::tools::{self, Ended};
use crate::{Family, Playbook, PlaybookError, Settings, escape};

/// The program's declaration of its weights.
const ARTIFACTS: &str = "ARTIFACTS.json";
/// A tool call gets this long; the scorer answers in milliseconds unless it is down.
const TOOL_LIMIT: Duration = Duration::from_secs(60);
/// A trial gets the view's own limit, but never longer than this.
const TRIAL_LIMIT_MAX: Duration = Duration::from_secs(120);

/// A session that cannot be played. Exit 1 without a `finish` event: a provider fault.
#[derive(Debug, thiserror::Error)]
pub enum EngineerError {
    /// A file cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the brief does not fit.
    #[error("{path}: {problem}")]
    Brief {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        problem: String,
    },
    /// A file cannot be written.
    #[error("write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The playbook.
    #[error("load the playbook")]
    Playbook(#[source] PlaybookError),
    /// The playbook has no family to play.
    #[error("the playbook has no families")]
    NoFamily,
    /// stdout is gone.
    #[error("write an event")]
    Events(#[source] std::io::Error),
}

/// A tried setting.
struct Trial {
    settings: Settings,
    score: Option<f64>,
}

/// One session: `brief` holds the files of the brief, `work` holds `solution/`, scratch files go
/// to `scratch`, events to `events`.
///
/// # Errors
/// [`EngineerError`]; whatever the tools do is part of the session, not an error.
pub async fn engineer(
    brief: &Path,
    work: &Path,
    scratch: &Path,
    events: &mut dyn Write,
) -> Result<(), EngineerError> {
    let (brief, plan) = read_brief(brief)?;
    let book = &brief.playbook;
    let playbook = Playbook::load(&book.file).map_err(EngineerError::Playbook)?;
    let card = deal(&playbook.deck, book.search_seed, brief.node, brief.operator);
    let mut session = Session { work, events };
    session.emit(&json!({"type": "session_start", "agent": "vec-playbook"}))?;
    session.say(&format!("Plan: {}", plan.name))?;
    if card == OutcomeCard::Escape {
        attempt_escape(&mut session)?;
    }
    let planned = plan.family_id.as_ref();
    let (id, family) = planned
        .and_then(|id| playbook.families().find(|(known, _)| *known == id))
        .or_else(|| playbook.families().next())
        .ok_or(EngineerError::NoFamily)?;
    let mut climb = Climb {
        brief: &brief,
        scratch,
        id,
        family,
        session,
    };
    climb.play(card).await
}

fn attempt_escape(session: &mut Session<'_>) -> Result<(), EngineerError> {
    for attempt in escape::session_attempts() {
        session.call("escape", std::slice::from_ref(&attempt.what))?;
        session.result("escape", None, &attempt.result)?;
    }
    Ok(())
}

/// Hill climbing over the settings of one family.
struct Climb<'a> {
    brief: &'a Brief,
    scratch: &'a Path,
    id: &'a FamilyId,
    family: &'a Family,
    session: Session<'a>,
}

impl Climb<'_> {
    async fn play(&mut self, card: OutcomeCard) -> Result<(), EngineerError> {
        let before = self.session.read("run.py")?;
        let trials = match card {
            // What will not be kept or will not run is not worth many trials.
            OutcomeCard::Crash | OutcomeCard::Timeout | OutcomeCard::Nan => 1,
            _ => self
                .brief
                .playbook
                .trials
                .min(self.brief.score_quota)
                .max(1),
        };
        let best = self.climb(before.as_deref(), trials).await?;
        let program = render(self.family, &best.settings, card);
        if card == OutcomeCard::NoChange || before.as_deref() == Some(program.as_str()) {
            return self.no_change(before.as_deref(), trials);
        }
        self.session.write("run.py", &program)?;
        self.declare()?;
        match card {
            OutcomeCard::MissingMethod => self.session.remove("METHOD.md")?,
            OutcomeCard::AutoMethod => {}
            _ => {
                let method = self.method(&best.settings, trials);
                self.session.write("METHOD.md", &method)?;
            }
        }
        self.session.say(&format!(
            "Done: {} with {} of {trials} settings scored.",
            self.family.summary,
            if best.score.is_some() {
                "the best"
            } else {
                "none"
            },
        ))?;
        self.finish()
    }

    /// The best of `trials` settings: first the parent's or a drawn one, then steps from the best.
    async fn climb(&mut self, before: Option<&str>, trials: u32) -> Result<Trial, EngineerError> {
        let node = self.brief.node;
        let mut dice = Dice::new("engineer", self.brief.playbook.search_seed, node, 0);
        let drawn = Settings::draw(self.id, self.family, &mut dice);
        let mut best = self
            .attempt(self.inherited(before).unwrap_or(drawn), 0)
            .await?;
        for number in 1..trials {
            let settings = best.settings.step(self.family, &mut dice);
            let trial = self.attempt(settings, number).await?;
            if trial.score > best.score {
                best = trial;
            }
        }
        Ok(best)
    }

    /// Settings of the program that the session began with, if it is of this family.
    fn inherited(&self, before: Option<&str>) -> Option<Settings> {
        if self.brief.operator == Operator::Draft {
            return None;
        }
        let (family, values) = read_header(before?)?;
        let same = family == self.id.as_str();
        same.then(|| Settings::fitted(self.id, self.family, &values))
    }

    /// Writes the program, runs it on every view, checks and scores what it wrote.
    async fn attempt(&mut self, settings: Settings, number: u32) -> Result<Trial, EngineerError> {
        let program = render(self.family, &settings, OutcomeCard::Normal);
        self.session.write("run.py", &program)?;
        let score = self.scored(number).await?;
        Ok(Trial { settings, score })
    }

    async fn scored(&mut self, number: u32) -> Result<Option<f64>, EngineerError> {
        let mut files = Vec::new();
        for view in &self.brief.views {
            self.forget_weights()?;
            let out = self
                .scratch
                .join(format!("trial{number}-{}.csv", view.view));
            let argv = [
                self.brief.python.clone(),
                self.session.solution("run.py").display().to_string(),
                "--data".to_owned(),
                view.dir.display().to_string(),
                "--out".to_owned(),
                out.display().to_string(),
                "--seed".to_owned(),
                "0".to_owned(),
            ];
            let limit = view.manifest.limits.time_limit_s.clamp(1.0, 1e6);
            let limit = Duration::from_secs_f64(limit).min(TRIAL_LIMIT_MAX);
            let ended = self.tool("python", &argv, limit).await?;
            if ended.exit != Some(0) {
                return Ok(None);
            }
            files.push("--view".to_owned());
            files.push(format!("{}={}", view.view, out.display()));
        }
        let check = [
            &[self.brief.tools.check.clone(), "--json".to_owned()],
            &files[..],
        ]
        .concat();
        let checked = self.tool("vec-check", &check, TOOL_LIMIT).await?;
        if !tools::check_ok(&checked.stdout) {
            return Ok(None);
        }
        let ask = [
            &[self.brief.tools.score.clone(), "--json".to_owned()],
            &files[..],
        ]
        .concat();
        let scored = self.tool("vec-score", &ask, TOOL_LIMIT).await?;
        Ok(tools::score(&scored.stdout))
    }

    async fn tool(
        &mut self,
        name: &str,
        argv: &[String],
        limit: Duration,
    ) -> Result<Ended, EngineerError> {
        self.session.call(name, argv.get(1..).unwrap_or(&[]))?;
        let ended = tools::run(argv, self.session.work, limit).await;
        self.session.result(name, ended.exit, &ended.shown)?;
        Ok(ended)
    }

    /// Weights belong to the setting and the view that they were trained with.
    fn forget_weights(&mut self) -> Result<(), EngineerError> {
        let dirs: BTreeSet<&str> = self
            .family
            .per_view
            .iter()
            .filter_map(|path| Some(path.rsplit_once('/')?.0))
            .collect();
        dirs.into_iter()
            .try_for_each(|dir| self.session.forget(dir))
    }

    /// ARTIFACTS.json as the family needs it (CTR-03), and no weights: they are not committed.
    fn declare(&mut self) -> Result<(), EngineerError> {
        self.forget_weights()?;
        let entries: Vec<Value> = self
            .family
            .per_view
            .iter()
            .map(|path| json!({"path": path, "sha256": null, "per_view": true}))
            .collect();
        if !entries.is_empty() {
            let text = format!("{:#}\n", Value::Array(entries));
            self.session.write(ARTIFACTS, &text)
        } else if self.session.read(ARTIFACTS)?.is_some() {
            self.session.remove(ARTIFACTS)
        } else {
            Ok(())
        }
    }

    /// Puts the program back and says that nothing was worth changing (MTH-07).
    fn no_change(&mut self, before: Option<&str>, trials: u32) -> Result<(), EngineerError> {
        self.forget_weights()?;
        match before {
            Some(program) => self.session.write("run.py", program)?,
            None => self.session.remove("run.py")?,
        }
        let family = self.id;
        let text = format!(
            "NO_CHANGE: {family}: no setting of {trials} was better than the parent\n\nTried with vec-score; run.py is as it was.\n"
        );
        self.session.write("METHOD.md", &text)?;
        self.session.say("Nothing was worth changing.")?;
        self.finish()
    }

    /// METHOD.md holds no score: scores do not belong into agent-visible texts.
    fn method(&self, settings: &Settings, trials: u32) -> String {
        let values: Vec<String> = settings
            .values
            .iter()
            .map(|(name, value)| format!("{name} = {}", value.literal()))
            .collect();
        format!(
            "{}: {} ({})\n\nMechanism: {}; `--ablate {}` switches it off.\nThe setting is the best of {trials} by vec-score. Everything that depends on data is computed by the program from the view.\n",
            self.id,
            self.family.summary,
            values.join(", "),
            self.family.mechanism,
            self.family.ablate,
        )
    }

    fn finish(&mut self) -> Result<(), EngineerError> {
        self.session
            .emit(&json!({"type": "finish", "reason": "stop"}))
    }
}
