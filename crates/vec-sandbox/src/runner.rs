//! Starts the helper, feeds it the plan, drains the payload's output, takes the report.
//!
//! Invariants: no unsandboxed fall-back. The helper gets an empty environment and the descriptors
//! that it needs (nothing of ours is ever open in another program, all of it is close-on-exec); what it hands out comes before the payload's first instruction.
//! Dropping the returned future closes the control pipe, which kills the whole tree. Output beyond
//! a cap is counted and dropped, so a flood never blocks or fills memory.

mod capture;
mod handed;

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::pipe2;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::control::{Command, RunControl, Wish};
use crate::handover;
use crate::plan::{PlanError, SandboxPlan};
use crate::report::SandboxReport;
use capture::Pump;
pub use capture::{Captured, LINE_BYTES_MAX, Line};
use handed::Reports;

/// Bound on what may follow the report: the rest of the pipes, the helper's exit.
const AFTER_REPORT_MAX: Duration = Duration::from_secs(5);

/// The same for the pipes of a tree that hangs: what is in them already, no more will come.
const AFTER_HANG_MAX: Duration = Duration::from_millis(200);

/// Why there is no report. None of these is the payload's fault.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The plan cannot be applied.
    #[error("the sandbox plan is not valid")]
    Plan(#[source] PlanError),
    /// The helper program cannot be started.
    #[error("cannot start the sandbox helper {helper:?}")]
    Spawn {
        /// Its path.
        helper: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A pipe to or from the helper failed.
    #[error("cannot {action} the sandbox helper")]
    Pipe {
        /// What was tried.
        action: &'static str,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The helper ended without a report; the kernel has killed its sandbox with it.
    #[error("the sandbox helper ended without a report ({status})")]
    HelperDied {
        /// Its exit status.
        status: String,
    },
    /// The helper said something that is no report.
    #[error("the sandbox helper's report is malformed ({status})")]
    BadReport {
        /// Its exit status.
        status: String,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
}

/// What else an execution may be given.
#[derive(Debug, Default)]
pub struct RunOptions {
    /// Takes each line of stdout as it comes (backpressure: a full channel holds the payload; a
    /// closed one is ignored).
    pub lines: Option<mpsc::Sender<Line>>,
    /// Open `cgroup.procs` files: the sandbox enters each before it does anything.
    pub groups: Vec<OwnedFd>,
    /// Told when the payload starts.
    pub started: Option<oneshot::Sender<Started>>,
}

/// A payload has been let go.
#[derive(Debug)]
pub struct Started {
    /// Pid of the sandbox's init on the host; valid while the run has not ended.
    pub init: i32,
    /// The plan's loopback ports with their listeners.
    pub listeners: Vec<(u16, OwnedFd)>,
}

/// One finished execution.
#[derive(Debug)]
pub struct SandboxRun {
    /// Directory descriptor of a memory work directory; absent when the set-up did not come so far.
    pub work: Option<OwnedFd>,
    /// The helper's account.
    pub report: SandboxReport,
    /// What was kept of stdout.
    pub stdout: Captured,
    /// What was kept of stderr.
    pub stderr: Captured,
    /// A stream passed `output.kill_bytes` and the sandbox was killed for it.
    pub output_killed: bool,
}

/// Runs plans through one installed helper.
#[derive(Debug, Clone)]
pub struct Runner {
    helper: PathBuf,
}

impl Runner {
    /// `helper` is the absolute path of the installed `vec-sandbox`.
    #[must_use]
    pub fn new(helper: impl Into<PathBuf>) -> Self {
        Self {
            helper: helper.into(),
        }
    }

    /// Runs `plan` to its end. A refused set-up is a report with `setup_error`, not an error.
    ///
    /// # Errors
    /// [`SandboxError`]: no report could be had.
    pub async fn run(
        &self,
        plan: &SandboxPlan,
        control: RunControl,
    ) -> Result<SandboxRun, SandboxError> {
        self.run_with(plan, control, RunOptions::default()).await
    }

    /// As [`Runner::run`]; each line of stdout also goes to `lines` as it comes (backpressure: a
    /// full channel holds the payload; a closed one is ignored).
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub async fn run_streaming(
        &self,
        plan: &SandboxPlan,
        control: RunControl,
        lines: mpsc::Sender<Line>,
    ) -> Result<SandboxRun, SandboxError> {
        let options = RunOptions {
            lines: Some(lines),
            ..RunOptions::default()
        };
        self.run_with(plan, control, options).await
    }

    /// As [`Runner::run`], with options.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub async fn run_with(
        &self,
        plan: &SandboxPlan,
        control: RunControl,
        options: RunOptions,
    ) -> Result<SandboxRun, SandboxError> {
        let RunOptions {
            lines,
            groups,
            started,
        } = options;
        plan.check().map_err(SandboxError::Plan)?;
        let mut helper = Helper::spawn(&self.helper, plan, &groups)?;
        drop(groups);
        helper.reports.announce(plan, started);
        let caps = plan.output;
        let (flood_tx, flood_rx) = mpsc::channel(1);
        let mut stdout = Pump::new(caps.stdout_bytes, caps.kill_bytes, lines, flood_tx.clone());
        let mut stderr = Pump::new(caps.stderr_bytes, caps.kill_bytes, None, flood_tx);
        let steering = steer(helper.control, control.subscribe(), flood_rx);
        let report = {
            let pumps = async {
                tokio::join!(stdout.drain(helper.stdout), stderr.drain(helper.stderr));
            };
            tokio::pin!(pumps, steering);
            let report = helper.reports.read();
            tokio::pin!(report);
            let mut pumped = false;
            let report = loop {
                tokio::select! {
                    report = &mut report => break report,
                    () = &mut pumps, if !pumped => pumped = true,
                    never = &mut steering => match never {},
                }
            };
            // Everything that could write is dead, or hangs in the kernel and holds the pipes.
            if !pumped {
                let bound = if says_hanging(&report) {
                    AFTER_HANG_MAX
                } else {
                    AFTER_REPORT_MAX
                };
                let _ = tokio::time::timeout(bound, pumps).await;
            }
            report?
        };
        let output_killed = stdout.flooded() || stderr.flooded();
        let status = tokio::time::timeout(AFTER_REPORT_MAX, helper.child.wait()).await;
        let status = describe(status.ok().and_then(Result::ok));
        if report.is_empty() {
            return Err(SandboxError::HelperDied { status });
        }
        let report = serde_json::from_slice(&report)
            .map_err(|source| SandboxError::BadReport { status, source })?;
        Ok(SandboxRun {
            work: helper.reports.work,
            report,
            stdout: stdout.finish(),
            stderr: stderr.finish(),
            output_killed,
        })
    }
}

/// Does the report say that something is left?
fn says_hanging(report: &Result<Vec<u8>, SandboxError>) -> bool {
    let report = report.as_ref().ok();
    let parsed = report.and_then(|bytes| serde_json::from_slice::<SandboxReport>(bytes).ok());
    parsed.is_some_and(|report| !report.tree_gone)
}

fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "still running".to_owned(), |status| status.to_string())
}

/// A started helper and our ends of its pipes.
struct Helper {
    child: Child,
    control: pipe::Sender,
    reports: Reports,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Helper {
    fn spawn(
        program: &PathBuf,
        plan: &SandboxPlan,
        groups: &[OwnedFd],
    ) -> Result<Self, SandboxError> {
        let failed = |action| move |source| SandboxError::Pipe { action, source };
        let plan = plan_file(plan).map_err(failed("write the plan for"))?;
        let make_pipe = || pipe2(OFlag::O_CLOEXEC).map_err(std::io::Error::from);
        let (control_rx, control_tx) = make_pipe().map_err(failed("make pipes for"))?;
        let (report_rx, report_tx) = UnixStream::pair().map_err(failed("make a socket for"))?;
        // What it needs waits in the socket that is its stdin: with descriptors mapped to numbers the
        // process would have to be forked, which costs a daemon of some size milliseconds.
        let brought: Vec<BorrowedFd<'_>> = [&plan, &control_rx]
            .into_iter()
            .chain(groups)
            .map(AsFd::as_fd)
            .collect();
        handover::send(report_rx.as_fd(), b"p", &brought)
            .map_err(|errno| failed("pass descriptors to")(errno.into()))?;
        let mut command = std::process::Command::new(program);
        command
            .args(["run".to_owned(), groups.len().to_string()])
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(report_tx))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let mut child = command.spawn().map_err(|source| SandboxError::Spawn {
            helper: program.clone(),
            source,
        })?;
        // The command owns the child's ends of the pipes.
        drop(command);
        let none = || failed("take the output of")(std::io::ErrorKind::BrokenPipe.into());
        Ok(Self {
            control: pipe::Sender::from_owned_fd(control_tx).map_err(failed("steer"))?,
            reports: Reports::new(report_rx).map_err(failed("listen to"))?,
            stdout: child.stdout.take().ok_or_else(none)?,
            stderr: child.stderr.take().ok_or_else(none)?,
            child,
        })
    }
}

/// The plan in an unnamed file in memory, positioned at its start.
fn plan_file(plan: &SandboxPlan) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"sandbox-plan", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(&serde_json::to_vec(plan)?)?;
    file.rewind()?;
    Ok(file.into())
}

/// Turns wishes and floods into commands; never ends by itself, because its end of the pipe must
/// stay open until the report is there.
async fn steer(
    mut pipe: pipe::Sender,
    mut wishes: watch::Receiver<Wish>,
    mut floods: mpsc::Receiver<()>,
) -> std::convert::Infallible {
    let mut sent = Wish::default();
    loop {
        let wish = *wishes.borrow_and_update();
        let mut bytes = Vec::new();
        if wish.end_at != sent.end_at
            && let Some(end) = wish.end_at
        {
            let left = end.saturating_duration_since(Instant::now());
            let ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            bytes.extend(Command::Shorten(ms).encode());
        }
        if wish.terminate && !sent.terminate {
            bytes.extend(Command::Terminate.encode());
        }
        if wish.kill && !sent.kill {
            bytes.extend(Command::Kill.encode());
        }
        sent = wish;
        // A closed pipe means that the helper has ended: its report says how.
        let _ = pipe.write_all(&bytes).await;
        tokio::select! {
            changed = wishes.changed() => if changed.is_err() {
                // Every handle is gone: only a flood can still change anything.
                flood(&mut floods, &mut pipe).await;
            },
            () = flood(&mut floods, &mut pipe) => {}
        }
    }
}

/// Waits for an output flood and answers it; waits for ever when the pumps have ended.
async fn flood(floods: &mut mpsc::Receiver<()>, pipe: &mut pipe::Sender) {
    match floods.recv().await {
        Some(()) => {
            let _ = pipe.write_all(&Command::Kill.encode()).await;
        }
        None => std::future::pending().await,
    }
}
