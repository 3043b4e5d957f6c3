//! Running a tool with a time limit and keeping the end of what it says.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::error::EnvError;

/// What of the output is kept.
const TAIL_BYTES: usize = 2_000;
/// Output read at most; a tool that says more is ended.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// Pause between looks at a tool that has closed its output.
const POLL: Duration = Duration::from_millis(5);

/// Runs `command` for at most `limit` and returns its standard output.
pub(crate) fn run(
    mut command: Command,
    step: &'static str,
    limit: Duration,
) -> Result<String, EnvError> {
    let failed = |detail: String| EnvError::Command { step, detail };
    let program = command.get_program().to_string_lossy().into_owned();
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot start {program}: {error}")))?;
    let (sender, receiver) = mpsc::channel();
    let pipes: [(usize, Option<Box<dyn Read + Send>>); 2] = [
        (0, child.stdout.take().map(|pipe| Box::new(pipe) as _)),
        (1, child.stderr.take().map(|pipe| Box::new(pipe) as _)),
    ];
    for (index, pipe) in pipes {
        let sender = sender.clone();
        let Some(pipe) = pipe else { continue };
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // An error ends the output, as the end of the pipe does.
            let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            let _ = sender.send((index, bytes));
        });
    }
    let mut outputs = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok((index, bytes)) = receiver.recv_timeout(left) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!(
                "{program} did not end within {} s",
                limit.as_secs()
            )));
        };
        outputs[index] = bytes;
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => {
                // Both pipes are closed, so it is about to end. `sender` is alive: this only waits.
                let _ = receiver.recv_timeout(POLL);
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!(
                    "{program} did not end within {} s",
                    limit.as_secs()
                )));
            }
            Err(error) => return Err(failed(format!("wait for {program}: {error}"))),
        }
    };
    drop(sender);
    let [stdout, stderr] = outputs.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if status.success() {
        return Ok(stdout);
    }
    Err(failed(format!(
        "{program} ended with {status}: {}",
        tail(&stderr, &stdout)
    )))
}

fn tail(stderr: &str, stdout: &str) -> String {
    let text = if stderr.trim().is_empty() {
        stdout
    } else {
        stderr
    };
    let text = text.trim();
    let mut start = text.len().saturating_sub(TAIL_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn gives_output_or_says_why_not() {
        let limit = Duration::from_secs(20);
        assert_eq!(run(shell("echo yes"), "try", limit).expect("runs"), "yes\n");
        let error = run(shell("echo no >&2; exit 3"), "try", limit).expect_err("fails");
        assert!(error.to_string().ends_with("exit status: 3: no"), "{error}");
        let none = run(Command::new("/nonexistent"), "try", limit).expect_err("fails");
        assert!(
            none.to_string()
                .starts_with("try: cannot start /nonexistent"),
            "{none}"
        );
    }

    #[test]
    fn a_tool_that_does_not_end_is_ended() {
        let start = Instant::now();
        let error = run(shell("exec sleep 60"), "try", Duration::from_millis(100));
        assert!(
            error
                .expect_err("ended")
                .to_string()
                .contains("did not end")
        );
        let quiet = "exec >&- 2>&-; exec sleep 60";
        assert!(run(shell(quiet), "try", Duration::from_millis(100)).is_err());
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
