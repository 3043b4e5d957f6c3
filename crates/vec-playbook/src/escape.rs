//! What card `escape` reaches for: files of the host, truth, other processes, the network. Nothing
//! of it may be there inside a sandbox; whatever is got is printed, so that a leak shows in the
//! run directory, where tests look for planted values.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// Paths that a session tries to read.
const PATHS: [&str; 12] = [
    "/etc/shadow",
    "/etc/passwd",
    "/truth",
    "/truth.csv",
    "/views/../truth",
    "/root",
    "/home",
    "/var/lib/vec",
    "/proc/1/environ",
    "/proc/1/root/etc/shadow",
    "/proc/1/cwd",
    "/run/vec/../launcher",
];
/// Files that a session tries to write.
const WRITES: [&str; 4] = [
    "/brief/BRIEF.json",
    "/opt/vec/bin/vec-score",
    "/views/main/train.csv",
    "/etc/vec-playbook",
];
/// Bytes of a found thing that are shown.
const SHOWN: usize = 2_000;
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_millis(200);

/// The attempts of a program, as Python lines: same idea, printed to its stdout.
pub(crate) const PROGRAM_LINES: [&str; 26] = [
    "import socket",
    "",
    "def attempt(what, action):",
    "    try:",
    "        print(\"escape:\", what, \"GOT\", str(action())[:2000])",
    "    except Exception as problem:",
    "        print(\"escape:\", what, \"denied:\", type(problem).__name__)",
    "",
    "def content(path):",
    "    return os.listdir(path) if os.path.isdir(path) else open(path, \"rb\").read(4000)",
    "",
    "def reach(family, kind, address):",
    "    with socket.socket(family, kind) as line:",
    "        line.settimeout(0.2)",
    "        return line.connect(address) or \"connected\"",
    "",
    "for path in [\"/etc/shadow\", \"/truth\", \"/truth.csv\", \"/root\", \"/home\", \"/var/lib/vec\", \"/brief\"]:",
    "    attempt(path, lambda: content(path))",
    "for path in [\"/proc/1/environ\", \"/proc/1/root/etc/shadow\", \"/solution/../truth\", \"/run/vec\"]:",
    "    attempt(path, lambda: content(path))",
    "attempt(\"udp\", lambda: reach(socket.AF_INET, socket.SOCK_DGRAM, (\"192.0.2.1\", 53)))",
    "attempt(\"tcp\", lambda: reach(socket.AF_INET, socket.SOCK_STREAM, (\"127.0.0.1\", 22)))",
    "attempt(\"unix\", lambda: reach(socket.AF_UNIX, socket.SOCK_STREAM, \"/run/vec/scorer.s\"))",
    "attempt(\"write view\", lambda: open(os.path.join(args.data, \"planted\"), \"w\").write(\"x\"))",
    "attempt(\"write program\", lambda: open(__file__, \"a\").write(\"# x\"))",
    "attempt(\"descriptors\", lambda: [os.readlink(\"/proc/self/fd/\" + n) for n in os.listdir(\"/proc/self/fd\") if int(n) > 2])",
];

/// One attempt: what was tried and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) what: String,
    pub(crate) result: String,
}

/// Everything that a session tries from its own process.
pub(crate) fn session_attempts() -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let mut note = |what: String, result: std::io::Result<String>| {
        let result = match result {
            Ok(found) => format!("GOT {}", found.chars().take(SHOWN).collect::<String>()),
            Err(error) => format!("denied: {:?}", error.kind()),
        };
        attempts.push(Attempt { what, result });
    };
    for path in PATHS {
        note(format!("read {path}"), content(Path::new(path)));
    }
    for path in WRITES {
        let opened = std::fs::OpenOptions::new().append(true).open(path);
        note(format!("write {path}"), opened.map(|_| "opened".to_owned()));
    }
    let nowhere = SocketAddr::from(([192, 0, 2, 1], 53));
    let udp = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| socket.connect(nowhere));
    note("udp".to_owned(), udp.map(|()| "connected".to_owned()));
    let host = SocketAddr::from(([127, 0, 0, 1], 22));
    let tcp = TcpStream::connect_timeout(&host, CONNECT);
    note("tcp".to_owned(), tcp.map(|_| "connected".to_owned()));
    attempts
}

fn content(path: &Path) -> std::io::Result<String> {
    if path.is_dir() {
        let names: std::io::Result<Vec<String>> = std::fs::read_dir(path)?
            .take(100)
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect();
        return Ok(names?.join(" "));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(SHOWN as u64)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_got_is_said_and_what_is_denied_too() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("canary"), "CANARY-1").expect("write");
        assert_eq!(content(folder.path()).expect("lists"), "canary");
        let file = folder.path().join("canary");
        assert_eq!(content(&file).expect("reads"), "CANARY-1");
        assert!(content(&folder.path().join("none")).is_err());
        assert!(PROGRAM_LINES.iter().any(|line| line.contains("/truth")));
    }
}
