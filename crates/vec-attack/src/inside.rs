//! From the command line to the report: into a disposable namespace, there into both start modes.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};
use nix::unistd::geteuid;
use vec_sandbox_lifted::{RunControl, Runner, SandboxPlan};

use crate::Arguments;
use crate::place::{self, MARKER, Place, SECRET, processes_with};
use crate::table::{Control, ROWS, Row};
use crate::verdict::{NO_CONTROL, Outcome, Profile, Report, StartMode, Verdict};
use crate::{bench, numbers};
use crate::{groups, special};

/// Bounds of everything that an attack could write on the host's side.
const PLACE_OPTIONS: &str = "size=1g,nr_inodes=200k,mode=755";
/// Processes that the disposable namespace can hold, where the kernel bounds one namespace.
const PROCESSES_MAX: &str = "8192";
/// An id that owns nothing.
const USER: u32 = 65_533;

/// Prints a line for people.
pub(crate) fn say(line: &str) {
    // Nobody to tell when stdout is closed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The whole program; true when nothing failed.
pub(crate) fn enter(arguments: &Arguments) -> Result<bool> {
    if let Some(plan) = &arguments.supervise {
        return supervise(&arguments.helper, plan);
    }
    if let Some(load) = arguments.load {
        load.carry()?;
        return Ok(true);
    }
    if arguments.bench.is_some() || arguments.soak.is_some() {
        let dir = tempfile::tempdir()?;
        if let Some(pairs) = arguments.bench {
            bench::measure(dir.path(), &arguments.helper, pairs)?;
        }
        if let Some(runs) = arguments.soak {
            bench::soak(dir.path(), &arguments.helper, runs)?;
        }
        return Ok(true);
    }
    match (&arguments.inside, arguments.start) {
        (None, _) => disposable(arguments),
        (Some(dir), None) => both_modes(arguments, dir),
        (Some(dir), Some(start)) => attack(arguments, dir, start),
    }
}

fn supervise(helper: &Path, plan: &str) -> Result<bool> {
    let plan: SandboxPlan = serde_json::from_str(plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let run = runtime.block_on(Runner::new(helper).run(&plan, RunControl::new()))?;
    Ok(run.report.succeeded())
}

/// Runs this program again in namespaces of its own, which end with it.
fn disposable(arguments: &Arguments) -> Result<bool> {
    let dir = tempfile::Builder::new()
        .prefix("vec-attack-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir()?;
    let mut command = Command::new("unshare");
    if !geteuid().is_root() {
        // To mount a file system of bounded size; given up right after.
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command
        .args([
            "--mount",
            "--pid",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--",
        ])
        .arg(std::env::current_exe()?)
        .args(forwarded(arguments))
        .arg("--inside")
        .arg(dir.path())
        .env("VEC_ATTACK_SECRET", SECRET);
    let status = command.status().context("start `unshare` (util-linux)")?;
    Ok(status.success())
}

fn forwarded(arguments: &Arguments) -> Vec<std::ffi::OsString> {
    let mut words: Vec<std::ffi::OsString> =
        vec!["--helper".into(), arguments.helper.clone().into()];
    words.extend(["--lifted".into(), arguments.lifted.clone().into()]);
    words.extend(["--out".into(), arguments.out.clone().into()]);
    if arguments.quick {
        words.push("--quick".into());
    }
    if arguments.tolerate_invalid {
        words.push("--tolerate-invalid".into());
    }
    for case in &arguments.cases {
        words.extend(["--case".into(), case.to_string().into()]);
    }
    words
}

/// As root: one place per mode, on a file system of bounded size. As an ordinary user: one mode.
fn both_modes(arguments: &Arguments, dir: &Path) -> Result<bool> {
    let none: Option<&str> = None;
    let options = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .context("keep mounts private")?;
    mount(
        Some("attack"),
        dir,
        Some("tmpfs"),
        options,
        Some(PLACE_OPTIONS),
    )
    .context("mount the attacks' place")?;
    numbers::give_up_ambient()?;
    let bounded =
        has_own_pid_max() && std::fs::write("/proc/sys/kernel/pid_max", PROCESSES_MAX).is_ok();
    say(&format!(
        "disposable namespace: {PLACE_OPTIONS}, processes bounded: {bounded}"
    ));
    let mut report = Report::default();
    for start in [StartMode::Root, StartMode::User] {
        if start == StartMode::Root && !geteuid().is_root() {
            say("SKIPPED: started by root (this is an ordinary user)");
            continue;
        }
        report
            .verdicts
            .extend(one_mode(arguments, dir, start)?.verdicts);
    }
    report.write(&arguments.out)?;
    say(&report.summary());
    let invalid = report.count(Outcome::Invalid);
    if arguments.tolerate_invalid && invalid > 0 {
        say(&format!(
            "NOT PROVEN on this kernel: {invalid} attacks (marked invalid above)"
        ));
        return Ok(report.count(Outcome::Fail) == 0);
    }
    Ok(report.is_clean())
}

/// Older kernels have one `pid_max` for the whole machine, which is none of our business.
fn has_own_pid_max() -> bool {
    let Ok(name) = nix::sys::utsname::uname() else {
        return false;
    };
    let release = name.release().to_string_lossy();
    let mut parts = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    (parts.next(), parts.next()) >= (Some(6), Some(14))
}

fn one_mode(arguments: &Arguments, dir: &Path, start: StartMode) -> Result<Report> {
    let place = dir.join(crate::verdict::word(&start));
    place::prepare(&place)?;
    let out = place.join("report");
    std::fs::create_dir_all(&out)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("attack"),
        &place.join("view/sub"),
        Some("tmpfs"),
        flags,
        Some("size=1m,mode=777"),
    )
    .context("mount below the view")?;
    let copy = |from: &Path, name: &str| -> Result<PathBuf> {
        let to = place.join("tool").join(name);
        std::fs::copy(from, &to).with_context(|| format!("copy {}", from.display()))?;
        Ok(to)
    };
    let mut command = Command::new(copy(&std::env::current_exe()?, "vec-attack")?);
    let local = Arguments {
        helper: copy(&arguments.helper, "vec-sandbox")?,
        lifted: copy(&arguments.lifted, "vec-sandbox-lifted")?,
        out: out.clone(),
        cases: arguments.cases.clone(),
        quick: arguments.quick,
        inside: None,
        start: None,
        supervise: None,
        tolerate_invalid: arguments.tolerate_invalid,
        bench: None,
        soak: None,
        load: None,
    };
    command.args(forwarded(&local)).arg("--inside").arg(&place);
    command
        .arg("--start")
        .arg(crate::verdict::word(&start))
        .current_dir("/");
    if start == StartMode::User && geteuid().is_root() {
        give(&place)?;
        command.uid(USER).gid(USER);
    }
    let status = if start == StartMode::User && geteuid().is_root() {
        groups::delegated(command, USER)?
    } else {
        command.status().context("start the attacks")?
    };
    let path = out.join("attack.json");
    ensure!(
        path.exists(),
        "the attacks ended without a report ({status})"
    );
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn give(place: &Path) -> Result<()> {
    for name in [
        "",
        "probes",
        "view",
        "view/victim",
        "client",
        "client/victim",
        "client2",
        "work",
        "report",
        "foreign",
    ] {
        let path = place.join(name);
        nix::unistd::chown(&path, Some(USER.into()), Some(USER.into()))
            .with_context(|| format!("give away {}", path.display()))?;
    }
    Ok(())
}

/// All attacks in this start mode.
fn attack(arguments: &Arguments, dir: &Path, start: StartMode) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let place = Place::open(dir, &arguments.helper, &arguments.lifted)?;
    let wanted = |case: u8| arguments.cases.is_empty() || arguments.cases.contains(&case);
    let mut report = Report::default();
    let mut take = |verdict: Verdict| {
        say(&line(&verdict));
        report.verdicts.push(verdict);
    };
    for row in ROWS.iter().filter(|row| wanted(row.case)) {
        for &profile in row.profiles {
            take(runtime.block_on(judge(&place, row, profile, start)));
            // Whatever got through must not decide about the next attack.
            place.mend()?;
        }
    }
    for verdict in runtime.block_on(special::all(&place, start, arguments.quick, &wanted)) {
        take(verdict);
    }
    for verdict in runtime.block_on(groups::all(&place, start, &wanted)) {
        take(verdict);
    }
    let left = processes_with(MARKER);
    if left > 0 {
        bail!("{left} processes of the attacks are left");
    }
    report.write(&arguments.out)?;
    Ok(report.is_clean())
}

fn line(verdict: &Verdict) -> String {
    let word = |text: String| format!("{text:<9}");
    format!(
        "{} case {:>2} {:<8} {:<4} {}: {} [{}]",
        word(crate::verdict::word(&verdict.outcome)),
        verdict.case,
        crate::verdict::word(&verdict.profile),
        crate::verdict::word(&verdict.start),
        verdict.attack,
        verdict.seen.chars().take(140).collect::<String>(),
        verdict.control.chars().take(140).collect::<String>(),
    )
}

/// One row: the product's plan first, then the control.
async fn judge(place: &Place, row: &Row, profile: Profile, start: StartMode) -> Verdict {
    let mut verdict = Verdict {
        case: row.case,
        attack: std::iter::once(row.probe)
            .chain(row.args.iter().copied())
            .collect::<Vec<_>>()
            .join(" "),
        profile,
        start,
        outcome: Outcome::Invalid,
        seen: String::new(),
        control: String::new(),
    };
    let ran = match place.probe(profile, row.probe, row.args, &[]).await {
        Ok(ran) => ran,
        Err(error) => {
            verdict.seen = format!("{error:#}");
            return verdict;
        }
    };
    verdict.seen = ran.words();
    let reached = ran.answer.is_some() || special::is_plain_failure(&ran);
    let own_end = row.self_harm && start == StartMode::User && reached;
    let refused = ran.answer.as_ref().is_some_and(|answer| !answer.got) || own_end;
    if !refused || !place.is_untouched() {
        verdict.outcome = Outcome::Fail;
        if ran.answer.is_none() {
            verdict.outcome = Outcome::Invalid;
        }
        return verdict;
    }
    if own_end {
        verdict.outcome = Outcome::Pass;
        verdict.seen = format!("may get through, to its own init alone: {}", verdict.seen);
        verdict.control = format!("{NO_CONTROL}one id can be mapped, so it owns its own init");
        return verdict;
    }
    let lifts = match row.control {
        Control::None(why) => {
            verdict.outcome = Outcome::Pass;
            verdict.control = format!("{NO_CONTROL}{why}");
            return verdict;
        }
        Control::Lift(lifts) => lifts,
    };
    let control = place.probe(profile, row.probe, row.args, lifts).await;
    let got = match &control {
        Ok(ran) => ran.answer.as_ref().is_some_and(|answer| answer.got),
        Err(_) => false,
    };
    verdict.control = match &control {
        Ok(ran) => format!("without {}: {}", lifts.join(", "), ran.words()),
        Err(error) => format!("{error:#}"),
    };
    if got {
        verdict.outcome = Outcome::Pass;
    }
    verdict
}
