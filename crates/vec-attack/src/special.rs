//! Attacks that need more than one probe and one answer: floods, daemons, clocks, dead supervisors,
//! replaced sources, hostile results.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use vec_sandbox_lifted::{EndedBy, PayloadExit, RunControl, SetupStep, collect};

use crate::place::{MARKER, Place, Ran, processes_with};
use crate::verdict::{Outcome, Profile, StartMode, Verdict};

/// Everything of a tree that was killed is gone by then.
const GONE_MAX: Duration = Duration::from_secs(1);

/// Daemons of the large attack.
const DAEMONS_MANY: u64 = 2_000;

/// Did it end by itself or with its own sandbox, and counts as a failure of its own?
pub(crate) fn is_plain_failure(ran: &Ran) -> bool {
    let report = &ran.run.report;
    !report.succeeded() && !report.timed_out && report.setup_error.is_none()
}

pub(crate) type Judged = Result<(bool, String, bool, String)>;

/// All of them; `quick` leaves out what takes seconds.
pub(crate) async fn all(
    place: &Place,
    start: StartMode,
    quick: bool,
    wanted: &dyn Fn(u8) -> bool,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for profile in [Profile::Exec, Profile::Engineer] {
        for (case, attack, slow) in [
            (27, "flood", false),
            (23, "sockets", false),
            (28, "daemons", false),
            (28, "many_daemons", true),
            (29, "ignore_term", true),
            (29, "exit_codes", false),
            (30, "dead_supervisor", true),
            (32, "allocate", false),
            (37, "replaced_source", false),
            (38, "hostile_results", false),
        ] {
            if !wanted(case) || quick && slow {
                continue;
            }
            let judged = match attack {
                "flood" => flood(place, profile).await,
                "sockets" if profile == Profile::Exec => continue,
                "sockets" => sockets(place, profile).await,
                "daemons" => daemons(place, profile).await,
                "many_daemons" => many_daemons(place, profile).await,
                "ignore_term" => ignore_term(place, profile).await,
                "exit_codes" => exit_codes(place, profile).await,
                "dead_supervisor" => dead_supervisor(place, profile),
                "allocate" => allocate(place, profile).await,
                "replaced_source" => replaced_source(place, profile).await,
                _ => hostile_results(place, profile).await,
            };
            verdicts.push(verdict(case, attack, profile, start, judged));
        }
    }
    verdicts
}

pub(crate) fn verdict(
    case: u8,
    attack: &str,
    profile: Profile,
    start: StartMode,
    judged: Judged,
) -> Verdict {
    let (outcome, seen, control) = match judged {
        Ok((held, seen, through, control)) => {
            let outcome = match (held, through) {
                (false, _) => Outcome::Fail,
                (true, false) => Outcome::Invalid,
                (true, true) => Outcome::Pass,
            };
            (outcome, seen, control)
        }
        Err(error) => (Outcome::Invalid, format!("{error:#}"), String::new()),
    };
    Verdict {
        case,
        attack: attack.to_owned(),
        profile,
        start,
        outcome,
        seen,
        control,
    }
}

/// 27: killed at the limit, little kept; the same flood below a higher limit runs to its end.
async fn flood(place: &Place, profile: Profile) -> Judged {
    let mut plan = place.plan(profile, "flood", &["64"])?;
    plan.output.kill_bytes = 8 << 20;
    let cut = place.run(&plan, RunControl::new()).await?.run;
    let kept = cut.stdout.bytes.len() as u64;
    let held = cut.output_killed && cut.stdout.truncated && kept <= plan.output.stdout_bytes;
    let seen = format!(
        "{} bytes written, {kept} kept, {:?}",
        cut.stdout.total, cut.report.ended_by
    );
    plan.output.kill_bytes = 1 << 30;
    let all = place.run(&plan, RunControl::new()).await?.run;
    let through = !all.output_killed && all.stdout.total >= 64 << 20;
    Ok((
        held,
        seen,
        through,
        format!("with a higher limit: {} bytes", all.stdout.total),
    ))
}

/// 28: twenty double-forked session leaders that ignore every signal end with the payload.
async fn daemons(place: &Place, profile: Profile) -> Judged {
    let plan = place.plan(profile, "daemons", &["20", "{marker}"])?;
    let ran = place.run(&plan, RunControl::new()).await?;
    let left = left_after(GONE_MAX);
    let held = ran.run.report.tree_gone && left == 0;
    let made = ran.answer.as_ref().is_some_and(|answer| answer.got);
    Ok((held, format!("{left} left"), made, ran.words()))
}

/// 28: two thousand of them, while a second sandbox goes about its work.
async fn many_daemons(place: &Place, profile: Profile) -> Judged {
    let count = DAEMONS_MANY.to_string();
    let mut plan = place.plan(profile, "daemons", &[&count, "{marker}"])?;
    plan.limits.processes = DAEMONS_MANY + 200;
    let second = place.plan(profile, "forks", &["50"])?;
    let (ran, second) = tokio::join!(
        place.run(&plan, RunControl::new()),
        place.run(&second, RunControl::new())
    );
    let (ran, second) = (ran?, second?);
    let left = left_after(GONE_MAX);
    let forked = second.answer.as_ref().is_some_and(|answer| answer.got);
    let held = ran.run.report.tree_gone && left == 0 && forked;
    let made = ran.answer.as_ref().is_some_and(|answer| answer.got);
    let seen = format!("{left} left, meanwhile elsewhere: {}", second.words());
    Ok((held, seen, made, ran.words()))
}

/// 23: the socket of another client, by guessed paths and through a link; the own one answers.
async fn sockets(place: &Place, profile: Profile) -> Judged {
    let other = place.path("client2/s").display().to_string();
    let guesses = [
        "/run/vec/../client2/s",
        "/run/vec/../../client2/s",
        other.as_str(),
    ];
    let refused = place.probe(profile, "other_clients", &guesses, &[]).await?;
    let own = place
        .probe(profile, "own_socket", &["/run/vec/s"], &[])
        .await?;
    let got = |ran: &Ran| ran.answer.as_ref().is_some_and(|answer| answer.got);
    let control = format!("its own: {}", own.words());
    Ok((
        refused.answer.is_some() && !got(&refused),
        refused.words(),
        got(&own),
        control,
    ))
}

/// 29: only the supervisor's clock says "timed out", and the tree is gone after the grace.
async fn ignore_term(place: &Place, profile: Profile) -> Judged {
    let mut plan = place.plan(profile, "ignore_term", &["{marker}"])?;
    plan.time.deadline_ms = 1_000;
    let began = Instant::now();
    let report = place.run(&plan, RunControl::new()).await?.run.report;
    let left = left_after(GONE_MAX);
    let held =
        report.timed_out && report.killed_tree && report.ended_by == EndedBy::Deadline && left == 0;
    let seen = format!(
        "{:?} after {} ms, {left} left",
        report.exit,
        began.elapsed().as_millis()
    );
    plan.time.deadline_ms = 20_000;
    plan.argv[3] = "exit_with".to_owned();
    plan.argv[4] = "0".to_owned();
    let polite = place.run(&plan, RunControl::new()).await?.run.report;
    Ok((
        held,
        seen,
        polite.succeeded(),
        "a polite payload ends by itself".to_owned(),
    ))
}

/// 29: codes that look like somebody else's verdict are the payload's own.
async fn exit_codes(place: &Place, profile: Profile) -> Judged {
    let mut seen = Vec::new();
    let mut held = true;
    for code in [143, 124, 137, 159] {
        let report = place
            .probe(profile, "exit_with", &[&code.to_string()], &[])
            .await?
            .run
            .report;
        held &= report.exit == PayloadExit::Code(code) && !report.timed_out && !report.killed_tree;
        seen.push(format!("{code}: {:?}", report.exit));
    }
    let zero = place
        .probe(profile, "exit_with", &["0"], &[])
        .await?
        .run
        .report;
    Ok((
        held,
        seen.join(", "),
        zero.succeeded(),
        "0 succeeds".to_owned(),
    ))
}

/// 30: the supervisor is killed; with its protection lifted the payload lives on.
fn dead_supervisor(place: &Place, profile: Profile) -> Judged {
    let survivors = |lifts: &[&str]| -> Result<usize> {
        let mut plan = place.plan(profile, "linger", &["{marker}"])?;
        plan.lift = lifts
            .iter()
            .map(|name| crate::place::lift(name))
            .collect::<Result<_>>()?;
        let text = serde_json::to_string(&plan)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--helper".as_ref(), place.helper_of(&plan)])
            .args(["--lifted".as_ref(), place.helper_of(&plan)])
            .args(["--out", "/tmp", "--supervise", &text])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start a supervisor")?;
        let payload = format!("linger\0{MARKER}");
        let is_up = until(Duration::from_secs(10), || processes_with(&payload) > 0);
        ensure!(is_up, "the payload never came up");
        child.kill().context("kill the supervisor")?;
        child.wait()?;
        until(GONE_MAX, || processes_with(&payload) == 0);
        Ok(processes_with(&payload))
    };
    let left = survivors(&[])?;
    let lived = survivors(&["death_signal"])?;
    until(Duration::from_secs(70), || {
        // Bounded by the payload itself, and helped along.
        let _ = Command::new("pkill").args(["-KILL", "-f", MARKER]).status();
        processes_with(MARKER) == 0
    });
    Ok((
        left == 0,
        format!("{left} left"),
        lived > 0,
        format!("without death_signal: {lived} left"),
    ))
}

/// 32: memory beyond the limit of one process.
async fn allocate(place: &Place, profile: Profile) -> Judged {
    let mut plan = place.plan(profile, "allocate", &["700"])?;
    let refused = place.run(&plan, RunControl::new()).await?;
    plan.limits.data_bytes = Some(2 << 30);
    plan.limits.address_space_bytes = None;
    let allowed = place.run(&plan, RunControl::new()).await?;
    let got = |ran: &Ran| ran.answer.as_ref().is_some_and(|answer| answer.got);
    let control = format!("with a higher limit: {}", allowed.words());
    Ok((!got(&refused), refused.words(), got(&allowed), control))
}

/// 37: a source that became a symbolic link after it was checked.
async fn replaced_source(place: &Place, profile: Profile) -> Judged {
    let plan = place.plan(profile, "exit_with", &["0"])?;
    let (path, aside) = (place.path("probes"), place.path("probes.aside"));
    let unchanged = place.run(&plan, RunControl::new()).await?.run.report;
    std::fs::rename(&path, &aside)?;
    std::os::unix::fs::symlink("/etc", &path)?;
    let changed = place.run(&plan, RunControl::new()).await;
    std::fs::remove_file(&path)?;
    std::fs::rename(&aside, &path)?;
    let error = changed?.run.report.setup_error;
    let held = error
        .as_ref()
        .is_some_and(|error| error.step == SetupStep::Source);
    let seen = error.map_or_else(|| "it was bound".to_owned(), |error| error.message);
    Ok((
        held,
        seen,
        unchanged.succeeded(),
        "an unchanged source is bound".to_owned(),
    ))
}

/// 38: everything but a plain file stays where it is.
async fn hostile_results(place: &Place, profile: Profile) -> Judged {
    let ran = place
        .probe(profile, "hostile_results", &["{work}"], &[])
        .await?;
    let work = ran.run.work.as_ref().context("no work directory")?;
    let dest = place.path("report").join("collected");
    let caps = collect::TreeCaps {
        files: 16,
        depth: 4,
        file_bytes: 1 << 20,
        total_bytes: 4 << 20,
    };
    let collected = collect::copy_tree(work.as_fd(), &dest, &caps)?;
    std::fs::remove_dir_all(&dest)?;
    let taken: Vec<&str> = collected
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let rejected = collected.rejected.len();
    let held = taken == ["plain"] && rejected >= 6;
    let seen = format!("taken {taken:?}, {rejected} rejected");
    Ok((
        held,
        seen,
        taken.contains(&"plain"),
        "a plain file is taken".to_owned(),
    ))
}

fn left_after(bound: Duration) -> usize {
    until(bound, || processes_with(MARKER) == 0);
    processes_with(MARKER)
}

/// Looks until it holds, at most for `bound`.
fn until(bound: Duration, holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + bound;
    while Instant::now() < end {
        if holds() {
            return true;
        }
        // Nothing tells when a stranger's process ends: a short pause, within the bound.
        std::thread::park_timeout(Duration::from_millis(10));
    }
    holds()
}
