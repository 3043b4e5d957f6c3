//! The shipped playbooks: every program runs, beats the mean, answers to `--ablate` and `--seed`,
//! and fails as its card says. Needs `/usr/bin/python3`; housing needs numpy, in the interpreter
//! that `VEC_NUMPY_PYTHON` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use vec_types::{FamilyId, NodeId};

use crate::deal::{Dice, Operator, OutcomeCard, deal};
use crate::{Family, Playbook, Settings, render};

const PYTHON: &str = "/usr/bin/python3";
/// Draws per family.
const DRAWS: u32 = 4;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn shipped(name: &str) -> Playbook {
    let path = repository().join("configs/playbooks").join(name);
    Playbook::load(&path).expect("the shipped playbook loads")
}

fn skip(why: &str) {
    let line = format!("SKIPPED: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("stderr");
}

/// Interpreter for stdlib programs, or a loud skip.
pub(crate) fn python() -> Option<PathBuf> {
    let found = Path::new(PYTHON).exists().then(|| PathBuf::from(PYTHON));
    if found.is_none() {
        skip("/usr/bin/python3 is not there, so no shipped program was run");
    }
    found
}

/// A view with its hidden targets beside it.
pub(crate) struct View {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) truth: BTreeMap<String, f64>,
    floor: f64,
}

/// Builds a view from a CSV: every row whose number is below `train` of `out_of` goes to train.
pub(crate) fn view(csv: &str, target: &str, train: usize, out_of: usize) -> View {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("header").split(',').collect();
    let at = header
        .iter()
        .position(|name| *name == target)
        .expect("target");
    let features: Vec<usize> = (0..header.len())
        .filter(|i| *i != at && header[*i] != "id")
        .collect();
    let names: Vec<&str> = features.iter().map(|i| header[*i]).collect();
    let mut train_csv = format!("id,{},{target}\n", names.join(","));
    let mut test_csv = format!("id,{}\n", names.join(","));
    let (mut truth, mut seen) = (BTreeMap::new(), Vec::new());
    for (number, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let values: Vec<&str> = features.iter().map(|i| cells[*i]).collect();
        let value: f64 = cells[at].parse().expect("number");
        if number % out_of < train {
            train_csv.push_str(&format!("{number},{},{}\n", values.join(","), cells[at]));
            seen.push(value);
        } else {
            test_csv.push_str(&format!("{number},{}\n", values.join(",")));
            truth.insert(number.to_string(), value);
        }
    }
    let manifest = json!({
        "schema": 1, "board": "b", "view": "main", "task": "tabular_regression",
        "id_column": "id", "target": target, "features": names,
        "files": {"train": "train.csv", "test": "test.csv"},
        "output": {"format": "tabular_csv", "file": "pred.csv", "columns": ["id", "prediction"]},
        "limits": {"memory_gb": 1, "time_limit_s": 6, "threads": 1, "output_max_mb": 16},
    });
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in [
        ("train.csv", train_csv),
        ("test.csv", test_csv),
        ("manifest.json", manifest.to_string()),
    ] {
        std::fs::write(folder.path().join(name), text).expect("write");
    }
    let mean = seen.iter().sum::<f64>() / seen.len() as f64;
    let floor = rmse(truth.values().map(|value| value - mean));
    View {
        folder,
        truth,
        floor,
    }
}

fn rmse(errors: impl Iterator<Item = f64>) -> f64 {
    let squares: Vec<f64> = errors.map(|error| error * error).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

pub(crate) fn diabetes() -> View {
    let path = repository().join("tests/data/diabetes/diabetes.csv");
    let csv = std::fs::read_to_string(path).expect("tests/data/diabetes/diabetes.csv");
    view(&csv, "progression", 6, 10)
}

struct Program<'a> {
    python: &'a Path,
    view: &'a View,
    folder: tempfile::TempDir,
}

impl<'a> Program<'a> {
    fn new(python: &'a Path, view: &'a View, text: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("run.py"), text).expect("write");
        Self {
            python,
            view,
            folder,
        }
    }

    fn run(&self, seed: &str, ablate: Option<&str>) -> Output {
        let out = self.out();
        let _ = std::fs::remove_file(&out);
        // The harness never shows weights of another call's key.
        let _ = std::fs::remove_dir_all(self.folder.path().join("weights"));
        self.run_again(seed, ablate)
    }

    /// With the weights of the run before.
    fn run_again(&self, seed: &str, ablate: Option<&str>) -> Output {
        let out = self.out();
        let mut command = Command::new(self.python);
        command
            .arg(self.folder.path().join("run.py"))
            .arg("--data")
            .arg(self.view.folder.path())
            .arg("--out")
            .arg(out)
            .args(["--seed", seed])
            .env("OMP_NUM_THREADS", "1")
            .env("OPENBLAS_NUM_THREADS", "1");
        if let Some(name) = ablate {
            command.args(["--ablate", name]);
        }
        command.output().expect("python runs")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("pred.csv")
    }

    /// Bytes of a sound prediction and its error relative to the floor.
    fn predicts(&self, seed: &str, ablate: Option<&str>) -> (Vec<u8>, f64) {
        let output = self.run(seed, ablate);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let bytes = std::fs::read(self.out()).expect("prediction");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("id,prediction"));
        let found: BTreeMap<String, f64> = lines
            .map(|line| {
                let (id, value) = line.split_once(',').expect("two cells");
                (id.to_owned(), value.parse().expect("number"))
            })
            .collect();
        assert!(
            found.keys().eq(self.view.truth.keys()),
            "exactly the test ids"
        );
        assert!(found.values().all(|value| value.is_finite()));
        let errors = found.iter().map(|(id, value)| value - self.view.truth[id]);
        (bytes, rmse(errors) / self.view.floor)
    }
}

fn draws(id: &FamilyId, family: &Family) -> impl Iterator<Item = Settings> {
    (0..DRAWS).map(move |number| {
        let mut dice = Dice::new("test", 1, NodeId(number), 0);
        Settings::draw(id, family, &mut dice)
    })
}

fn check_programs(playbook: &Playbook, python: &Path, view: &View, worst: f64) {
    for (id, family) in playbook.families() {
        for settings in draws(id, family) {
            let program = render(family, &settings, OutcomeCard::Normal);
            let program = Program::new(python, view, &program);
            let (bytes, error) = program.predicts("0", None);
            assert!(error < worst, "{settings:?}: {error}");
            assert_eq!(
                program.predicts("0", None).0,
                bytes,
                "same seed, same bytes"
            );
            let (control, _) = program.predicts("0", Some(&family.ablate));
            assert_ne!(
                control, bytes,
                "{settings:?}: the control switches something off"
            );
            let unknown = program.run("0", Some("nonsense"));
            assert_eq!(unknown.status.code(), Some(2));
            let stderr = String::from_utf8_lossy(&unknown.stderr);
            assert!(stderr.contains("unrecognized arguments"), "{stderr}");
            assert!(!program.out().exists());
        }
    }
}

#[test]
fn diabetes_programs_beat_the_mean() {
    let Some(python) = python() else { return };
    check_programs(&shipped("diabetes.yaml"), &python, &diabetes(), 0.85);
}

#[test]
fn a_a_programs_equal_the_mean_in_quality_not_in_bytes() {
    let Some(python) = python() else { return };
    let (playbook, view) = (shipped("diabetes_aa.yaml"), diabetes());
    check_programs(&playbook, &python, &view, 1.01);
    let (id, family) = playbook.families().next().expect("a family");
    let outputs: Vec<(Vec<u8>, f64)> = draws(id, family)
        .map(|settings| {
            let text = render(family, &settings, OutcomeCard::Normal);
            Program::new(&python, &view, &text).predicts("0", None)
        })
        .collect();
    for (index, (bytes, error)) in outputs.iter().enumerate() {
        assert!((error - 1.0).abs() < 1e-3, "{error}");
        assert!(outputs[..index].iter().all(|(other, _)| other != bytes));
    }
}

#[test]
fn seeds_change_only_programs_that_sample() {
    let Some(python) = python() else { return };
    let (playbook, view) = (shipped("diabetes.yaml"), diabetes());
    for (id, family) in playbook.families() {
        let settings = draws(id, family).next().expect("a draw");
        let text = render(family, &settings, OutcomeCard::Normal);
        let program = Program::new(&python, &view, &text);
        let same = program.predicts("0", None).0 == program.predicts("1", None).0;
        let samples = matches!(id.as_str(), "bagging" | "boosting");
        assert_eq!(same, !samples, "{id}");
    }
}

#[test]
fn declared_weights_are_written_and_give_the_same_bytes_again() {
    let Some(python) = python() else { return };
    let (playbook, view) = (shipped("diabetes.yaml"), diabetes());
    let mut declaring = 0;
    for (id, family) in playbook.families().filter(|(_, f)| !f.per_view.is_empty()) {
        declaring += 1;
        let settings = draws(id, family).next().expect("a draw");
        let text = render(family, &settings, OutcomeCard::Normal);
        let program = Program::new(&python, &view, &text);
        let (bytes, _) = program.predicts("0", None);
        for path in &family.per_view {
            assert!(program.folder.path().join(path).is_file(), "{id}: {path}");
        }
        assert!(program.run_again("0", None).status.success());
        assert_eq!(
            std::fs::read(program.out()).expect("prediction"),
            bytes,
            "{id}"
        );
        let weights = program.folder.path().join(&family.per_view[0]);
        std::fs::write(&weights, "{}").expect("write");
        let spoiled = program.run_again("0", None);
        assert!(!spoiled.status.success(), "{id}: the weights are used");
    }
    assert!(declaring > 0, "one shipped family trains once per view");
}

#[test]
fn faulty_programs_fail_as_their_cards_say() {
    let Some(python) = python() else { return };
    let (playbook, view) = (shipped("diabetes.yaml"), diabetes());
    for (id, family) in playbook.families() {
        let settings = draws(id, family).next().expect("a draw");
        let program = |card| Program::new(&python, &view, &render(family, &settings, card));
        let crash = program(OutcomeCard::Crash);
        let output = crash.run("0", None);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("ArithmeticError"));
        assert!(!crash.out().exists());

        let nan = program(OutcomeCard::Nan);
        assert!(nan.run("0", None).status.success());
        let text = std::fs::read_to_string(nan.out()).expect("prediction");
        assert!(
            text.lines().skip(1).all(|line| line.ends_with(",nan")),
            "{text}"
        );

        let escape = program(OutcomeCard::Escape);
        let sound = program(OutcomeCard::Normal).predicts("0", None);
        assert_eq!(escape.predicts("0", None), sound, "then it behaves");
        let said = escape.run("0", None).stdout;
        let tried = String::from_utf8_lossy(&said).matches("escape: ").count();
        assert_eq!(tried, 17);

        let endless = render(family, &settings, OutcomeCard::Timeout);
        assert!(endless.contains("while True:"));
    }
}

#[test]
fn housing_programs_beat_the_mean() {
    let playbook = shipped("housing.yaml");
    let Some(python) = std::env::var_os("VEC_NUMPY_PYTHON").map(PathBuf::from) else {
        return skip(
            "VEC_NUMPY_PYTHON names no interpreter with numpy; housing programs were not run",
        );
    };
    let shared = std::env::var_os("VEC_SHARED")
        .map_or_else(|| repository().join("../shared"), PathBuf::from);
    let Ok(csv) = std::fs::read_to_string(shared.join("data/housing/train.csv")) else {
        return skip(
            "../shared/data/housing/train.csv is not there; housing programs were not run",
        );
    };
    let some: Vec<&str> = csv.lines().take(8_001).collect();
    check_programs(
        &playbook,
        &python,
        &view(&some.join("\n"), "MedHouseVal", 4, 5),
        0.75,
    );
}

#[test]
fn seed_programs_run_and_answer_to_ablate() {
    let numpy = std::env::var_os("VEC_NUMPY_PYTHON").map(PathBuf::from);
    let Some(python) = python() else { return };
    let view = diabetes();
    for (program, ablate, worst) in [
        ("diabetes/train_mean", "none", 1.000_001),
        ("diabetes/ols", "features", 0.85),
        ("housing/train_mean", "none", 1.000_001),
        ("housing/ridge", "features", 0.85),
    ] {
        let python = match (program, &numpy) {
            ("housing/ridge", None) => {
                skip("VEC_NUMPY_PYTHON names no interpreter with numpy; housing/ridge was not run");
                continue;
            }
            ("housing/ridge", Some(numpy)) => numpy,
            _ => &python,
        };
        let folder = repository().join("seeds").join(program);
        let text = std::fs::read_to_string(folder.join("run.py")).expect("run.py");
        let method = std::fs::read_to_string(folder.join("METHOD.md")).expect("METHOD.md");
        assert!(!method.starts_with("[auto:") && !method.trim().is_empty());
        let program = Program::new(python, &view, &text);
        let (bytes, error) = program.predicts("0", None);
        assert!(error < worst, "{error}");
        assert_eq!(program.predicts("7", None).0, bytes);
        let (control, error) = program.predicts("0", Some(ablate));
        assert!(
            (error - 1.0).abs() < 1e-6,
            "the control is the mean: {error}"
        );
        assert_eq!(control == bytes, ablate == "none");
        assert_eq!(program.run("0", Some("nonsense")).status.code(), Some(2));
    }
}

#[test]
fn the_demo_meets_every_card() {
    for name in ["diabetes.yaml", "housing.yaml"] {
        let playbook = shipped(name);
        assert!(playbook.deck.len() <= 16, "16 nodes see the whole deck");
        let mut cards: Vec<OutcomeCard> = (2..18)
            .map(|node| deal(&playbook.deck, 0, NodeId(node), Operator::Improve))
            .collect();
        cards.sort();
        cards.dedup();
        assert!(cards.len() >= 7, "{name}: {cards:?}");
    }
}
