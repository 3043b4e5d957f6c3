//! Start-up times beside `bwrap`, and many runs in a row. Nothing here passes or fails by speed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use vec_sandbox_lifted::{RunControl, Runner, SandboxPlan};

use crate::inside::say;
use crate::place::{self, Place};
use crate::verdict::Profile;

/// Runs after which memory no longer grows by what is set up once.
const WARM_UP: u32 = 100;

/// Everything that a run of `/bin/true` needs.
struct Starter {
    _place: Place,
    plan: SandboxPlan,
    runner: Runner,
    runtime: tokio::runtime::Runtime,
}

impl Starter {
    fn new(dir: &Path, helper: &Path) -> Result<Self> {
        place::prepare(dir)?;
        let place = Place::open(dir, helper, helper)?;
        let mut plan = place.plan(Profile::Exec, "exit_with", &["0"])?;
        plan.argv = vec!["/bin/true".to_owned()];
        Ok(Self {
            plan,
            _place: place,
            runner: Runner::new(helper),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
        })
    }
}

/// One run of `/bin/true` under bubblewrap with comparable mounts.
fn bwrap() -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new("bwrap")
        .args([
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
        ])
        .args(["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"])
        .args([
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
        ])
        .args(["--ro-bind", "/etc/alternatives", "/etc/alternatives"])
        .args([
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/out",
        ])
        .args(["--", "/bin/true"])
        .stdin(Stdio::null())
        .status()
        .context("start bwrap")?;
    ensure!(status.success(), "bwrap ended with {status}");
    Ok(began.elapsed())
}

/// Pairs of runs, one after the other, so that both see the same machine.
pub(crate) fn compare(dir: &Path, helper: &Path, pairs: u32) -> Result<()> {
    let Starter {
        _place,
        plan,
        runner,
        runtime,
    } = Starter::new(dir, helper)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let began = Instant::now();
        let run = runtime.block_on(runner.run(&plan, RunControl::new()))?;
        ours.push(began.elapsed());
        ensure!(run.report.succeeded(), "{:?}", run.report);
        theirs.push(bwrap()?);
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let figures = |times: &mut Vec<Duration>| {
        times.sort();
        (ms(times[0]), ms(times[times.len() / 2]))
    };
    let (own, other) = (figures(&mut ours), figures(&mut theirs));
    say(&format!(
        "vec-sandbox  min {:.2} ms  median {:.2} ms",
        own.0, own.1
    ));
    say(&format!(
        "bwrap        min {:.2} ms  median {:.2} ms",
        other.0, other.1
    ));
    say(&format!(
        "ratio        min {:.2}     median {:.2}  ({pairs} pairs, aim 1.20)",
        own.0 / other.0,
        own.1 / other.1
    ));
    Ok(())
}

/// What one process holds.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    children: usize,
    mounts: usize,
    scratch: usize,
}

fn held() -> Result<Held> {
    let count = |path: &str| -> Result<usize> { Ok(std::fs::read_dir(path)?.count()) };
    let tasks = std::fs::read_dir("/proc/self/task")?;
    let children = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        Some(text.split_whitespace().count())
    });
    Ok(Held {
        descriptors: count("/proc/self/fd")?,
        children: children.sum(),
        mounts: std::fs::read_to_string("/proc/self/mountinfo")?
            .lines()
            .count(),
        scratch: count("/tmp")?,
    })
}

fn resident_kib() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.context("no VmRSS")?.parse().context("VmRSS")
}

/// Many runs in one process: nothing may be left, memory stays flat.
pub(crate) fn soak(dir: &Path, helper: &Path, runs: u32) -> Result<()> {
    let Starter {
        _place,
        plan,
        runner,
        runtime,
    } = Starter::new(dir, helper)?;
    let mut before = None;
    let began = Instant::now();
    for number in 0..runs {
        let run = runtime.block_on(runner.run(&plan, RunControl::new()))?;
        ensure!(run.report.succeeded(), "run {number}: {:?}", run.report);
        drop(run);
        if number + 1 == WARM_UP.min(runs) {
            before = Some((held()?, resident_kib()?));
        }
    }
    let (now, resident) = (held()?, resident_kib()?);
    let Some((first, resident_before)) = before else {
        bail!("no runs");
    };
    say(&format!(
        "{runs} runs in {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    say(&format!(
        "held after {WARM_UP}: {first:?}, {resident_before} KiB"
    ));
    say(&format!("held at the end: {now:?}, {resident} KiB"));
    ensure!(now == first, "something was left");
    Ok(())
}
