//! The playbook file and the programs beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use vec_types::{BoardId, FamilyId};

use crate::deal::OutcomeCard;
use crate::parameters::{ParameterFile, ParameterRange};
use crate::program::check_template;

/// Longest accepted playbook or program file in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Most cards of a deck.
const CARDS_MAX: u32 = 1_000;

/// A playbook that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// A file cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is too long.
    #[error("{path}: {bytes} bytes; at most {FILE_BYTES_MAX} are accepted")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The YAML does not fit; the text names key, line and column.
    #[error("{path}: {problem}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        problem: String,
    },
    /// A key has a value that makes no sense.
    #[error("{path}: {key}: {problem}")]
    Key {
        /// The file.
        path: PathBuf,
        /// Path of the key.
        key: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The board has a family that the playbook does not play.
    #[error("{path}: family {family} of the board is missing under `families`")]
    MissingFamily {
        /// The file.
        path: PathBuf,
        /// The family.
        family: FamilyId,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaybookFile {
    board: BoardId,
    outcomes: BTreeMap<OutcomeCard, u32>,
    switch_family_p: f64,
    families: BTreeMap<FamilyId, FamilyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyFile {
    program: String,
    #[serde(default)]
    per_view: Vec<String>,
    summary: String,
    mechanism: String,
    ablate: String,
    motivation: String,
    approach: String,
    ideas: Vec<String>,
    parameters: BTreeMap<String, ParameterFile>,
}

/// A method family as the playbook plays it.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Program template with `{{name}}` for each parameter, the prelude already put in.
    pub template: String,
    /// Weights that the program trains once per view, below `solution/` (CTR-03).
    pub per_view: Vec<String>,
    /// What the program does, in half a sentence.
    pub summary: String,
    /// The mechanism that `--ablate` switches off.
    pub mechanism: String,
    /// The word for `--ablate`.
    pub ablate: String,
    /// PLAN.motivation.
    pub motivation: String,
    /// PLAN.approach.
    pub approach: String,
    /// Variants, for PLAN.name.
    pub ideas: Vec<String>,
    /// Ranges that settings are drawn from.
    pub parameters: BTreeMap<String, ParameterRange>,
}

/// A loaded playbook.
#[derive(Debug, Clone, PartialEq)]
pub struct Playbook {
    /// The board it is written for.
    pub board: BoardId,
    /// The deck: each card as often as the file says, in the order of [`OutcomeCard`].
    pub deck: Vec<OutcomeCard>,
    /// Probability that an improve node leaves its parent's family.
    pub switch_family_p: f64,
    families: BTreeMap<FamilyId, Family>,
}

impl Playbook {
    /// Reads and checks `path` and the programs in the folder of the same name beside it.
    ///
    /// # Errors
    /// [`PlaybookError`] naming file and key.
    pub fn load(path: &Path) -> Result<Self, PlaybookError> {
        let text = read(path)?;
        let file: PlaybookFile =
            serde_yaml::from_str(&text).map_err(|error| PlaybookError::Yaml {
                path: path.to_owned(),
                problem: error.to_string(),
            })?;
        let wrong = |key: &str, problem: &str| PlaybookError::Key {
            path: path.to_owned(),
            key: key.to_owned(),
            problem: problem.to_owned(),
        };
        let cards: u64 = file.outcomes.values().map(|count| u64::from(*count)).sum();
        if cards == 0 || cards > u64::from(CARDS_MAX) {
            let problem = format!("{cards} cards; the counts must sum to 1 to {CARDS_MAX}");
            return Err(wrong("outcomes", &problem));
        }
        if !(0.0..=1.0).contains(&file.switch_family_p) {
            return Err(wrong("switch_family_p", "must be a probability, 0 to 1"));
        }
        if file.families.is_empty() {
            return Err(wrong("families", "at least one is needed"));
        }
        let deck = file
            .outcomes
            .iter()
            .flat_map(|(card, count)| std::iter::repeat_n(*card, *count as usize))
            .collect();
        let folder = path.with_extension("");
        let families = file
            .families
            .into_iter()
            .map(|(id, family)| {
                let family = load_family(path, &folder, &id, family)?;
                Ok((id, family))
            })
            .collect::<Result<_, PlaybookError>>()?;
        Ok(Self {
            board: file.board,
            deck,
            switch_family_p: file.switch_family_p,
            families,
        })
    }

    /// The families, in order of their ids.
    pub fn families(&self) -> impl Iterator<Item = (&FamilyId, &Family)> {
        self.families.iter()
    }

    /// One family.
    #[must_use]
    pub fn family(&self, id: &FamilyId) -> Option<&Family> {
        self.families.get(id)
    }

    /// Does it play every one of `families`, the board's idea library? `path` is for the error.
    ///
    /// # Errors
    /// [`PlaybookError::MissingFamily`].
    pub fn check_families(&self, path: &Path, families: &[FamilyId]) -> Result<(), PlaybookError> {
        match families.iter().find(|id| !self.families.contains_key(*id)) {
            None => Ok(()),
            Some(id) => Err(PlaybookError::MissingFamily {
                path: path.to_owned(),
                family: id.clone(),
            }),
        }
    }
}

fn load_family(
    path: &Path,
    folder: &Path,
    id: &FamilyId,
    file: FamilyFile,
) -> Result<Family, PlaybookError> {
    let wrong = |key: &str, problem: String| PlaybookError::Key {
        path: path.to_owned(),
        key: format!("families.{id}.{key}"),
        problem,
    };
    let plain = file.program.ends_with(".py")
        && !file.program.starts_with('.')
        && !file.program.contains('/');
    if !plain {
        let problem = format!("{:?} must be the name of a .py file", file.program);
        return Err(wrong("program", problem));
    }
    if file.ideas.is_empty() {
        return Err(wrong("ideas", "at least one is needed".to_owned()));
    }
    let mut parameters = BTreeMap::new();
    for (name, range) in file.parameters {
        let range = range
            .check()
            .map_err(|problem| wrong(&format!("parameters.{name}"), problem))?;
        parameters.insert(name, range);
    }
    let program = read(&folder.join(&file.program))?;
    let template = match program.contains(crate::program::PRELUDE) {
        false => program,
        true => {
            let prelude = read(&folder.join("prelude.py"))?;
            program.replace(crate::program::PRELUDE, prelude.trim_end())
        }
    };
    check_template(&template, parameters.keys()).map_err(|problem| wrong("program", problem))?;
    Ok(Family {
        template,
        per_view: file.per_view,
        summary: file.summary,
        mechanism: file.mechanism,
        ablate: file.ablate,
        motivation: file.motivation,
        approach: file.approach,
        ideas: file.ideas,
        parameters,
    })
}

fn read(path: &Path) -> Result<String, PlaybookError> {
    let failed = |source| PlaybookError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > FILE_BYTES_MAX {
        let path = path.to_owned();
        return Err(PlaybookError::TooLong { path, bytes });
    }
    std::fs::read_to_string(path).map_err(failed)
}
