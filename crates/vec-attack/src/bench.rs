//! Start-up times beside `bwrap`, what being inside costs, and many runs in a row. Nothing here
//! passes or fails by speed.

mod overhead;
mod rival;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use vec_sandbox_lifted::{RunControl, Runner, SandboxPlan};

use crate::inside::say;
use crate::place::{self, Place};
use crate::verdict::Profile;
pub(crate) use overhead::Load;
use rival::Rival;

/// A start shall take at most so many times as long as bubblewrap with the same work.
const START_AIM: f64 = 1.2;

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
        let mut place = Place::open(dir, helper, helper)?;
        // Whatever else is a child here would be taken for a rival's left-over.
        place.without_bait();
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

/// Start-up times, then what being inside costs.
pub(crate) fn measure(dir: &Path, helper: &Path, pairs: u32) -> Result<()> {
    let starter = Starter::new(dir, helper)?;
    compare(&starter, pairs)?;
    overhead::overhead(starter, dir)
}

/// Runs of each kind, one after the other, so that all see the same machine.
fn compare(starter: &Starter, pairs: u32) -> Result<()> {
    let Starter {
        plan,
        runner,
        runtime,
        ..
    } = starter;
    let (same, plain) = (Rival::same_work(plan)?, Rival::plain()?);
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..pairs {
        // Whoever comes second may profit or suffer from the first: they take turns.
        for turn in 0..3 {
            let who = (number as usize + turn) % 3;
            let time = match who {
                0 => {
                    let began = Instant::now();
                    let run = runtime.block_on(runner.run(plan, RunControl::new()))?;
                    ensure!(run.report.succeeded(), "{:?}", run.report);
                    began.elapsed()
                }
                1 => same.run()?,
                _ => plain.run()?,
            };
            times[who].push(time);
        }
    }
    let [own, same, plain] = times.each_mut().map(|times| figures(times));
    let line = |name: &str, (min, median): (f64, f64)| {
        say(&format!(
            "{name:24} min {min:6.2} ms  median {median:6.2} ms"
        ));
    };
    line("vec-sandbox", own);
    line("bwrap, same work", same);
    line("bwrap, plain", plain);
    let ratio = |of: (f64, f64)| (own.0 / of.0, own.1 / of.1);
    let (min, median) = ratio(same);
    let met = judged(min <= START_AIM && median <= START_AIM);
    say(&format!(
        "ratio to the same work   min {min:6.2}     median {median:6.2}  ({pairs} runs each; aim {START_AIM:.2}: {met})"
    ));
    let (min, median) = ratio(plain);
    say(&format!(
        "ratio to the plain one   min {min:6.2}     median {median:6.2}  (for comparison only)"
    ));
    rival::DIFFERENCES.iter().for_each(|line| say(line));
    Ok(())
}

/// Smallest and middle time in milliseconds.
fn figures(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let ms = |at: usize| {
        times
            .get(at)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    (ms(0), ms(times.len() / 2))
}

fn judged(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
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
