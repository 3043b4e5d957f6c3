//! Other users: an ordinary one can run everything; a stranger is refused on every socket.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use vec_tests::{Said, Stack, is_root, repository, skip};

/// A uid that owns nothing.
const STRANGER: &str = "65533";

fn as_stranger(command: &Command) -> Command {
    let mut other = Command::new("setpriv");
    other
        .args([
            "--reuid",
            STRANGER,
            "--regid",
            STRANGER,
            "--clear-groups",
            "--",
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .env("HOME", "/tmp");
    other
}

#[test]
fn a_stranger_is_refused() {
    if !is_root() {
        return skip("becoming another user needs root");
    }
    let stack = Stack::with_diabetes();
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=2"]);
    run.wait_for("execute_start");
    // Even where the directories' modes would let a stranger in, the peer check does not.
    for path in [
        stack.runtime().to_owned(),
        stack.runtime().join("launcher"),
        stack.runtime().join("launcher/s"),
    ] {
        let mode = if path.ends_with("s") { 0o666 } else { 0o755 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("settable");
    }
    let output = as_stranger(&stack.vecctl(["status", run.id()]))
        .output()
        .expect("setpriv");
    let said = Said::from(output);
    assert!(!said.ok, "a stranger got: {}", said.stdout);
    stack.say(["status", run.id()]).expect_ok();
    run.closed().expect_verified();
}

#[test]
fn an_ordinary_user_runs_the_whole_job() {
    if !is_root() {
        return skip("this test run is an ordinary user's already");
    }
    let prefix = vec_tests::prefix();
    let home = tempfile::Builder::new()
        .prefix("vecu")
        .tempdir_in("/tmp")
        .expect("a directory");
    let own = Command::new("chown")
        .arg("-R")
        .arg(format!("{STRANGER}:{STRANGER}"))
        .arg(home.path())
        .status();
    assert!(own.is_ok_and(|status| status.success()));
    // The prefix may lie below a private home; a copy does not.
    let copy = home.path().join("prefix");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(&prefix)
        .arg(&copy)
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    let vecctl = |arguments: &[&str]| {
        let mut command = Command::new(copy.join("bin/vecctl"));
        command
            .args(["--runtime-dir"])
            .arg(home.path().join("r"))
            .arg("--data-root")
            .arg(home.path().join("d"))
            .arg("--root")
            .arg(home.path().join("runs"))
            .args(arguments);
        Said::from(as_stranger(&command).output().expect("setpriv"))
    };
    let data = home.path().join("data");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(repository().join("tests/data/diabetes"))
        .arg(&data)
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    let share = copy.join("share/configs");
    let board = share.join("boards/diabetes.yaml").display().to_string();
    let config = share.join("runs/diabetes_demo.yaml").display().to_string();
    let data = data.display().to_string();
    vecctl(&["board", "build", &board, "--data", &data]).expect_ok();
    let launched =
        vecctl(&["launch", "--watch", &config, "--set", "budget.max_nodes=3"]).expect_ok();
    let run = launched
        .stdout
        .split_whitespace()
        .find(|word| word.parse::<vec_types::RunId>().is_ok())
        .expect("a run id")
        .to_owned();
    vecctl(&["verify", "--replay", &run]).expect_ok();
    let pid = std::fs::read_to_string(home.path().join("r/launcher/pid")).unwrap_or_default();
    let digits: String = pid.chars().filter(char::is_ascii_digit).take(7).collect();
    drop(Command::new("kill").arg(digits).status());
}
