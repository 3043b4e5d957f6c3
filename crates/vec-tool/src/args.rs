//! Arguments, by hand: five options do not need a parser library in every sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use vec_types::ViewId;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
usage: vec-score [--file PATH | --view VIEW=PATH ...] [--json]   score on half A; uses one query
       vec-check [--file PATH | --view VIEW=PATH ...] [--json]   check the format; free
default: --file /box/pred.csv for the board's only view; exit codes: 0 done, 2 invalid format,
3 quota exhausted, 1 other
";

/// What to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A query, charged.
    Score,
    /// A format check.
    Check,
}

impl Verb {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Score => "vec-score",
            Self::Check => "vec-check",
        }
    }
}

/// Which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    /// One file for the only view.
    Only(PathBuf),
    /// A file per view.
    ByView(Vec<(ViewId, PathBuf)>),
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) verb: Verb,
    pub(crate) files: Files,
    pub(crate) json: bool,
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Run(Args),
}

/// Why a command line is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("call it as vec-score or vec-check, or name one of them first")]
    NoVerb,
    #[error("unknown argument {0:?}")]
    Unknown(OsString),
    #[error("{0} needs a value")]
    NoValue(&'static str),
    #[error("--view needs VIEW=PATH, not {0:?}")]
    View(OsString),
    #[error("give one file, or one --view VIEW=PATH per view")]
    Mixed,
}

/// Where programs of an Engineer write their prediction.
const DEFAULT_FILE: &str = "/box/pred.csv";

impl Args {
    /// Parses a whole command line, the program's name first.
    pub(crate) fn parse(all: &[OsString]) -> Result<Request, ArgsError> {
        let mut rest = all.iter();
        let program = rest.next().map(Path::new).and_then(Path::file_name);
        let verb = match program.and_then(verb_of) {
            Some(verb) => verb,
            None => match rest.next() {
                Some(help) if is_help(help) => return Ok(Request::Help),
                Some(first) => verb_of(first).ok_or(ArgsError::NoVerb)?,
                None => return Err(ArgsError::NoVerb),
            },
        };
        let (mut only, mut by_view, mut json) = (None, Vec::new(), false);
        while let Some(argument) = rest.next() {
            match argument.to_str() {
                _ if is_help(argument) => return Ok(Request::Help),
                Some("--json") => json = true,
                Some("--view") => {
                    let value = rest.next().ok_or(ArgsError::NoValue("--view"))?;
                    by_view.push(view(value).ok_or_else(|| ArgsError::View(value.clone()))?);
                }
                Some("--file") => {
                    let value = rest.next().ok_or(ArgsError::NoValue("--file"))?;
                    set_once(&mut only, value)?;
                }
                Some(option) if option.starts_with('-') => {
                    return Err(ArgsError::Unknown(argument.clone()));
                }
                _ => set_once(&mut only, argument)?,
            }
        }
        let files = match (only, by_view.is_empty()) {
            (Some(_), false) => return Err(ArgsError::Mixed),
            (None, false) => Files::ByView(by_view),
            (only, true) => Files::Only(only.unwrap_or_else(|| DEFAULT_FILE.into())),
        };
        Ok(Request::Run(Self { verb, files, json }))
    }
}

fn set_once(only: &mut Option<PathBuf>, value: &OsStr) -> Result<(), ArgsError> {
    match only.replace(value.into()) {
        None => Ok(()),
        Some(_) => Err(ArgsError::Mixed),
    }
}

fn verb_of(name: &OsStr) -> Option<Verb> {
    match name.to_str()? {
        "vec-score" | "score" => Some(Verb::Score),
        "vec-check" | "check" => Some(Verb::Check),
        _ => None,
    }
}

fn is_help(argument: &OsStr) -> bool {
    argument == "--help" || argument == "-h"
}

fn view(value: &OsStr) -> Option<(ViewId, PathBuf)> {
    let (view, path) = value.to_str()?.split_once('=')?;
    if path.is_empty() {
        return None;
    }
    Some((view.parse().ok()?, path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, ArgsError> {
        Args::parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn both_ways_of_calling_mean_the_same() {
        let files = Files::Only(DEFAULT_FILE.into());
        let expected = Args {
            verb: Verb::Score,
            files,
            json: false,
        };
        for line in [
            "vec-score",
            "/opt/vec/bin/vec-score",
            "vec-tool vec-score",
            "vec-tool score",
        ] {
            assert_eq!(parse(line), Ok(Request::Run(expected.clone())), "{line}");
        }
        let files = Files::Only("p.csv".into());
        let expected = Args {
            verb: Verb::Check,
            files,
            json: true,
        };
        for line in [
            "vec-check --json --file p.csv",
            "x/vec-tool check p.csv --json",
        ] {
            assert_eq!(parse(line), Ok(Request::Run(expected.clone())), "{line}");
        }
        let Ok(Request::Run(args)) = parse("vec-check --view a=1 --view b=x=y") else {
            panic!("refused");
        };
        let view = |view: &str| view.parse().expect("view");
        let files = vec![(view("a"), "1".into()), (view("b"), "x=y".into())];
        assert_eq!(args.files, Files::ByView(files));
        assert_eq!(parse("vec-tool --help"), Ok(Request::Help));
        assert_eq!(parse("vec-score -h"), Ok(Request::Help));
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (line, error) in [
            ("vec-tool", ArgsError::NoVerb),
            ("vec-tool gpu", ArgsError::NoVerb),
            ("vec-score --jsn", ArgsError::Unknown("--jsn".into())),
            ("vec-score --file", ArgsError::NoValue("--file")),
            ("vec-score --view", ArgsError::NoValue("--view")),
            ("vec-score --view main", ArgsError::View("main".into())),
            ("vec-score --view ../x=p", ArgsError::View("../x=p".into())),
            ("vec-score --view main=", ArgsError::View("main=".into())),
            ("vec-score a b", ArgsError::Mixed),
            ("vec-score --file a --view main=b", ArgsError::Mixed),
        ] {
            assert_eq!(parse(line), Err(error), "{line}");
        }
    }
}
