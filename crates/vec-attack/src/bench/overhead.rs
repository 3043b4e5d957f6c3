//! What a program pays for running inside: instructions of one that computes, time of one that does
//! nothing but system calls. Outside and inside take turns, the program is the same file.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use vec_sandbox_lifted::{Limits, RunControl, SandboxPlan};

use super::{Starter, figures, judged};
use crate::inside::say;

/// A program that computes shall need at most so many times its instructions.
const COMPUTING_AIM: f64 = 1.01;
/// A program of system calls shall take at most so many times its time.
const CALLING_AIM: f64 = 1.5;
const PAIRS: usize = 15;
const CALLS: u32 = 200_000;
const STEPS: u64 = 30_000_000;
/// Where the program lies below the solution.
const NAME: &str = "load";

/// What the measured program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Load {
    /// Integer arithmetic, no system call.
    Computing,
    /// `getppid`, and reading one byte of `/dev/zero`.
    Calling,
}

impl Load {
    /// Does it; prints the nanoseconds that it took.
    pub(crate) fn carry(self) -> Result<()> {
        let mut zero = std::fs::File::open("/dev/zero")?;
        let began = Instant::now();
        let mut sum = 1_u64;
        match self {
            Self::Computing => {
                for step in 0..STEPS {
                    sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005) ^ step);
                }
            }
            Self::Calling => {
                let mut byte = [0];
                for _ in 0..CALLS {
                    sum = sum.wrapping_add(nix::unistd::getppid().as_raw().unsigned_abs().into());
                    zero.read_exact(&mut byte)?;
                }
            }
        }
        std::hint::black_box(sum);
        say(&began.elapsed().as_nanos().to_string());
        Ok(())
    }

    fn words(self, program: &str) -> Vec<String> {
        let name = if self == Self::Computing {
            "computing"
        } else {
            "calling"
        };
        [
            program, "--helper", "-", "--lifted", "-", "--out", "-", "--load", name,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

/// The program outside, and the sandbox to run it in.
struct Loads {
    starter: Starter,
    program: String,
}

impl Loads {
    fn outside(&self, before: &[&str], load: Load) -> Result<(String, String)> {
        let mut words: Vec<String> = before.iter().map(|&word| word.to_owned()).collect();
        words.extend(load.words(&self.program));
        let (program, words) = words.split_first().context("no program")?;
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(program)
            .args(words)
            .env_clear()
            .envs(&self.starter.plan.env)
            .stdin(Stdio::null())
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(
            status.success(),
            "{program} ended with {status}: {}",
            text(&stderr)
        );
        Ok((text(&stdout), text(&stderr)))
    }

    fn inside(&self, before: &[&str], load: Load) -> Result<(String, String)> {
        let mut plan: SandboxPlan = self.starter.plan.clone();
        plan.argv = before.iter().map(|&word| word.to_owned()).collect();
        plan.argv.extend(load.words(&format!("/solution/{NAME}")));
        // Enough for an instrumenting tool.
        plan.limits = Limits::of_memory(8 << 30, 16 << 20, 1);
        let run = self.starter.runner.run(&plan, RunControl::new());
        let run = self.starter.runtime.block_on(run)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&run.stderr.bytes);
        ensure!(run.report.succeeded(), "{:?} {stderr}", run.report);
        Ok((text(&run.stdout.bytes), stderr))
    }
}

/// Measures and prints both.
pub(super) fn overhead(starter: Starter, dir: &Path) -> Result<()> {
    let program = dir.join("probes").join(NAME);
    std::fs::copy(std::env::current_exe()?, &program).context("copy the program")?;
    let program = program.to_string_lossy().into_owned();
    let loads = Loads { starter, program };
    instructions(&loads)?;
    let (min, median) = times(&loads, Load::Calling)?;
    let met = judged(min <= CALLING_AIM && median <= CALLING_AIM);
    say(&format!(
        "system calls, time inside / outside       min {min:.2} median {median:.2}  ({PAIRS} pairs of {CALLS} calls each of getppid and read; aim {CALLING_AIM:.2}: {met})"
    ));
    Ok(())
}

/// Ratios of the smallest and of the middle time that the program takes.
fn times(loads: &Loads, load: Load) -> Result<(f64, f64)> {
    let nanoseconds = |(stdout, _): (String, String)| -> Result<std::time::Duration> {
        let number = stdout.trim().parse().with_context(|| stdout.clone())?;
        Ok(std::time::Duration::from_nanos(number))
    };
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if pair % 2 == 0 {
            outside.push(nanoseconds(loads.outside(&[], load)?)?);
        }
        inside.push(nanoseconds(loads.inside(&[], load)?)?);
        if pair % 2 == 1 {
            outside.push(nanoseconds(loads.outside(&[], load)?)?);
        }
    }
    let (inside, outside) = (figures(&mut inside), figures(&mut outside));
    Ok((inside.0 / outside.0, inside.1 / outside.1))
}

/// Instructions as an instrumenting tool counts them, the same inside and outside, where the machine
/// has no counter for them; the time of the same program beside it.
fn instructions(loads: &Loads) -> Result<()> {
    let load = Load::Computing;
    const TOOL: [&str; 3] = [
        "/usr/bin/valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    if Path::new(TOOL[0]).exists() {
        let count = |(_, stderr): (String, String)| -> Result<f64> {
            let line = stderr
                .lines()
                .find_map(|line| line.split_once("Collected :"));
            let Some((_, number)) = line else {
                bail!("callgrind has counted nothing: {stderr}");
            };
            Ok(number.trim().parse()?)
        };
        let outside = count(loads.outside(&TOOL, load)?)?;
        let inside = count(loads.inside(&TOOL, load)?)?;
        let ratio = inside / outside;
        let met = judged(ratio <= COMPUTING_AIM);
        say(&format!(
            "computing, instructions inside / outside  {ratio:.5}  ({inside} / {outside} by callgrind; aim {COMPUTING_AIM:.2}: {met})"
        ));
    } else {
        say("SKIPPED: instructions of a computing program: valgrind is not installed");
    }
    let (min, median) = times(loads, load)?;
    say(&format!(
        "computing, time inside / outside          min {min:.3} median {median:.3}  ({PAIRS} pairs, for comparison only)"
    ));
    Ok(())
}
