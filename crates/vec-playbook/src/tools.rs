//! Child processes of a session: the candidate program, vec-check, vec-score. Every wait is
//! bounded; a child that does not end is killed and counts as failed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

/// Characters of a tool's output that an event shows.
const SHOWN: usize = 400;

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code; absent when it was killed or could not be started.
    pub(crate) exit: Option<i32>,
    /// Its stdout.
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
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!("cannot start {program}: {error}")),
    };
    match tokio::time::timeout(limit, child.wait_with_output()).await {
        Err(_) => failed("did not end in time".to_owned()),
        Ok(Err(error)) => failed(format!("cannot wait for {program}: {error}")),
        Ok(Ok(output)) => {
            let text = match output.status.success() {
                true => String::from_utf8_lossy(&output.stdout),
                false => String::from_utf8_lossy(&output.stderr),
            };
            let text = text.trim();
            let skip = match output.status.success() {
                true => 0,
                false => text.chars().count().saturating_sub(SHOWN),
            };
            Ended {
                exit: output.status.code(),
                shown: text.chars().skip(skip).take(SHOWN).collect(),
                stdout: output.stdout,
            }
        }
    }
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
