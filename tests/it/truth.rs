//! Truth stays where it is: nobody but the scorer opens it, and none of it is in a run directory,
//! a package, a log or an error.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use vec_tests::{Stack, repository, skip};
use walkdir::WalkDir;

/// Marks every hidden target with digits that occur nowhere else, and returns the marks.
fn plant_canaries(stack: &Stack) -> Vec<String> {
    let source = repository().join("tests/data/diabetes/diabetes.csv");
    let text = std::fs::read_to_string(source).expect("the board's data");
    let truth = stack.data_root().join("truth/diabetes");
    let hidden: BTreeSet<usize> = ["A", "B"]
        .iter()
        .flat_map(|half| {
            let path = truth.join(half).join("truth.csv");
            let text = std::fs::read_to_string(path).expect("built truth");
            let id = |line: &str| line.split(',').next()?.parse::<usize>().ok();
            text.lines().skip(1).filter_map(id).collect::<Vec<usize>>()
        })
        .collect();
    assert!(hidden.len() > 100, "{}", hidden.len());
    let mut canaries = Vec::new();
    let mut lines = text.lines();
    let mut marked = vec![lines.next().expect("a header").to_owned()];
    for (id, line) in lines.enumerate() {
        let (features, target) = line.rsplit_once(',').expect("columns");
        if hidden.contains(&id) {
            let mark = format!(
                "{}.73{id:04}91",
                target.split('.').next().unwrap_or_default()
            );
            marked.push(format!("{features},{mark}"));
            canaries.push(mark);
        } else {
            marked.push(line.to_owned());
        }
    }
    let data = stack.home().join("marked");
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(data.join("diabetes.csv"), marked.join("\n") + "\n").expect("writable");
    stack.build_diabetes(&data, &["--replace"]).expect_ok();
    canaries
}

fn search(bytes: &[u8], canaries: &[String], place: &str) {
    let text = String::from_utf8_lossy(bytes);
    for canary in canaries {
        assert!(
            !text.contains(canary.as_str()),
            "{canary} stands in {place}"
        );
    }
}

fn search_tree(root: &Path, canaries: &[String]) -> usize {
    let mut files = 0;
    for entry in WalkDir::new(root) {
        let entry = entry.expect("readable");
        if !entry.file_type().is_file() {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(entry.path()).expect("readable");
        let place = entry.path().display().to_string();
        search(&bytes, canaries, &place);
        if place.ends_with(".zip") {
            let mut archive = unzip(entry.path());
            search(&archive, canaries, &place);
            archive.clear();
        }
    }
    files
}

// Everything in the archive, unpacked, one after the other.
fn unzip(path: &Path) -> Vec<u8> {
    let script = "import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\n\
        [sys.stdout.buffer.write(z.read(n)) for n in z.namelist()]";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut bytes = Vec::new();
    python
        .stdout
        .take()
        .expect("piped")
        .read_to_end(&mut bytes)
        .expect("readable");
    assert!(python.wait().expect("ended").success());
    bytes
}

#[test]
fn canaries_of_hidden_rows_appear_nowhere() {
    let stack = Stack::with_diabetes();
    let canaries = plant_canaries(&stack);
    let truth = std::fs::read_to_string(stack.data_root().join("truth/diabetes/B/truth.csv"));
    let truth = truth.expect("built truth");
    assert!(
        canaries.iter().any(|canary| truth.contains(canary)),
        "the positive control"
    );
    let run = stack
        .launch("diabetes_demo", &["budget.max_nodes=6"])
        .closed();
    run.expect_verified();
    stack.say(["package", &run.id]).expect_ok();
    let files = search_tree(&stack.root(), &canaries);
    assert!(files > 100, "{files} files searched");
    search_tree(stack.runtime(), &canaries);
    let shown = stack.say(["show", &run.id]).expect_ok();
    search(shown.stdout.as_bytes(), &canaries, "vecctl show");
}

/// strace sees every file that the launcher's whole tree opens. Only the scorer may name truth.
#[test]
fn only_the_scorer_opens_truth() {
    let stack = Stack::with_diabetes();
    let traces = stack.home().join("traces");
    std::fs::create_dir(&traces).expect("a directory");
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("strace is not installed; file opens were not traced");
    }
    // vecctl starts the launcher, the launcher everything else.
    let mut vecctl = stack.vecctl(["preflight", "--json"]);
    vecctl.arg(stack.config("runs/diabetes_demo.yaml"));
    let mut strace = Command::new("strace")
        .args(["-ff", "-qq", "-s", "256", "-o"])
        .arg(traces.join("t"))
        .args([
            "-e",
            "trace=openat,openat2,open,chdir,execve,name_to_handle_at",
        ])
        .arg(vecctl.get_program())
        .args(vecctl.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("strace");
    // Its first byte: the launcher answered. strace itself stays with the launcher.
    let mut first = [0];
    let mut stdout = strace.stdout.take().expect("piped");
    stdout.read_exact(&mut first).expect("an answer");
    let run = stack
        .launch("diabetes_demo", &["budget.max_nodes=2"])
        .closed();
    run.expect_verified();
    strace.kill().expect("strace runs");
    strace.wait().expect("ended");
    let (mut scorer_opens, mut traced) = (0, 0);
    for entry in std::fs::read_dir(&traces).expect("traces") {
        let text = String::from_utf8_lossy(
            &std::fs::read(entry.expect("an entry").path()).expect("readable"),
        )
        .into_owned();
        traced += 1;
        // The launcher opens the directory for the scorer and never a file below it.
        let is_scorer = text.contains("vec-scorer");
        let opens = text
            .lines()
            .filter(|line| line.contains("truth.csv") && !line.contains("ENOENT"))
            .count();
        if is_scorer {
            scorer_opens += opens;
        } else {
            assert_eq!(opens, 0, "opened by another process:\n{text}");
        }
    }
    assert!(traced > 10, "{traced} processes traced");
    assert!(
        scorer_opens > 0,
        "the positive control: the scorer opens truth"
    );
}
