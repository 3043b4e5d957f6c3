//! Child processes of a session: the candidate program, vec-check, vec-score. Every wait is
//! bounded; a child that does not end is killed with its process group and counts as failed. Of
//! its output a bounded part is kept, the rest is read and dropped.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Characters of a tool's output that an event shows.
const SHOWN: usize = 400;

/// Bytes of stdout (its begin) and of stderr (its end) that are kept.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code; absent when it was killed or could not be started.
    pub(crate) exit: Option<i32>,
    /// Its stdout, the first [`OUTPUT_BYTES_MAX`] bytes.
    pub(crate) stdout: Vec<u8>,
    /// Begin of stdout, or the end of stderr when it failed.
    pub(crate) shown: String,
}

/// Runs `argv` in `cwd` for at most `limit`.
pub(crate) async fn run(argv: &[String], cwd: &Path, limit: Duration) -> Ended {
    let failed = |shown: String| Ended {
        exit: None,
        stdout: Vec::new(),
        shown,
    };
    let Some((program, args)) = argv.split_first() else {
        return failed("empty command".to_owned());
    };
    let child = Command::new(program)
        .args(args)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!("cannot start {program}: {error}")),
    };
    match tokio::time::timeout(limit, outcome(&mut child)).await {
        Err(_) => {
            kill_group(&child);
            // Reaps it; a killed child ends at once.
            let _ended = child.wait().await;
            failed("did not end in time".to_owned())
        }
        Ok(Err(error)) => failed(format!("cannot wait for {program}: {error}")),
        Ok(Ok((status, stdout, stderr))) => Ended {
            exit: status.code(),
            shown: shown(status.success(), &stdout, &stderr),
            stdout,
        },
    }
}

/// Waits for the child and the ends of its outputs.
async fn outcome(child: &mut Child) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    tokio::try_join!(
        child.wait(),
        capture(stdout, Keep::Begin),
        capture(stderr, Keep::End)
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Begin,
    End,
}

/// Reads to the end and keeps at most [`OUTPUT_BYTES_MAX`] bytes of it.
async fn capture(pipe: Option<impl AsyncRead + Unpin>, keep: Keep) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else {
        return Ok(kept);
    };
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let count = pipe.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..count]);
        match keep {
            Keep::Begin => kept.truncate(OUTPUT_BYTES_MAX),
            // Moved down once per megabyte, not once per read.
            Keep::End if kept.len() > 2 * OUTPUT_BYTES_MAX => keep_end(&mut kept),
            Keep::End => {}
        }
    }
    if keep == Keep::End {
        keep_end(&mut kept);
    }
    Ok(kept)
}

fn keep_end(kept: &mut Vec<u8>) {
    kept.drain(..kept.len().saturating_sub(OUTPUT_BYTES_MAX));
}

/// A child leads its own group, so that its children go with it.
fn kill_group(child: &Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let group = group.and_then(Pid::from_raw);
    if let Some(group) = group {
        // Fails only when the whole group is gone already.
        let _gone = kill_process_group(group, Signal::KILL);
    }
}

fn shown(success: bool, stdout: &[u8], stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(if success { stdout } else { stderr });
    let text = text.trim();
    let skip = match success {
        true => 0,
        false => text.chars().count().saturating_sub(SHOWN),
    };
    text.chars().skip(skip).take(SHOWN).collect()
}

/// Does a vec-check reply say that the files are in order?
pub(crate) fn check_ok(stdout: &[u8]) -> bool {
    let value: Option<Value> = serde_json::from_slice(stdout).ok();
    value.is_some_and(|value| value["status"] == "ok")
}

/// Score of a vec-score reply; `None` when it gives none.
pub(crate) fn score(stdout: &[u8]) -> Option<f64> {
    let value: Value = serde_json::from_slice(stdout).ok()?;
    (value["status"] == "scored").then(|| value["total"].as_f64())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn children_are_bounded_and_their_ends_told() {
        let here = Path::new("/");
        let long = Duration::from_secs(20);
        let done = run(&sh("echo out; echo err >&2"), here, long).await;
        assert_eq!((done.exit, done.shown.as_str()), (Some(0), "out"));
        let failed = run(&sh("echo out; echo err >&2; exit 3"), here, long).await;
        assert_eq!((failed.exit, failed.shown.as_str()), (Some(3), "err"));
        let slow = run(&sh("exec sleep 600"), here, Duration::from_millis(50)).await;
        assert_eq!(
            (slow.exit, slow.shown.as_str()),
            (None, "did not end in time")
        );
        let none = run(&["/nonexistent/x".to_owned()], here, long).await;
        assert!(none.shown.starts_with("cannot start"), "{}", none.shown);
        assert_eq!(run(&[], here, long).await.exit, None);
    }

    #[tokio::test]
    async fn a_flood_of_output_is_drained_and_a_bounded_part_kept() {
        let script = "head -c 200000000 /dev/zero | tr '\\0' x; \
            head -c 9000000 /dev/zero | tr '\\0' y >&2; echo last words >&2; exit 3";
        let ended = run(&sh(script), Path::new("/"), Duration::from_secs(60)).await;
        assert_eq!(ended.exit, Some(3));
        assert_eq!(ended.stdout.len(), OUTPUT_BYTES_MAX);
        assert!(ended.stdout.iter().all(|byte| *byte == b'x'));
        assert!(ended.shown.ends_with("last words"), "{}", ended.shown);
    }

    #[tokio::test]
    async fn a_child_that_does_not_end_is_killed_with_its_children() {
        let dir = tempfile::tempdir().expect("dir");
        // The grandchild is known before the limit: the script waits for it for ever.
        let script = "sleep 600 & echo $! > pid; wait";
        let slow = run(&sh(script), dir.path(), Duration::from_secs(1)).await;
        assert_eq!(slow.shown, "did not end in time");
        let pid = std::fs::read_to_string(dir.path().join("pid")).expect("pid");
        let stat = format!("/proc/{}/stat", pid.trim());
        // Gone, or dead and not reaped yet by whoever adopted it.
        for _ in 0..1_000 {
            match std::fs::read_to_string(&stat) {
                Ok(text) if !text.contains(") Z ") => tokio::task::yield_now().await,
                _ => return,
            }
        }
        panic!("the grandchild {pid} lives on");
    }

    #[test]
    fn replies_of_the_scorer() {
        let scored = br#"{"status": "scored", "total": 57.5, "remaining": 3}"#;
        assert_eq!(score(scored), Some(57.5));
        for none in [
            &b"{}"[..],
            b"",
            b"oops",
            br#"{"status": "scored", "total": "57"}"#,
            br#"{"status": "invalid_format", "code": "rows", "total": 1}"#,
            br#"{"status": "quota_exhausted", "remaining": 0}"#,
        ] {
            assert_eq!(score(none), None);
        }
        assert!(check_ok(br#"{"status": "ok", "remaining": 20}"#));
        assert!(!check_ok(br#"{"status": "invalid_format"}"#) && !check_ok(b""));
    }
}
