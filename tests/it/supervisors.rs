//! Supervisors of a whole run: which one is locked, what it accounts, and what becomes of an
//! execution whose controller is killed while its helper cannot react (EXE-09).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use vec_tests::{Stack, WatchedRun, is_root, skip};

/// Longest wait for a process or a file.
const WAIT: Duration = Duration::from_secs(60);

/// Looks again and again until there is something.
fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + WAIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} within {WAIT:?}");
        // Nothing tells this process about another one's files.
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn field(pid: u64, index: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(index).map(str::to_owned)
}

fn is_alive(pid: u64) -> bool {
    field(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

fn signal(pid: &str, signal: &str) -> bool {
    let mut kill = Command::new("kill");
    let done = kill.args([signal, pid]).status();
    done.is_ok_and(|status| status.success())
}

/// Stops the helper of a group that lives, and gives its init's pid: as long as the helper is
/// stopped, nothing but the supervisor ends the tree.
fn frozen_group(stack: &Stack, run: &WatchedRun<'_>) -> (String, u64) {
    let groups = stack.run_runtime(run.id()).join("groups");
    wait_for("a group with a stopped helper", || {
        let entry = std::fs::read_dir(&groups).ok()?.flatten().next()?;
        let init = json(&entry.path())?["pid"].as_u64()?;
        let helper = field(init, 1)?;
        let stopped = signal(&helper, "-STOP") && is_alive(init);
        if !stopped {
            signal(&helper, "-CONT");
            return None;
        }
        Some((entry.file_name().to_string_lossy().into_owned(), init))
    })
}

fn control_groups(name: &str) -> Vec<PathBuf> {
    fn walk(dir: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(name) {
                found.push(entry.path());
            }
            walk(&entry.path(), name, found);
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), name, &mut found);
    found
}

/// Sources of the accounts of a run's executions.
fn sources(run_dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(&entry.path(), found);
                continue;
            }
            let name = entry.file_name();
            let document = json(&entry.path()).unwrap_or_default();
            if name == "accounting.json" {
                // A session's.
                found.extend(document["source"].as_str().map(str::to_owned));
            } else if name == "report.json" {
                // An execution's, per view; a session's report has none.
                let views = document["views"].as_object().into_iter().flatten();
                let sources = views.filter_map(|(_, view)| view["accounting"]["source"].as_str());
                found.extend(sources.map(str::to_owned));
            }
        }
    }
    let mut found = Vec::new();
    walk(&run_dir.join("nodes"), &mut found);
    found
}

/// A controller is killed while the helper of an execution is stopped; the next one ends the tree
/// by its name. Gives the sources of the accounts.
fn an_orphan_is_reaped(supervisor: &'static str) -> Option<Vec<String>> {
    let stack = Stack::with_diabetes().supervised_by(supervisor);
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=3"]);
    let lock = json(&run.dir().join("config.lock.json")).expect("a lock");
    assert_eq!(lock["supervisor"], supervisor);
    let (group, init) = frozen_group(&stack, &run);
    let has_groups = !control_groups(&group).is_empty();
    assert_eq!(has_groups, supervisor == "cgroup", "{group}");
    stack.kill(Some(run.id()), "controller");
    wait_for("the end of the orphan", || (!is_alive(init)).then_some(()));
    let run = run.closed();
    run.expect_sound();
    assert!(control_groups(&group).is_empty(), "{group} is left");
    Some(sources(&run.dir))
}

#[test]
fn orphans_under_plain() {
    let sources = an_orphan_is_reaped("plain").expect("sources");
    assert!(!sources.is_empty());
    assert!(
        sources.iter().all(|source| source == "sampled"),
        "{sources:?}"
    );
}

#[test]
fn orphans_under_cgroup() {
    if let Err(error) = vec_scope::Cgroups::detect() {
        return skip(&format!("no control groups here: {error}"));
    }
    let sources = an_orphan_is_reaped("cgroup").expect("sources");
    assert!(!sources.is_empty());
    let exact = |source: &String| source.starts_with("cgroup");
    assert!(sources.iter().all(exact), "{sources:?}");
}

#[test]
fn a_run_keeps_the_limits_that_it_was_locked_with() {
    if let Err(error) = vec_scope::Cgroups::detect() {
        return skip(&format!("no control groups here: {error}"));
    }
    let mut stack = Stack::with_diabetes().supervised_by("cgroup");
    let run = stack.launch("diabetes_demo", &["budget.max_nodes=3"]);
    let id = run.id().to_owned();
    run.wait_for("plan_start");
    stack.say(["stop", &id]).expect_ok();
    drop(run.closed());
    stack.kill(None, "launcher");
    stack.set_supervisor("plain");
    let said = stack.say(["resume", &id]);
    said.expect_refused(&["cgroup", "plain", "keeps its limits"]);
    stack.kill(None, "launcher");
    stack.set_supervisor("cgroup");
    stack.say(["resume", &id]).expect_ok();
    WatchedRun::watch(&stack, id).closed().expect_sound();
}

#[test]
fn a_supervisor_that_cannot_be_had_is_refused_with_what_is_missing() {
    if !is_root() {
        return skip("becoming another user needs root");
    }
    let home = tempfile::Builder::new()
        .prefix("vecs")
        .tempdir_in("/tmp")
        .expect("a directory");
    let own = Command::new("chown").arg("65533").arg(home.path()).status();
    assert!(own.is_ok_and(|status| status.success()));
    let copy = home.path().join("vec-launcher");
    std::fs::copy(vec_tests::prefix().join("bin/vec-launcher"), &copy).expect("a copy");
    let launcher = |supervisor: &str| {
        let mut command = Command::new("setpriv");
        command
            .args([
                "--reuid",
                "65533",
                "--regid",
                "65533",
                "--clear-groups",
                "--",
            ])
            .arg(&copy)
            .args(["--supervisor", supervisor, "--prefix", "/nonexistent"])
            .arg("--runtime-dir")
            .arg(home.path().join("r"))
            .arg("--data-root")
            .arg(home.path().join("d"))
            .env("HOME", home.path());
        let output = command.output().expect("setpriv");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = launcher("cgroup");
    assert!(text.contains("delegated to this user"), "{text}");
    assert!(text.contains("`auto` does without"), "{text}");
    let text = launcher("systemd");
    assert!(
        text.contains("possible values: auto, plain, cgroup"),
        "{text}"
    );
}
