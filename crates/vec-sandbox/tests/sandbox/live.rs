//! Payloads that live while a test acts, and a witness of the death of their last process.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use vec_sandbox::{Line, RunControl, SandboxError, SandboxPlan, SandboxRun};

use crate::support::{LONG, Place};

/// A word for the command line that no other process has.
pub(crate) fn marker(name: &str) -> String {
    format!("vec-{name}-{}", std::process::id())
}

/// Starts `plan` and waits for its first line.
pub(crate) async fn started(
    place: &Place,
    plan: &SandboxPlan,
    control: &RunControl,
) -> (
    tokio::task::JoinHandle<Result<SandboxRun, SandboxError>>,
    mpsc::Receiver<Line>,
) {
    let (lines_tx, mut lines_rx) = mpsc::channel(16);
    let (runner, plan, control) = (place.runner.clone(), plan.clone(), control.clone());
    let task = tokio::spawn(async move { runner.run_streaming(&plan, control, lines_tx).await });
    let line = tokio::time::timeout(LONG, lines_rx.recv()).await.unwrap();
    assert_eq!(line.expect("the payload ended early").bytes, b"ready");
    (task, lines_rx)
}

/// Resolves when the last writer of the FIFO is dead.
pub(crate) async fn last_writer_gone(place: &Place) -> impl Future<Output = ()> + use<> {
    let path = place.path("out/alive");
    let mut fifo = tokio::net::unix::pipe::OpenOptions::new()
        .open_receiver(path)
        .unwrap();
    async move {
        let mut byte = [0; 1];
        let read = tokio::time::timeout(Duration::from_secs(1), fifo.read(&mut byte)).await;
        assert_eq!(
            read.expect("processes are left after one second").unwrap(),
            0
        );
    }
}
