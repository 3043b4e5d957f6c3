//! What changes in a manifest. A neutral schema: boards that have none of these fields (today's
//! tabular views) get another name and another order of keys, and nothing else.
//!
//! | field | change |
//! |---|---|
//! | the view's id, as any whole text outside lists of columns | the alias |
//! | every object's keys | reversed order |
//! | `mode`, `modes`, `*_mode` | `proxy` and `final` swapped |
//! | `stage`, `stages`, `*_stage`, `*_stages` | numbers + 1 day; texts like `E8.5`, `P0`: number + 1 |
//! | in objects below those and in `inputs` | the same for texts; numbers only at `time`, `times`, `day`, `days`, `time_days`, `hours`, `time_hours` (+ 24) |
//! | `stage_time`, `stage_times` anywhere | numbers + 1 |
//! | `inputs`: a list of file names, a list of objects with `file` or `path` (and `name` or `id`), or an object name → file name or such an object | the k-th becomes `input_<k>` with its extension, in the same directory; so does its name, wherever it stands as a whole text |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Number;
use vec_types::ViewId;

use super::json::Json;

/// Keys whose texts are names of the data, not of the view.
const COLUMN_KEYS: [&str; 6] = [
    "features",
    "columns",
    "target",
    "id_column",
    "genes",
    "files",
];

/// The inputs that a manifest lists, with their new names.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// File (below the view) → file.
    files: BTreeMap<String, String>,
    /// Name → name.
    names: BTreeMap<String, String>,
}

impl Inputs {
    /// Those of a manifest.
    pub(super) fn of(manifest: &Json) -> Self {
        let mut inputs = Self::default();
        match manifest.get("inputs") {
            Some(Json::List(items)) => {
                for (k, item) in items.iter().enumerate() {
                    inputs.add(k, None, item);
                }
            }
            Some(Json::Object(members)) => {
                for (k, (name, item)) in members.iter().enumerate() {
                    inputs.add(k, Some(name), item);
                }
            }
            _ => {}
        }
        inputs
    }

    fn add(&mut self, k: usize, name: Option<&str>, item: &Json) {
        let first = |keys: [&str; 2]| keys.iter().find_map(|key| item.get(key)?.text());
        let file = item.text().or_else(|| first(["file", "path"]));
        let name = name.or_else(|| first(["name", "id"]));
        if let Some(file) = file {
            let (dir, base) = file.rsplit_once('/').map_or(("", file), |(d, b)| (d, b));
            let slash = if dir.is_empty() { "" } else { "/" };
            let new = format!("{dir}{slash}input_{k}{}", extension(base));
            self.files.insert(file.to_owned(), new);
        }
        if let Some(name) = name {
            self.names.insert(name.to_owned(), format!("input_{k}"));
        }
    }

    /// Are there any?
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.names.is_empty()
    }

    /// Where a file of the view goes.
    pub(super) fn renamed(&self, path: &Path) -> PathBuf {
        let new = path.to_str().and_then(|path| self.files.get(path));
        new.map_or_else(|| path.to_owned(), PathBuf::from)
    }

    fn text(&self, text: &str) -> Option<&String> {
        self.files.get(text).or_else(|| self.names.get(text))
    }
}

// `.csv`, `.h5ad`, `.tar.gz`; what looks like a stage's fraction (`E8.5`) is none.
fn extension(base: &str) -> String {
    let is_word = |part: &str| part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let Some((stem, last)) = base.rsplit_once('.').filter(|(_, last)| is_word(last)) else {
        return String::new();
    };
    match stem.rsplit_once('.') {
        Some((_, inner)) if matches!(last, "gz" | "zst" | "xz") && is_word(inner) => {
            format!(".{inner}.{last}")
        }
        _ => format!(".{last}"),
    }
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Anywhere.
    Plain,
    /// Directly at a key of stages: numbers are times.
    Stage,
    /// Somewhere inside an object about stages or inputs.
    About,
    /// At a key of hours in such an object.
    Hours,
    /// At a key of modes.
    Mode,
    /// Names of the data.
    Columns,
}

struct Rewriter<'a> {
    view: &'a str,
    alias: &'a str,
    inputs: &'a Inputs,
    stages: bool,
    modes: bool,
}

/// The manifest in disguise, and what there was to change beside name and order.
pub(super) fn rewritten(
    manifest: &Json,
    view: &ViewId,
    alias: &ViewId,
    inputs: &Inputs,
) -> (Vec<u8>, Vec<&'static str>) {
    let mut rewriter = Rewriter {
        view: view.as_str(),
        alias: alias.as_str(),
        inputs,
        stages: false,
        modes: false,
    };
    let new = rewriter.value(manifest, Place::Plain);
    let changed = [
        ("stages", rewriter.stages),
        ("modes", rewriter.modes),
        ("inputs", !inputs.is_empty()),
    ];
    let changed = changed.into_iter().filter(|(_, changed)| *changed);
    (new.to_bytes(), changed.map(|(name, _)| name).collect())
}

impl Rewriter<'_> {
    fn value(&mut self, value: &Json, place: Place) -> Json {
        match value {
            Json::Plain(_) => value.clone(),
            Json::Number(number) => self.number(number, place),
            Json::Text(text) => Json::Text(self.text(text, place)),
            Json::List(items) => {
                Json::List(items.iter().map(|item| self.value(item, place)).collect())
            }
            Json::Object(members) => {
                let inside = match place {
                    Place::Stage | Place::Hours => Place::About,
                    other => other,
                };
                let members = members.iter().rev();
                Json::Object(
                    members
                        .map(|(key, value)| self.member(key, value, inside))
                        .collect(),
                )
            }
        }
    }

    fn member(&mut self, key: &str, value: &Json, place: Place) -> (String, Json) {
        let value = self.value(value, place_of(key, place));
        let key = match place {
            Place::About => self.inputs.text(key).cloned().or_else(|| self.shifted(key)),
            _ => None,
        }
        .unwrap_or_else(|| key.to_owned());
        (key, value)
    }

    fn number(&mut self, number: &Number, place: Place) -> Json {
        let days = match place {
            Place::Stage => 1,
            Place::Hours => 24,
            _ => return Json::Number(number.clone()),
        };
        self.stages = true;
        let new = match number.as_i64() {
            Some(whole) => Some(Number::from(whole.saturating_add(days))),
            None => number
                .as_f64()
                .and_then(|value| Number::from_f64(value + days as f64)),
        };
        Json::Number(new.unwrap_or_else(|| number.clone()))
    }

    fn text(&mut self, text: &str, place: Place) -> String {
        if place == Place::Columns {
            return text.to_owned();
        }
        if let Some(new) = self.inputs.text(text) {
            return new.clone();
        }
        if text == self.view {
            return self.alias.to_owned();
        }
        match (place, text) {
            (Place::Mode, "proxy" | "final") => {
                self.modes = true;
                let other = if text == "proxy" { "final" } else { "proxy" };
                return other.to_owned();
            }
            (Place::Stage | Place::About, _) => {
                if let Some(new) = self.shifted(text) {
                    return new;
                }
            }
            _ => {}
        }
        text.to_owned()
    }

    /// `E8.5` → `E9.5`; `None`: no stage.
    fn shifted(&mut self, text: &str) -> Option<String> {
        let number = text.strip_prefix(['E', 'P'])?;
        let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let fraction_ok = rest.is_empty() || rest.strip_prefix('.').is_some_and(digits);
        if !digits(whole) || !fraction_ok {
            return None;
        }
        let day: u32 = whole.parse().ok()?;
        self.stages = true;
        Some(format!("{}{}{rest}", &text[..1], day.checked_add(1)?))
    }
}

fn place_of(key: &str, outside: Place) -> Place {
    let ends = |end: &str| key.ends_with(end);
    match key {
        _ if COLUMN_KEYS.contains(&key) && outside == Place::Plain => Place::Columns,
        "mode" | "modes" => Place::Mode,
        _ if ends("_mode") || ends("_modes") => Place::Mode,
        "stage" | "stages" | "stage_time" | "stage_times" => Place::Stage,
        _ if ends("_stage") || ends("_stages") => Place::Stage,
        "inputs" => Place::About,
        "time" | "times" | "day" | "days" | "time_days" if outside == Place::About => Place::Stage,
        "hours" | "time_hours" if outside == Place::About => Place::Hours,
        _ => outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disguised(text: &str) -> (String, Vec<&'static str>) {
        let manifest = Json::parse(text.as_bytes()).expect("JSON");
        let inputs = Inputs::of(&manifest);
        let view = "proxy10".parse().expect("view");
        let alias = "view_0a".parse().expect("view");
        let (bytes, changed) = rewritten(&manifest, &view, &alias, &inputs);
        let text = String::from_utf8(bytes).expect("text");
        (text.split_whitespace().collect(), changed)
    }

    #[test]
    fn each_field_changes_as_the_table_says() {
        let all = ["stages", "modes", "inputs"];
        let rows: [(&str, &str, &[&str]); 14] = [
            (
                r#"{"a":1,"b":{"c":2,"d":3}}"#,
                r#"{"b":{"d":3,"c":2},"a":1}"#,
                &[],
            ),
            (r#"{"view":"proxy10"}"#, r#"{"view":"view_0a"}"#, &[]),
            (r#"{"title":"proxy10"}"#, r#"{"title":"view_0a"}"#, &[]),
            (
                r#"{"features":["proxy10"]}"#,
                r#"{"features":["proxy10"]}"#,
                &[],
            ),
            (r#"{"mode":"proxy"}"#, r#"{"mode":"final"}"#, &["modes"]),
            (
                r#"{"run_modes":["final","x"]}"#,
                r#"{"run_modes":["proxy","x"]}"#,
                &["modes"],
            ),
            (r#"{"note":"proxy"}"#, r#"{"note":"proxy"}"#, &[]),
            (
                r#"{"stages":["E8.5","E10",9.25,3],"n":3}"#,
                r#"{"n":3,"stages":["E9.5","E11",10.25,4]}"#,
                &["stages"],
            ),
            (
                r#"{"target_stage":{"name":"E8.75","day":8.75,"hours":210,"cells":500}}"#,
                r#"{"target_stage":{"cells":500,"hours":234,"day":9.75,"name":"E9.75"}}"#,
                &["stages"],
            ),
            (
                r#"{"stages":{"E8.5":{"cells":7}}}"#,
                r#"{"stages":{"E9.5":{"cells":7}}}"#,
                &["stages"],
            ),
            (
                r#"{"gene":"E8.5","stage":"E2F1"}"#,
                r#"{"stage":"E2F1","gene":"E8.5"}"#,
                &[],
            ),
            (
                r#"{"inputs":["data/E8.5.h5ad","b"],"reference":"data/E8.5.h5ad"}"#,
                r#"{"reference":"data/input_0.h5ad","inputs":["data/input_0.h5ad","input_1"]}"#,
                &["inputs"],
            ),
            (
                r#"{"inputs":[{"name":"early","file":"e.csv.gz","stage":"E8","n":5}],"mode":"final","use":"early"}"#,
                r#"{"use":"input_0","mode":"proxy","inputs":[{"n":5,"stage":"E9","file":"input_0.csv.gz","name":"input_0"}]}"#,
                &all,
            ),
            (
                r#"{"inputs":{"early":"E8.5"}}"#,
                r#"{"inputs":{"input_0":"input_0"}}"#,
                &["inputs"],
            ),
        ];
        for (text, wanted, changed) in rows {
            assert_eq!(
                disguised(text),
                (wanted.to_owned(), changed.to_vec()),
                "{text}"
            );
        }
    }
}
