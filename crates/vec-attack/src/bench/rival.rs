//! Bubblewrap, given what it can be given of our plan.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::wait::waitpid;
use vec_sandbox_lifted::{INSIDE_ID, SandboxPlan, WorkKind, filter_bytes};

/// What the comparison leaves to us alone, or to bubblewrap alone.
pub(super) const DIFFERENCES: [&str; 4] = [
    "same work: the binds, links, sizes of memory file systems, host name, id and environment of our plan, no",
    "  further user namespaces, the plan's filter, output through pipes, and the end of bwrap's whole tree awaited",
    "  ours alone: file-count bounds, resource limits, an id for init, a private /proc without host facts, inotify",
    "  ceilings, small files in /etc, a deadline, a report; bwrap's alone: devpts, covers over parts of /proc",
];

const ALWAYS: [&str; 7] = [
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--clearenv",
];

/// One way to run `/bin/true` under bubblewrap.
pub(super) struct Rival {
    program: OsString,
    words: Vec<OsString>,
    /// What it loads as system-call filter, from stdin.
    filter: Option<File>,
    to_the_end: bool,
}

impl Rival {
    /// The mounts of the plan's kind and nothing else; over when bubblewrap's first process is.
    pub(super) fn plain() -> Result<Self> {
        let words = [
            &ALWAYS[..],
            &["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"],
            &["--symlink", "usr/lib", "/lib"],
            &["--symlink", "usr/lib64", "/lib64"],
            &["--ro-bind", "/etc/alternatives", "/etc/alternatives"],
            &["--proc", "/proc", "--dev", "/dev"],
            &["--tmpfs", "/tmp", "--tmpfs", "/out", "--", "/bin/true"],
        ];
        Ok(Self {
            program: program()?,
            words: words.concat().into_iter().map(OsString::from).collect(),
            filter: None,
            to_the_end: false,
        })
    }

    /// Everything of `plan` that bubblewrap has an option for.
    pub(super) fn same_work(plan: &SandboxPlan) -> Result<Self> {
        let mut words: Vec<OsString> = ALWAYS.map(OsString::from).to_vec();
        let mut add = |list: &[&dyn AsRef<std::ffi::OsStr>]| {
            words.extend(list.iter().map(|word| word.as_ref().to_owned()));
        };
        let id = INSIDE_ID.to_string();
        add(&[&"--uid", &id, &"--gid", &id, &"--hostname", &plan.hostname]);
        add(&[&"--disable-userns", &"--proc", &"/proc", &"--dev", &"/dev"]);
        let mut memory = vec![("/tmp", plan.tmp), ("/dev/shm", plan.shm)];
        if let WorkKind::Memory { size, .. } = plan.work.kind {
            memory.push((plan.work.dest.to_str().context("work directory")?, size));
        }
        for (dest, size) in memory {
            add(&[&"--size", &size.bytes.to_string(), &"--tmpfs", &dest]);
        }
        for bind in &plan.ro_binds {
            add(&[&"--ro-bind", &bind.source, &bind.dest]);
        }
        for link in &plan.symlinks {
            add(&[&"--symlink", &link.target, &link.path]);
        }
        for (name, value) in &plan.env {
            add(&[&"--setenv", name, value]);
        }
        add(&[&"--chdir", &plan.cwd, &"--seccomp", &"0", &"--"]);
        plan.argv.iter().for_each(|word| add(&[word]));
        let programs = filter_bytes(plan).map_err(anyhow::Error::msg)?;
        let mut filter = tempfile::tempfile()?;
        filter.write_all(programs.last().context("no filter")?)?;
        set_child_subreaper(true).context("become the reaper of orphans")?;
        Ok(Self {
            program: program()?,
            words,
            filter: Some(filter),
            to_the_end: true,
        })
    }

    /// One run.
    pub(super) fn run(&self) -> Result<Duration> {
        let stdin = match &self.filter {
            Some(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Stdio::from(file)
            }
            None => Stdio::null(),
        };
        let began = Instant::now();
        let output = Command::new(&self.program)
            .args(&self.words)
            .stdin(stdin)
            .output()
            .context("start bwrap")?;
        if self.to_the_end {
            orphans_gone();
        }
        let time = began.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "bwrap ended with {}: {said}",
            output.status
        );
        if !self.to_the_end {
            orphans_gone();
        }
        Ok(time)
    }
}

/// Waits for bubblewrap's init, which we inherit when its parent ends: there is no other child.
fn orphans_gone() {
    while waitpid(None, None) != Err(Errno::ECHILD) {}
}

/// Found once: the search is no part of a start.
fn program() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join("bwrap"))
        .find(|file| file.is_file());
    Ok(found.context("bwrap is not installed")?.into())
}
