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
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The largest pid a fresh pid namespace has given out by now.
const OWN_PIDS_MAX: u32 = 16;

/// Prints the checks as JSON; exit code 0 when all are fine.
pub(crate) fn check() -> ExitCode {
    let checks = vec![
        status("no_capabilities", "CapBnd", "0000000000000000"),
        status("no_new_privs", "NoNewPrivs", "1"),
        status("seccomp_filter", "Seccomp", "2"),
        io_error("root_read_only", fs::create_dir("/x"), Errno::EROFS),
        io_error("usr_read_only", File::create("/usr/x"), Errno::EROFS),
        written("work_writable", Path::new("/out/x")),
        written("tmp_writable", Path::new("/tmp/x")),
        absent(
            "host_files_hidden",
            &["/root", "/home", "/var", "/sys", "/boot", "/etc/shadow"],
        ),
        absent(
            "proc_subset",
            &["/proc/sys", "/proc/cmdline", "/proc/kallsyms"],
        ),
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
    ];
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
