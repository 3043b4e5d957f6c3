//! The helper's own part: clones the child, watches clock, control pipe and child, ends the tree.
//!
//! Invariants: every wait has a bound. TERM to the payload's process group (through init) → grace,
//! for as long as the group has members → KILL of init, which takes the whole pid namespace with it,
//! whatever its processes ignore and wherever they moved; then a bounded wait for the kernel to finish that. `timed_out` is set by this
//! clock only.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::read;

use super::launch::{Child, launch};
use super::setup::InitMessage;
use super::{Refusal, advice};
use crate::control::{Command, Parser};
use crate::handover;
use crate::plan::{Lift, SandboxPlan};
use crate::report::{EndedBy, Handed, PayloadExit, REPORT_SCHEMA, SandboxReport, SetupStep};
use crate::sys::{self, Reaped};

/// The set-up takes milliseconds; a host that needs longer is ill.
const SETUP_MAX: Duration = Duration::from_secs(20);
/// After KILL or the end of the payload: how long the kernel may take to end every process.
pub(crate) const REAP_MAX: Duration = Duration::from_secs(5);

/// What the payload's own process does between its start and its program; none of these steps can be
/// reported by anything that the program does.
const PAYLOAD_STEPS: [SetupStep; 7] = [
    SetupStep::Exec,
    SetupStep::Ids,
    SetupStep::Capabilities,
    SetupStep::Access,
    SetupStep::Fork,
    SetupStep::Limits,
    SetupStep::Seccomp,
];

/// The report of a plan that never became a process.
pub(crate) fn refused(refusal: Refusal) -> SandboxReport {
    SandboxReport {
        schema: REPORT_SCHEMA,
        exit: PayloadExit::NotStarted,
        ended_by: EndedBy::Setup,
        timed_out: false,
        killed_tree: false,
        tree_gone: true,
        wall_ms: 0,
        user_ms: 0,
        sys_ms: 0,
        max_rss_kib: 0,
        ids: 0,
        setup_ms: 0,
        setup_error: Some(refusal.explain()),
    }
}

/// Runs `plan` to its end. Without a daemon (`control` and the socket to hand out on) only the
/// deadline ends it early.
pub(crate) fn supervise(
    plan: &SandboxPlan,
    daemon: Option<(OwnedFd, &OwnedFd)>,
    groups: &[OwnedFd],
) -> SandboxReport {
    let begun = Instant::now();
    let (control, handing) = daemon.unzip();
    let private: Vec<RawFd> = control
        .iter()
        .chain(handing)
        .map(AsRawFd::as_raw_fd)
        .collect();
    match launch(plan, &private, groups) {
        Ok(child) => {
            let mut watch = Watch::new(plan, child, control, begun);
            watch.handing = handing.map(AsFd::as_fd);
            watch.run()
        }
        Err(refusal) => refused(refusal),
    }
}

/// Where the execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    SettingUp,
    Running,
    /// TERM sent; KILL at the end of the grace.
    Ending,
    /// KILL sent, or the payload has ended: the kernel clears up.
    Clearing,
}

struct Watch<'a> {
    plan: &'a SandboxPlan,
    child: Child,
    control: Option<OwnedFd>,
    handing: Option<BorrowedFd<'a>>,
    /// Received from init, not yet passed on.
    handed: Vec<OwnedFd>,
    parser: Parser,
    begun: Instant,
    started: Option<Instant>,
    stage: Stage,
    /// When the present stage runs out.
    until: Instant,
    /// End that the daemon asked for while the set-up still ran.
    shortened: Option<Instant>,
    lines: Vec<u8>,
    status_open: bool,
    report: SandboxReport,
}

impl<'a> Watch<'a> {
    fn new(plan: &'a SandboxPlan, child: Child, control: Option<OwnedFd>, begun: Instant) -> Self {
        let mut report = refused(Refusal::plain(SetupStep::Init, ""));
        report.setup_error = None;
        Self {
            plan,
            child,
            control,
            handing: None,
            handed: Vec::new(),
            parser: Parser::default(),
            begun,
            started: None,
            stage: Stage::SettingUp,
            until: begun + SETUP_MAX,
            shortened: None,
            lines: Vec::new(),
            status_open: true,
            report,
        }
    }

    fn run(mut self) -> SandboxReport {
        loop {
            if let Some(reaped) = self.wait_for_news() {
                self.drain_status();
                return self.finish(Some(reaped));
            }
            if Instant::now() >= self.until && !self.next_stage() {
                return self.finish(None);
            }
        }
    }

    /// Waits for child, status, control or the stage's end; gives the reaped child.
    fn wait_for_news(&mut self) -> Option<Reaped> {
        let left = self.until.saturating_duration_since(Instant::now());
        // Rounded up: waking early would spin.
        let ms = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
        let mut fds = vec![PollFd::new(self.child.pidfd.as_fd(), PollFlags::POLLIN)];
        if self.status_open {
            fds.push(PollFd::new(self.child.status.as_fd(), PollFlags::POLLIN));
        }
        let control_at = fds.len();
        if let Some(control) = &self.control {
            fds.push(PollFd::new(control.as_fd(), PollFlags::POLLIN));
        }
        if !matches!(poll(&mut fds, PollTimeout::from(ms)), Ok(n) if n > 0) {
            return None;
        }
        let ready = |at: usize| {
            fds.get(at)
                .and_then(PollFd::revents)
                .is_some_and(|events| !events.is_empty())
        };
        let (dead, told) = (ready(0), ready(control_at));
        let status = self.status_open && ready(1);
        drop(fds);
        if dead {
            return sys::wait4(self.child.pid).ok().flatten();
        }
        if status {
            self.read_status();
        }
        if told {
            self.read_control();
        }
        None
    }

    /// The stage ran out; false when nothing more can be done.
    fn next_stage(&mut self) -> bool {
        match self.stage {
            Stage::SettingUp => {
                let what = format!("the set-up did not end within {} s", SETUP_MAX.as_secs());
                self.fail(Refusal::plain(SetupStep::Init, what).explain());
                self.kill_tree();
            }
            Stage::Running => {
                self.report.timed_out = true;
                self.terminate(EndedBy::Deadline);
            }
            Stage::Ending => self.kill_tree(),
            Stage::Clearing => return false,
        }
        true
    }

    fn terminate(&mut self, by: EndedBy) {
        match self.stage {
            // Nothing runs yet that could use a grace.
            Stage::SettingUp => {
                self.report.ended_by = by;
                self.kill_tree();
            }
            Stage::Running => {
                self.report.ended_by = by;
                let _ = sys::pidfd_signal(self.child.pidfd.as_fd(), Signal::SIGTERM);
                self.stage = Stage::Ending;
                self.until = Instant::now() + Duration::from_millis(self.plan.time.grace_ms);
            }
            Stage::Ending | Stage::Clearing => {}
        }
    }

    fn kill_tree(&mut self) {
        // ESRCH: it is dead already and the next poll says so.
        let _ = sys::pidfd_signal(self.child.pidfd.as_fd(), Signal::SIGKILL);
        self.report.killed_tree = true;
        self.stage = Stage::Clearing;
        self.until = Instant::now() + REAP_MAX;
    }

    fn kill_now(&mut self, by: EndedBy) {
        if self.stage == Stage::Clearing {
            return;
        }
        if self.stage != Stage::Ending {
            self.report.ended_by = by;
        }
        self.kill_tree();
    }

    fn read_control(&mut self) {
        let Some(control) = &self.control else { return };
        let mut buffer = [0_u8; 256];
        match read(control.as_fd(), &mut buffer) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => {
                self.control = None;
                if !self.plan.lifts(Lift::DeathSignal) {
                    self.kill_now(EndedBy::ControlLost);
                }
            }
            Ok(count) => {
                for command in self.parser.push(&buffer[..count]) {
                    match command {
                        Command::Terminate => self.terminate(EndedBy::Terminate),
                        Command::Kill => self.kill_now(EndedBy::Kill),
                        Command::Shorten(ms) => self.shorten(ms),
                    }
                }
            }
        }
    }

    fn shorten(&mut self, ms: u64) {
        let Some(end) = Instant::now().checked_add(Duration::from_millis(ms)) else {
            return;
        };
        match self.stage {
            Stage::Running => self.until = self.until.min(end),
            Stage::SettingUp => {
                self.shortened = Some(self.shortened.map_or(end, |present| present.min(end)));
            }
            Stage::Ending | Stage::Clearing => {}
        }
    }

    fn read_status(&mut self) {
        let mut buffer = [0_u8; 8192];
        match handover::receive(self.child.status.as_fd(), &mut buffer, &mut self.handed) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => self.status_open = false,
            Ok(count) => {
                self.lines.extend_from_slice(&buffer[..count]);
                while let Some(end) = self.lines.iter().position(|&b| b == b'\n') {
                    let line: Vec<u8> = self.lines.drain(..=end).collect();
                    if let Ok(message) = serde_json::from_slice(&line) {
                        self.heard(message);
                    }
                }
            }
        }
    }

    /// After the child's death: what is still in the pipe (a payload that never executed holds the
    /// other end no longer).
    fn drain_status(&mut self) {
        while self.status_open {
            self.read_status();
        }
    }

    fn heard(&mut self, message: InitMessage) {
        match message {
            InitMessage::Handed => {}
            InitMessage::Started => {
                let now = Instant::now();
                self.hand_out();
                self.report.ids = self.child.ids;
                self.started = Some(now);
                self.report.setup_ms = millis(now - self.begun);
                self.report.exit = PayloadExit::Unknown;
                if self.stage == Stage::SettingUp {
                    let deadline = now + Duration::from_millis(self.plan.time.deadline_ms);
                    self.until = self.shortened.map_or(deadline, |end| end.min(deadline));
                    self.stage = Stage::Running;
                }
            }
            // The child cannot see this host's settings; the advice is added here.
            InitMessage::Failed(error) => {
                // Once the payload runs it may disturb an init of its own id; that is no excuse.
                let never_ran = self.report.exit == PayloadExit::NotStarted
                    || PAYLOAD_STEPS.contains(&error.step);
                if never_ran && self.report.setup_error.is_none() {
                    self.fail(advice::advised(error));
                }
            }
            InitMessage::Ended(raw) => {
                self.report.exit = exit_of(raw);
                self.report.wall_ms = self.since_start();
                if matches!(self.stage, Stage::Running | Stage::SettingUp) {
                    self.report.ended_by = EndedBy::Payload;
                }
                // After TERM the rest of its group keeps what is left of the grace.
                if self.stage != Stage::Ending {
                    self.stage = Stage::Clearing;
                    self.until = Instant::now() + REAP_MAX;
                }
            }
        }
    }

    /// Tells the daemon who init is, with what init has opened for it.
    fn hand_out(&mut self) {
        let handed = std::mem::take(&mut self.handed);
        let Some(socket) = self.handing else { return };
        let message = Handed {
            init: self.child.pid.as_raw(),
        };
        let fds: Vec<BorrowedFd<'_>> = handed.iter().map(AsFd::as_fd).collect();
        if let Ok(mut line) = serde_json::to_vec(&message) {
            line.push(b'\n');
            // A daemon that cannot be told is gone; the control pipe says so too.
            let _ = handover::send(socket, &line, &fds);
        }
    }

    fn fail(&mut self, error: crate::report::SetupError) {
        self.report.setup_error = Some(error);
    }

    fn since_start(&self) -> u64 {
        self.started.map_or(0, |started| millis(started.elapsed()))
    }

    fn finish(mut self, reaped: Option<Reaped>) -> SandboxReport {
        self.report.tree_gone = reaped.is_some();
        if let Some(reaped) = reaped {
            self.report.user_ms = reaped.user_ms;
            self.report.sys_ms = reaped.sys_ms;
            self.report.max_rss_kib = reaped.max_rss_kib;
            if self.report.exit == PayloadExit::Unknown && !self.report.killed_tree {
                // Init died without a word: somebody outside (the kernel, for memory) killed it.
                self.report.exit = exit_of(reaped.status);
                self.report.ended_by = EndedBy::Payload;
            }
        }
        if self.report.setup_error.is_some() {
            self.report.exit = PayloadExit::NotStarted;
            self.report.ended_by = EndedBy::Setup;
            self.report.wall_ms = 0;
        } else if self.started.is_none() && self.report.ended_by == EndedBy::Setup {
            let what = "the sandbox's init ended without a word (killed, or out of memory?)";
            self.fail(Refusal::plain(SetupStep::Init, what).explain());
        } else if self.report.wall_ms == 0 {
            self.report.wall_ms = self.since_start();
        }
        self.report
    }
}

fn exit_of(raw: i32) -> PayloadExit {
    if libc::WIFSIGNALED(raw) {
        PayloadExit::Signal(libc::WTERMSIG(raw))
    } else {
        PayloadExit::Code(libc::WEXITSTATUS(raw))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
