//! Attacks that only a group of the whole tree answers: memory of many processes and of none, CPU
//! time that wait4 never shows, the name of the group itself. Skipped, with the reason, where this
//! host gives us no control groups.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use vec_sandbox_lifted::{RunControl, RunOptions, SandboxPlan};
use vec_scope::{Accounting, Cgroups, GroupLimits, OomVerdict, Supervisor, oom_verdict};

use crate::place::{Place, Ran};
use crate::special::{Judged, verdict};
use crate::verdict::{Outcome, Profile, StartMode, Verdict};

/// How far the account of CPU time may be from what the burners say.
const CPU_TOLERANCE_PERCENT: u64 = 5;
/// Python itself, before and after a burner looks at its clock.
const CPU_START_MS: u64 = 60;

/// All of them.
pub(crate) async fn all(
    place: &Place,
    start: StartMode,
    wanted: &dyn Fn(u8) -> bool,
) -> Vec<Verdict> {
    let supervisor = Cgroups::detect().map(Supervisor::Cgroup);
    let mut verdicts = Vec::new();
    for profile in [Profile::Exec, Profile::Engineer] {
        for (case, attack) in [
            (32, "allocate_children"),
            (32, "memory_files"),
            (32, "pipe_buffers"),
            (35, "burn_hidden"),
            (48, "control_group"),
        ] {
            if !wanted(case) {
                continue;
            }
            let judged = match (&supervisor, attack) {
                (Err(error), _) => {
                    verdicts.push(Verdict {
                        outcome: Outcome::Skipped,
                        seen: format!("no control groups here: {error}"),
                        ..verdict(case, attack, profile, start, Ok(Default::default()))
                    });
                    continue;
                }
                (Ok(supervisor), "burn_hidden") => burn_hidden(place, supervisor, profile).await,
                (Ok(supervisor), "control_group") => own_group(place, supervisor, profile).await,
                (Ok(supervisor), _) => memory(place, supervisor, profile, attack).await,
            };
            verdicts.push(verdict(case, attack, profile, start, judged));
        }
    }
    verdicts
}

/// One plan in a group of its own; with the names of its init's groups as the host sees them.
async fn grouped(
    place: &Place,
    supervisor: &Supervisor,
    plan: &SandboxPlan,
    memory_bytes: Option<u64>,
) -> Result<(Ran, Accounting, String)> {
    let limits = GroupLimits {
        memory_bytes,
        tasks: None,
    };
    let name = format!("vec-exec-attack{}-n1-seed0", std::process::id());
    let group = supervisor
        .group(&name, limits, &place.path("report"))
        .await?;
    let (tell, heard) = oneshot::channel();
    let options = RunOptions {
        lines: None,
        groups: group.entries()?,
        started: Some(tell),
    };
    let watching = async {
        let begun = heard.await.ok()?;
        group.watch(begun.init);
        let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", begun.init));
        // Its listeners are kept to the end: until then their ports are taken.
        Some((groups.unwrap_or_default(), begun))
    };
    let (ran, begun) = tokio::join!(place.run_with(plan, RunControl::new(), options), watching);
    let groups = begun.map(|(groups, _)| groups).unwrap_or_default();
    let record = group.finish().await;
    Ok((ran?, record, groups))
}

fn got(ran: &Ran) -> bool {
    ran.answer.as_ref().is_some_and(|answer| answer.got)
}

/// 32: memory that no limit of a single process sees. The kernel ends the tree at the group's limit
/// and at no other's; with room the same payload gets it all.
async fn memory(place: &Place, supervisor: &Supervisor, profile: Profile, attack: &str) -> Judged {
    let (arguments, limit_mib): (&[&str], u64) = match attack {
        "allocate_children" => (&["30", "20"], 256),
        "memory_files" => (&["160"], 96),
        _ => (&["48"], 40),
    };
    let plan = place.plan(profile, attack, arguments)?;
    let bounded = Some(limit_mib << 20);
    let (ran, record, _) = grouped(place, supervisor, &plan, bounded).await?;
    let is_own = oom_verdict(&record, true) == OomVerdict::Candidate;
    let peak = record.memory_peak_bytes.unwrap_or(u64::MAX) >> 20;
    let held = !got(&ran) && is_own && peak <= limit_mib && place.is_untouched();
    let seen = format!(
        "peak {peak} of {limit_mib} MiB, {:?} killed, {:?}",
        record.oom_kills, ran.run.report.exit
    );
    let (ran, record, _) = grouped(place, supervisor, &plan, Some(4 << 30)).await?;
    let peak = record.memory_peak_bytes.unwrap_or(0) >> 20;
    let control = format!("with room: {}, peak {peak} MiB", ran.words());
    Ok((
        held,
        seen,
        got(&ran) && record.oom_kills == Some(0),
        control,
    ))
}

/// 35: the group's account is right to 5 %; wait4, which the helper reports too, sees far less.
async fn burn_hidden(place: &Place, supervisor: &Supervisor, profile: Profile) -> Judged {
    let plan = place.plan(profile, "burn_hidden", &["1800"])?;
    let (ran, record, _) = grouped(place, supervisor, &plan, None).await?;
    let words = ran.words();
    let burnt: u64 = words.parse().with_context(|| words.clone())?;
    let counted = record.cpu_ms.context("no account of CPU time")?;
    let off = counted.abs_diff(burnt);
    let held = off <= burnt * CPU_TOLERANCE_PERCENT / 100 + CPU_START_MS;
    let waited = ran.run.report.user_ms + ran.run.report.sys_ms;
    let hidden = waited * 2 < burnt;
    Ok((
        held,
        format!("{counted} ms counted of {burnt} ms burnt"),
        hidden,
        format!("wait4 shows {waited} ms"),
    ))
}

/// 48: the group's name says which execution this is; inside, it is not to be seen.
async fn own_group(place: &Place, supervisor: &Supervisor, profile: Profile) -> Judged {
    let plan = place.plan(profile, "control_group", &[])?;
    let (ran, _, outside) = grouped(place, supervisor, &plan, None).await?;
    let held = ran.answer.is_some() && !got(&ran);
    let names = outside
        .lines()
        .filter(|line| line.contains("vec-exec-attack"));
    let names: Vec<&str> = names.collect();
    let control = format!("from outside: {}", names.join(" "));
    Ok((held, ran.words(), !names.is_empty(), control))
}

/// Runs `command` as a user to whom a group of ours was given (chown), as an administrator would
/// where no service manager does it. Without control groups it runs as it is.
pub(crate) fn delegated(mut command: Command, user: u32) -> Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let Ok(groups) = Cgroups::detect() else {
        return command.status().context("start the attacks");
    };
    let supervisor = Supervisor::Cgroup(groups);
    let name = format!("vec-attack-{}", std::process::id());
    let nowhere = Path::new("/nonexistent");
    let group = supervisor.group(&name, GroupLimits::default(), nowhere);
    let group = runtime.block_on(group)?;
    let directories = given(&group, user)?;
    // It waits for a line, so that it starts inside.
    let mut held = Command::new("/bin/sh");
    held.args(["-c", "read go; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir("/")
        .stdin(Stdio::piped());
    std::os::unix::process::CommandExt::uid(&mut held, user);
    std::os::unix::process::CommandExt::gid(&mut held, user);
    let mut child = held.spawn().context("start the attacks")?;
    for entry in group.entries()? {
        let mut file = std::fs::File::from(entry);
        file.write_all(child.id().to_string().as_bytes())?;
    }
    let mut go = child.stdin.take().context("a pipe")?;
    go.write_all(b"go\n")?;
    let status = child.wait()?;
    for directory in directories {
        // The leaf into which the user's processes went, on version 2.
        let _ = std::fs::remove_dir(directory.join("vec-daemons"));
    }
    runtime.block_on(group.finish());
    Ok(status)
}

/// Gives the group's directories and the files that a delegation needs away.
fn given(group: &vec_scope::Group, user: u32) -> Result<Vec<PathBuf>> {
    let mut directories = Vec::new();
    for entry in group.entries()? {
        let link = format!("/proc/self/fd/{}", entry.as_raw_fd());
        let procs = std::fs::read_link(link)?;
        let directory = procs.parent().context("a directory")?.to_owned();
        for name in [
            "",
            "cgroup.procs",
            "cgroup.threads",
            "cgroup.subtree_control",
        ] {
            let path = directory.join(name);
            if path.exists() {
                chown(&path, Some(user), Some(user))
                    .with_context(|| format!("give away {}", path.display()))?;
            }
        }
        directories.push(directory);
    }
    Ok(directories)
}
