//! The payload of the self-test: looks around inside and prints what it sees.
//!
//! Invariants: runs confined, so it may try what must fail; one writable place proves that
//! refusals are not just a broken set-up.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;

use crate::probe::ProbeCheck;
use crate::sys;

/// The argument that selects this mode.
pub(crate) const FLAG: &str = "--probe-inside";
/// TEST-NET-1: no such host exists anywhere.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const HOST_FILES: [&str; 6] = ["/root", "/home", "/var", "/sys", "/boot", "/etc/shadow"];
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The largest pid a fresh pid namespace has given out by now.
const OWN_PIDS_MAX: u32 = 16;

/// Name of the check whose detail holds the mount options of `/proc`.
pub(crate) const PROC_OPTIONS: &str = "proc_options";
/// What an own `/proc` shows of the host unless it is left out or covered.
const HOST_FACTS: [&str; 5] = ["sys", "bus", "cmdline", "kallsyms", "version"];

/// Prints the checks of `profile` as JSON; exit code 0 when all are fine.
pub(crate) fn check(profile: &str) -> ExitCode {
    let checks = match profile {
        "worker" => worker(),
        "engineer" => full("/box"),
        _ => full("/out"),
    };
    let fine = checks.iter().all(|check| check.ok);
    let Ok(text) = serde_json::to_vec(&checks) else {
        return ExitCode::FAILURE;
    };
    if std::io::stdout().write_all(&text).is_ok() && fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Under the worker's filter most acts are no system calls that it has, whatever the rest of the
/// sandbox would say.
fn worker() -> Vec<ProbeCheck> {
    let inet = i64::from(libc::AF_INET);
    vec![
        status("no_capabilities", "CapBnd", "0000000000000000"),
        status("no_new_privs", "NoNewPrivs", "1"),
        status("seccomp_filter", "Seccomp", "2"),
        io_error("usr_read_only", File::create("/usr/x"), Errno::EROFS),
        written("work_writable", Path::new("/out/x")),
        absent("host_files_hidden", &HOST_FILES),
        host_facts(),
        proc_options(),
        refused("socket_denied", libc::SYS_socket, inet, 1),
        refused("io_uring_denied", libc::SYS_io_uring_setup, 1, 0),
        refused(
            "user_namespace_denied",
            libc::SYS_unshare,
            i64::from(libc::CLONE_NEWUSER),
            0,
        ),
        descriptors(),
    ]
}

/// Everything, with `work` as work directory.
fn full(work: &str) -> Vec<ProbeCheck> {
    vec![
        status("no_capabilities", "CapBnd", "0000000000000000"),
        status("no_new_privs", "NoNewPrivs", "1"),
        status("seccomp_filter", "Seccomp", "2"),
        io_error("root_read_only", fs::create_dir("/x"), Errno::EROFS),
        io_error("usr_read_only", File::create("/usr/x"), Errno::EROFS),
        written("work_writable", &Path::new(work).join("x")),
        written("tmp_writable", Path::new("/tmp/x")),
        absent("host_files_hidden", &HOST_FILES),
        host_facts(),
        proc_options(),
        processes(),
        network(),
        refused(
            "vsock_denied",
            libc::SYS_socket,
            i64::from(libc::AF_VSOCK),
            1,
        ),
        refused("io_uring_denied", libc::SYS_io_uring_setup, 1, 0),
        refused(
            "user_namespace_denied",
            libc::SYS_unshare,
            i64::from(libc::CLONE_NEWUSER),
            0,
        ),
        descriptors(),
    ]
}

fn result(name: &str, ok: bool, detail: impl Into<String>) -> ProbeCheck {
    ProbeCheck {
        name: name.to_owned(),
        ok,
        detail: detail.into(),
    }
}

fn status(name: &str, field: &str, wanted: &str) -> ProbeCheck {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .map_or("missing", str::trim);
    result(name, value == wanted, format!("{field} {value}"))
}

fn io_error<T>(name: &str, outcome: std::io::Result<T>, wanted: Errno) -> ProbeCheck {
    match outcome {
        Ok(_) => result(name, false, "succeeded"),
        Err(error) => {
            let ok = error.raw_os_error() == Some(wanted as i32);
            result(name, ok, error.to_string())
        }
    }
}

fn written(name: &str, path: &Path) -> ProbeCheck {
    match fs::write(path, "x") {
        Ok(()) => result(name, true, "written"),
        Err(error) => result(name, false, error.to_string()),
    }
}

fn absent(name: &str, paths: &[&str]) -> ProbeCheck {
    let seen: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|p| Path::new(p).exists())
        .collect();
    result(name, seen.is_empty(), format!("seen: {}", seen.join(" ")))
}

/// Nothing can be read of the host's facts: they are not there, or covered by emptiness.
fn host_facts() -> ProbeCheck {
    let told = |name: &&&str| {
        let path = Path::new("/proc").join(name);
        let files = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        files || fs::read(&path).is_ok_and(|bytes| !bytes.is_empty())
    };
    let seen: Vec<&str> = HOST_FACTS.iter().filter(told).copied().collect();
    result(
        "proc_subset",
        seen.is_empty(),
        format!("told: {}", seen.join(" ")),
    )
}

/// How the kernel has mounted `/proc`: says no more than that there is one.
fn proc_options() -> ProbeCheck {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let options = text
        .lines()
        .find_map(|line| line.split_once(" - proc proc "));
    let found = options.map_or("", |(_, options)| options);
    result(PROC_OPTIONS, options.is_some(), found)
}

fn processes() -> ProbeCheck {
    let pids: Vec<u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let ok = pids.contains(&std::process::id()) && pids.iter().all(|&p| p <= OWN_PIDS_MAX);
    result("processes_hidden", ok, format!("pids {pids:?}"))
}

fn network() -> ProbeCheck {
    let address = SocketAddr::from((NOWHERE, 80));
    let outcome = TcpStream::connect_timeout(&address, CONNECT_MAX);
    io_error("network_closed", outcome, Errno::ENETUNREACH)
}

fn refused(name: &str, number: i64, first: i64, second: i64) -> ProbeCheck {
    match sys::try_syscall(number, first, second) {
        Ok(value) => result(name, false, format!("returned {value}")),
        Err(errno) => result(name, errno == Errno::EPERM, errno.to_string()),
    }
}

fn descriptors() -> ProbeCheck {
    let listed = fs::read_dir("/proc/self/fd")
        .map(|entries| entries.flatten().count())
        .unwrap_or_default();
    // stdin, stdout, stderr, and the directory being read.
    result("descriptors_closed", listed == 4, format!("{listed} open"))
}
