//! The one figment loader: layers (built-in defaults < file < `--set`), then one pass that reads
//! the merged tree into a written form and collects every unknown key and wrong type.

mod checker;
mod collect;
mod document;
mod nearest;
mod source;

use std::path::{Path, PathBuf};

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use serde::de::DeserializeOwned;

pub(crate) use checker::{Checker, Numbers};
use document::Document;
pub(crate) use nearest::nearest;
pub(crate) use source::read_text;

/// One thing that is wrong in what somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or `--set key=value`.
    pub source: String,
    /// Key path, e.g. `budget.wall_hours`.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Why something that somebody wrote is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A directory, a pipe, a device, or too long to be a configuration.
    #[error("{}: must be a regular file of at most {} MiB", path.display(), source::FILE_BYTES_MAX >> 20)]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Not YAML, not a map, a key twice. The parser's own text names the line.
    #[error("{source_name}: {detail}")]
    Yaml {
        /// The file, or `--set key=value`.
        source_name: String,
        /// Why, with line and column.
        detail: String,
    },
    /// Not `key=value`.
    #[error("--set {0}: must be key=value, with a key path such as budget.max_nodes")]
    Set(String),
    /// Everything that is wrong, one line each.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}: {}", problem.source, problem.key, problem.message))
        .collect();
    lines.join("\n")
}

/// Layers of one configuration, merged.
pub(crate) struct Layers {
    figment: Figment,
    file: PathBuf,
    directory: PathBuf,
}

struct Layer {
    name: String,
    dict: Dict,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

impl Layers {
    pub(crate) fn new(defaults: &str, path: &Path, sets: &[String]) -> Result<Self, ConfigError> {
        Self::merged(defaults, path, &read_text(path)?, sets)
    }

    /// One layer: `text`, which is (a part of) the file at `path`.
    pub(crate) fn of_text(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::merged("", path, text, &[])
    }

    fn merged(
        defaults: &str,
        path: &Path,
        text: &str,
        sets: &[String],
    ) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let mut figment = Figment::new();
        for (name, text) in [("built-in defaults", defaults), (name.as_str(), text)] {
            figment = figment.merge(Layer {
                name: name.to_owned(),
                dict: dict_of(name, text)?,
            });
        }
        for set in sets {
            figment = figment.merge(set_layer(set)?);
        }
        let absolute = std::path::absolute(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self {
            figment,
            file: path.to_owned(),
            directory,
        })
    }

    /// Reads the merged tree. Every key of `T` must be optional, so that one wrong value hides no
    /// other problem.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let merged: Value = self.figment.extract().map_err(|error| ConfigError::Yaml {
            source_name: self.file.display().to_string(),
            detail: error.to_string(),
        })?;
        let tree = serde_json::to_value(&merged).map_err(|error| ConfigError::Yaml {
            source_name: self.file.display().to_string(),
            detail: error.to_string(),
        })?;
        collect::read(tree).map_err(|found| {
            ConfigError::Invalid(
                found
                    .into_iter()
                    .map(|(key, message)| self.problem(&key, message))
                    .collect(),
            )
        })
    }

    /// A problem with its source: the layer that the key's value is from, else the file.
    pub(crate) fn problem(&self, key: &str, message: String) -> Problem {
        let from_set = self
            .figment
            .find_metadata(key)
            .map(|metadata| metadata.name.to_string())
            .filter(|name| name.starts_with("--set "));
        Problem {
            source: from_set.unwrap_or_else(|| self.file.display().to_string()),
            key: key.to_owned(),
            message,
        }
    }

    /// A path as written → absolute, without `.` and `..` (by text: nothing needs to exist).
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        let mut resolved = PathBuf::new();
        for part in self.directory.join(written).components() {
            match part {
                std::path::Component::ParentDir => {
                    resolved.pop();
                }
                std::path::Component::CurDir => {}
                part => resolved.push(part),
            }
        }
        resolved
    }
}

fn parse(text: &str) -> Result<Document, String> {
    if let Some(line) = source::too_deep(text) {
        let most = source::NESTING_MAX;
        return Err(format!("nests deeper than {most} levels at line {line}"));
    }
    document::parse(text)
}

fn dict_of(name: &str, text: &str) -> Result<Dict, ConfigError> {
    let refused = |detail: String| ConfigError::Yaml {
        source_name: name.to_owned(),
        detail,
    };
    match parse(text).map_err(refused)? {
        Document(Value::Dict(_, dict)) => Ok(dict),
        Document(Value::Empty(..)) => Ok(Dict::new()),
        Document(_) => Err(refused("must be a map of keys".to_owned())),
    }
}

fn set_layer(set: &str) -> Result<Layer, ConfigError> {
    let name = format!("--set {set}");
    let refused = || ConfigError::Set(set.to_owned());
    let (key, text) = set.split_once('=').ok_or_else(refused)?;
    let parts: Vec<&str> = key.trim().split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(refused());
    }
    let Document(mut value) = parse(text).map_err(|detail| ConfigError::Yaml {
        source_name: name.clone(),
        detail,
    })?;
    for part in parts[1..].iter().rev() {
        value = Value::from(Dict::from([((*part).to_owned(), value)]));
    }
    Ok(Layer {
        name,
        dict: Dict::from([(parts[0].to_owned(), value)]),
    })
}
