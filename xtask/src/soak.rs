//! `cargo xtask soak`: many sandboxes in a row, then a run of many executions. Afterwards nothing may be
//! left of any of them, neither in the process that ran them nor on the machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::attack;
use crate::demo::Vecctl;
use crate::dist::dist;
use crate::shell::{headline, output, root, run, say, target_dir};

/// Arguments of the endurance run.
#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    /// Sandbox runs in a row; 0 leaves them out.
    #[arg(long, default_value_t = 5_000)]
    runs: u32,
    /// Executions through one controller, at least; 0 leaves them out.
    #[arg(long, default_value_t = 300)]
    executions: u32,
}

/// A node of the small board has about five: seed, view check, control run, two more seeds.
const EXECUTIONS_PER_NODE: u32 = 4;
/// Time between two looks at the controller.
const LOOK: Duration = Duration::from_millis(50);
/// Longest run.
const RUN_MAX: Duration = Duration::from_secs(1_800);
/// Growth of resident memory between the second and the last quarter that is not called flat.
const GROWTH_PERCENT_MAX: u64 = 25;

/// Both parts.
pub(crate) fn soak(arguments: &SoakArguments) -> Result<()> {
    if arguments.runs > 0 {
        attack::soak(arguments.runs)?;
    }
    if arguments.executions > 0 {
        one_run(arguments.executions)?;
    }
    Ok(())
}

/// What the controller held at one moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    descriptors: usize,
    zombies: usize,
    mounts: usize,
    resident_kib: u64,
}

fn one_run(executions: u32) -> Result<()> {
    headline(&format!("{executions} executions through one controller"));
    let prefix = dist(None, false)?;
    let share = prefix.join("share");
    let out = target_dir().join("soak");
    let vecctl = Vecctl::new(prefix, &out)?;
    let board = share.join("configs/boards/diabetes.yaml");
    run(vecctl
        .command(&["board", "build"])
        .arg(board)
        .arg("--data")
        .arg(root().join("tests/data/diabetes")))?;
    let nodes = executions.div_ceil(EXECUTIONS_PER_NODE) + 10;
    let mut launch = vecctl.command(&["launch", "--watch"]);
    launch
        .arg(share.join("configs/runs/diabetes_demo.yaml"))
        .args(["--set", &format!("budget.max_nodes={nodes}")])
        .args(["--set", "ablation.enabled=true"])
        .args(["--set", "viewcheck.sample=1"])
        .stdout(std::process::Stdio::null());
    let runs_before = runs(&vecctl.root);
    let mut watch = launch.spawn().context("launch")?;
    let (run8, looks) = look_on(&vecctl, &mut watch)?;
    let new: Vec<PathBuf> = runs(&vecctl.root)
        .difference(&runs_before)
        .cloned()
        .collect();
    let [run_dir] = new.as_slice() else {
        bail!("not one new run but {new:?}");
    };
    let done = reports(&run_dir.join("nodes"));
    say(&format!("{done} executions, {} looks", looks.len()));
    ensure!(
        done >= usize::try_from(executions)?,
        "only {done} executions; more nodes are needed"
    );
    flat(&looks)?;
    let left = Left::of(&vecctl, run_dir, &run8);
    say(&format!("left: {left:?}"));
    ensure!(left == Left::default(), "something was left");
    Ok(())
}

/// Looks at the controller until the run has ended; the run's name in groups, and what was seen.
fn look_on(vecctl: &Vecctl, watch: &mut Child) -> Result<(String, Vec<Look>)> {
    let began = Instant::now();
    let (mut run8, mut looks) = (String::new(), Vec::new());
    loop {
        if let Some(status) = watch.try_wait()? {
            ensure!(status.success(), "the run ended with {status}");
            return Ok((run8, looks));
        }
        ensure!(began.elapsed() < RUN_MAX, "not over within {RUN_MAX:?}");
        if let Some((name, pid)) = controller(&vecctl.runtime) {
            run8 = name;
            looks.extend(look(pid));
        }
        // Nothing tells about another process's descriptors.
        std::thread::park_timeout(LOOK);
    }
}

fn controller(runtime: &Path) -> Option<(String, u32)> {
    let run = std::fs::read_dir(runtime.join("r"))
        .ok()?
        .flatten()
        .next()?;
    let name = run.file_name().into_string().ok()?;
    let text = std::fs::read_to_string(run.path().join("controller/pid")).ok()?;
    let record: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some((name, u32::try_from(record["pid"].as_u64()?).ok()?))
}

fn look(pid: u32) -> Option<Look> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let status = std::fs::read_to_string(proc.join("status")).ok()?;
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let mounts = std::fs::read_to_string(proc.join("mountinfo")).ok()?;
    let tasks = std::fs::read_dir(proc.join("task")).ok()?;
    let children = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        Some(
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    });
    let is_zombie = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    };
    Some(Look {
        descriptors: std::fs::read_dir(proc.join("fd")).ok()?.count(),
        zombies: children.flatten().filter(is_zombie).count(),
        mounts: mounts.lines().count(),
        resident_kib: resident.split_whitespace().next()?.parse().ok()?,
    })
}

/// Work in flight holds descriptors, so quarters of the run are compared by their lowest look.
fn flat(looks: &[Look]) -> Result<()> {
    let quarter = looks.len() / 4;
    ensure!(quarter > 0, "too few looks: {}", looks.len());
    let (early, late) = (&looks[quarter..quarter * 2], &looks[quarter * 3..]);
    let lowest = |part: &[Look], of: fn(&Look) -> usize| part.iter().map(of).min().unwrap_or(0);
    let median = |part: &[Look]| {
        let mut values: Vec<u64> = part.iter().map(|look| look.resident_kib).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    for (what, of) in [
        ("descriptors", (|l| l.descriptors) as fn(&Look) -> usize),
        ("zombies", |l| l.zombies),
        ("mounts", |l| l.mounts),
    ] {
        let (then, now) = (lowest(early, of), lowest(late, of));
        say(&format!(
            "{what:<12} lowest in the second quarter {then}, in the last {now}"
        ));
        ensure!(now <= then, "{what} grow");
    }
    let (then, now) = (median(early), median(late));
    say(&format!("resident     median {then} KiB, {now} KiB"));
    ensure!(
        now <= then + then * GROWTH_PERCENT_MAX / 100,
        "resident memory grows by more than {GROWTH_PERCENT_MAX} %"
    );
    Ok(())
}

/// What the run's executions left on the machine.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    control_groups: usize,
    /// Files of executions that are neither evidence nor gone.
    scratch: usize,
    /// Directories of runs below the runtime directory.
    runtime: usize,
    /// Mounts whose path has the run's or the runtime directory's name.
    mounts: usize,
}

impl Left {
    fn of(vecctl: &Vecctl, run_dir: &Path, run8: &str) -> Self {
        let count = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let ours = [run_dir, &vecctl.runtime].map(|path| path.to_string_lossy().into_owned());
        let is_ours = |line: &&str| ours.iter().any(|path| line.contains(path));
        let spool = vecctl.root.join(".spool");
        let spool = spool.join(run_dir.file_name().unwrap_or_default());
        Self {
            control_groups: control_groups(Path::new("/sys/fs/cgroup"), run8),
            // The writer's lock stays.
            scratch: count(&spool).saturating_sub(1),
            runtime: count(&vecctl.runtime.join("r")),
            mounts: mounts.lines().filter(is_ours).count(),
        }
    }
}

/// Groups of the run's executions and sessions, wherever they are.
fn control_groups(directory: &Path, run8: &str) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let counts = directories.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.starts_with("vec-") && name.contains(run8);
        usize::from(is_ours) + control_groups(&entry.path(), run8)
    });
    counts.sum()
}

fn runs(root: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("config.lock.json").exists())
        .collect()
}

/// Finished executions and sessions below `nodes`.
fn reports(nodes: &Path) -> usize {
    let found = output(std::process::Command::new("find").arg(nodes).args([
        "-path",
        "*/*/report.json",
        "-not",
        "-path",
        "*/trajectory/*",
    ]));
    found.map_or(0, |text| text.lines().count())
}
