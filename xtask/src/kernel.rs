//! `cargo xtask kernel`: the tests of control groups on a kernel of its own that has version 2 alone
//! (User-Mode Linux with this machine's file system, read-only): as root in a group such as a service
//! manager gives, then as an ordinary user in a group that root gave away. Needs neither root nor KVM.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{cargo, has, headline, output, root, say, target_dir};

/// Longest life of the kernel; it takes about two minutes.
const SECONDS_MAX: u32 = 480;

/// First process of that kernel. `$TEST` is the test program.
const INIT: &str = r#"#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs -o mode=1777 tmp /tmp; mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd /sys/fs/cgroup
echo "+memory +pids +io" > cgroup.subtree_control
mkdir service given
# As a service manager does: the process stands in the group that it was given.
(echo $BASHPID > service/cgroup.procs; RUST_BACKTRACE=0 "$TEST" --test-threads=1 --nocapture; echo "VEC root $?") 2>&1
chown 65533:65533 given given/cgroup.procs given/cgroup.threads given/cgroup.subtree_control
(echo $BASHPID > given/cgroup.procs; RUST_BACKTRACE=0 setpriv --reuid 65533 --regid 65533 --clear-groups "$TEST" --test-threads=1 --nocapture; echo "VEC user $?") 2>&1
rmdir service/vec-daemons given/vec-daemons
echo "VEC left $(find /sys/fs/cgroup -name 'vec-*' | wc -l)"
halt -f
"#;

/// Builds the tests, starts the kernel, reads what they said.
pub(crate) fn kernel() -> Result<()> {
    headline("control groups of version 2 alone, on a kernel of its own");
    if !has("linux.uml", "--version") {
        say("SKIPPED: User-Mode Linux is not installed (Debian: apt install user-mode-linux)");
        return Ok(());
    }
    let test = test_program()?;
    let directory = target_dir().join("kernel");
    std::fs::create_dir_all(&directory)?;
    let init = directory.join("init");
    let script = INIT.replace("$TEST", &test.display().to_string());
    std::fs::write(&init, script)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&init, mode)?;
    let said = boot(&init, &directory)?;
    say(&said);
    for (line, what) in [
        ("VEC root 0", "the tests as root"),
        ("VEC user 0", "the tests as an ordinary user"),
        ("VEC left 0", "the look for what is left"),
    ] {
        let is_there = said.lines().any(|said| said.trim() == line);
        ensure!(is_there, "{what} did not succeed");
    }
    let skipped = said.matches("SKIPPED: no control groups").count();
    ensure!(skipped == 0, "{skipped} tests found no control groups");
    Ok(())
}

fn boot(init: &Path, directory: &Path) -> Result<String> {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", &SECONDS_MAX.to_string(), "linux.uml"])
        .args([
            "mem=1024M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "quiet",
        ])
        .args(["con=null", "con0=null,fd:1"])
        .arg(format!("init={}", init.display()))
        .current_dir(directory)
        .stdin(std::process::Stdio::null());
    // Its exit status says nothing about the tests.
    let ran = command.output().context("start linux.uml")?;
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn test_program() -> Result<PathBuf> {
    let said = output(&mut cargo(&[
        "test",
        "--quiet",
        "--package",
        "vec-scope",
        "--test",
        "cgroup",
        "--no-run",
        "--message-format=json",
    ]))?;
    let mut programs = said.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == "cgroup";
        let path = message["executable"].as_str().filter(|_| is_it)?;
        Some(root().join(path))
    });
    programs.next_back().context("cargo named no test program")
}
