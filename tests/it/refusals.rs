//! Bad input: one clear error each, nothing half-made.

use std::path::{Path, PathBuf};
use std::process::Command;

use vec_tests::{Said, Stack, is_root, repository, skip};

/// Writes a run configuration beside copies of the shipped ones.
fn config(stack: &Stack, edit: impl FnOnce(String) -> String) -> PathBuf {
    let copy = stack.home().join("configs");
    if !copy.exists() {
        let prompts = stack.prefix().join("share/prompts");
        for from in [stack.config(""), prompts] {
            let mut command = Command::new("cp");
            command.arg("-r").arg(from).arg(stack.home());
            let status = command.status();
            assert!(status.is_ok_and(|status| status.success()));
        }
        // Seed programs are found from the board's place.
        let seeds = stack.prefix().join("share/seeds");
        std::os::unix::fs::symlink(seeds, stack.home().join("seeds")).expect("linked");
    }
    let path = copy.join("runs/edited.yaml");
    let text = std::fs::read_to_string(copy.join("runs/diabetes_demo.yaml")).expect("shipped");
    std::fs::write(&path, edit(text)).expect("writable");
    path
}

fn launch(stack: &Stack, config: &Path, sets: &[&str]) -> Said {
    let mut arguments = vec!["launch".to_owned(), config.display().to_string()];
    for set in sets {
        arguments.extend(["--set".to_owned(), (*set).to_owned()]);
    }
    stack.say(arguments)
}

fn expect_no_run(stack: &Stack) {
    let made: Vec<String> = std::fs::read_dir(stack.root())
        .expect("the root")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert!(made.is_empty(), "half-made: {made:?}");
}

#[test]
fn configurations_are_refused_by_file_and_key() {
    let stack = Stack::with_diabetes();
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "",
            "\nbudgett: {max_nodes: 3}\n",
            &["edited.yaml", "budgett", "budget"],
        ),
        ("", "\nsearch:\n  p: 1\n", &["edited.yaml", "search"]),
        (
            "search_seed: 0",
            "search_seed: many",
            &["edited.yaml", "search_seed"],
        ),
        (
            "max_nodes: 16",
            "max_nodes: -4",
            &["edited.yaml", "budget.max_nodes"],
        ),
        (
            "board: ../boards/diabetes.yaml",
            "board: ../boards/none.yaml",
            &["none.yaml"],
        ),
        ("wall_hours: 0.2", "wall_hours: 0.01", &["budget"]),
    ];
    for (from, to, words) in cases {
        let path = config(&stack, |text| {
            if from.is_empty() {
                text + to
            } else {
                text.replace(from, to)
            }
        });
        launch(&stack, &path, &[]).expect_refused(words);
    }
    let path = config(&stack, |text| text);
    launch(&stack, &path, &["nodes=3"]).expect_refused(&["--set", "nodes"]);
    launch(&stack, &path, &["draft.p=0.9", "debug.p=0.9"]).expect_refused(&["draft.p"]);
    expect_no_run(&stack);
}

#[test]
fn boards_are_refused_by_file_and_key() {
    let stack = Stack::empty();
    let run = config(&stack, |text| text);
    launch(&stack, &run, &[]).expect_refused(&["diabetes", "board build"]);
    let board = stack.home().join("configs/boards/diabetes.yaml");
    let text = std::fs::read_to_string(&board).expect("shipped");
    std::fs::write(&board, text.replace("weight: 1.0", "weight: 0.0")).expect("writable");
    let data = repository().join("tests/data/diabetes");
    let build = |data: &Path| {
        let (board, data) = (board.display().to_string(), data.display().to_string());
        stack.say(["board", "build", board.as_str(), "--data", data.as_str()])
    };
    build(&data).expect_refused(&["diabetes.yaml", "weight"]);
    std::fs::write(&board, text).expect("writable");
    build(&stack.home().join("nowhere")).expect_refused(&["nowhere"]);
    let csv = std::fs::read_to_string(data.join("diabetes.csv")).expect("data");
    let bad = stack.home().join("bad");
    std::fs::create_dir(&bad).expect("a directory");
    std::fs::write(bad.join("diabetes.csv"), csv.replacen("bmi", "bim", 1)).expect("writable");
    build(&bad).expect_refused(&["diabetes.csv", "bmi"]);
    let broken = csv.lines().map(str::to_owned).enumerate().map(|(i, line)| {
        if i == 7 {
            line.replacen(',', ",x", 1)
        } else {
            line
        }
    });
    let broken: Vec<String> = broken.collect();
    std::fs::write(bad.join("diabetes.csv"), broken.join("\n")).expect("writable");
    build(&bad).expect_refused(&["diabetes.csv", "8"]);
    assert!(
        !stack.data_root().join("boards/diabetes").exists(),
        "half-made"
    );
    expect_no_run(&stack);
}

#[test]
fn idea_libraries_are_refused_by_file_and_line() {
    let stack = Stack::with_diabetes();
    let run = config(&stack, |text| text);
    let library = stack.home().join("prompts/ideas_diabetes.md");
    let text = std::fs::read_to_string(&library).expect("shipped");
    let (_, families) = text.split_once("families:").expect("front matter");
    let plain = families
        .replace("category: linear_structure, ", "")
        .replace("category: local_structure, ", "");
    let plain = format!("---\nboard: diabetes\nfamilies:{plain}");
    let cases: [(String, &[&str]); 3] = [
        (
            text.replace("## boosting", "## bosting"),
            &[
                "ideas_diabetes.md",
                "line ",
                "`bosting`",
                "nearest: boosting",
            ],
        ),
        (
            text.replace("board: diabetes", "bord: diabetes"),
            &["ideas_diabetes.md", "bord", "board"],
        ),
        (
            plain,
            &[
                "edited.yaml",
                "draft.policy",
                "ideas_diabetes.md",
                "categories",
            ],
        ),
    ];
    for (text, words) in cases {
        std::fs::write(&library, text).expect("writable");
        launch(&stack, &run, &[]).expect_refused(words);
    }
    std::fs::remove_file(&library).expect("removable");
    launch(&stack, &run, &[]).expect_refused(&["idea_library", "ideas_diabetes.md"]);
    expect_no_run(&stack);
}

#[test]
fn a_socket_path_that_is_too_long_is_named() {
    let stack = Stack::with_diabetes();
    let long = stack.home().join("x".repeat(100));
    std::fs::create_dir(&long).expect("a directory");
    let mut command = Command::new(stack.prefix().join("bin/vecctl"));
    let output = command
        .arg("--runtime-dir")
        .arg(&long)
        .arg("--data-root")
        .arg(stack.data_root())
        .arg("--root")
        .arg(stack.root())
        .arg("launch")
        .arg(stack.config("runs/diabetes_demo.yaml"))
        .output()
        .expect("vecctl");
    Said::from(output).expect_refused(&["107"]);
    expect_no_run(&stack);
}

/// A small file system of its own for runs; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(path)
            .status();
        status
            .is_ok_and(|status| status.success())
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_launch_without_room_is_refused() {
    if !is_root() {
        return skip("mounting a small tmpfs needs root");
    }
    let stack = Stack::with_diabetes();
    let Some(disk) = SmallDisk::mount(&stack.root(), "60m") else {
        return skip("this machine does not let root mount a tmpfs");
    };
    let path = stack.config("runs/diabetes_demo.yaml");
    let said = launch(&stack, &path, &[]);
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!said.ok && text.to_lowercase().contains("disk"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    expect_no_run(&stack);
    drop(disk);
}

/// The disk fills up in mid-run: the run stops with `infra`, closed, and everything verifies; it
/// is never decided by what failed for want of room.
#[test]
fn a_disk_that_fills_up_stops_the_run_and_decides_nothing() {
    if !is_root() {
        return skip("mounting a small tmpfs needs root");
    }
    let stack = Stack::with_diabetes();
    let Some(disk) = SmallDisk::mount(&stack.root(), "600m") else {
        return skip("this machine does not let root mount a tmpfs");
    };
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=8"]);
    run.wait_for("engineer_start");
    let filler = stack.root().join("filler");
    let filled = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k"])
        .arg(format!("of={}", filler.display()))
        .stderr(std::process::Stdio::null())
        .status();
    assert!(
        filled.is_ok_and(|status| !status.success()),
        "the disk should fill up"
    );
    let id = run.id().to_owned();
    let closed = run.closed();
    let manifest = closed.json("stop_manifest.json");
    assert_eq!(manifest["stop_reason"], "infra", "{manifest}");
    assert!(manifest["winner"].is_null(), "{manifest}");
    std::fs::remove_file(&filler).expect("removable");
    closed.expect_verified();
    stack.say(["resume", &id]).expect_ok();
    let resumed = vec_tests::WatchedRun::watch(&stack, id).closed();
    resumed.expect_verified();
    assert_eq!(resumed.json("stop_manifest.json")["stop_reason"], "budget");
    drop(disk);
}

#[test]
fn without_user_namespaces_preflight_says_why() {
    if !is_root() {
        return skip("switching user namespaces off for a subtree needs root");
    }
    let stack = Stack::with_diabetes();
    // Inside a fresh user namespace the ceiling can be lowered for this subtree alone.
    let script = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$@""#;
    let config = stack.config("runs/diabetes_demo.yaml");
    let vecctl = stack.vecctl(["preflight"]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--", "sh", "-c", script, "sh"]);
    command
        .arg(vecctl.get_program())
        .args(vecctl.get_args())
        .arg(&config);
    let output = command.output().expect("unshare");
    let said = Said::from(output);
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!said.ok, "{text}");
    assert!(
        text.contains("user namespace") || text.contains("max_user_namespaces"),
        "{text}"
    );
}

#[test]
fn unknown_runs_and_closed_doors() {
    let stack = Stack::with_diabetes();
    stack
        .say(["status", "20260101-000000-diabetes-aaaa"])
        .expect_refused(&["20260101-000000-diabetes-aaaa"]);
    stack
        .say(["verify", "/nonexistent"])
        .expect_refused(&["/nonexistent"]);
    let usage = stack.say(["launch"]);
    assert_eq!(usage.code, Some(64), "{usage:?}");
}
