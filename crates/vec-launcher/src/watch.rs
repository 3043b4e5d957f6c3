//! Watching a run: stored events first, then live ones, across restarts of the controller, to the
//! end of the run. For a run that does not run: its archive.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::Status;
use vec_proto::Backoff;
use vec_proto::pb::controller::v1 as controller;
use vec_proto::pb::launcher::v1 as pb;
use vec_store::{RunLayout, StoredEvent};
use vec_types::RunId;

use crate::error::LauncherError;
use crate::launcher::{Launcher, Running, controller_error};
use crate::run_view;

/// Events on their way to one watcher.
pub(crate) const WATCH_QUEUE_LEN: usize = 64;

/// Longest wait for a group to end after its controller has said everything.
const END_TIMEOUT: Duration = Duration::from_secs(120);

/// What a watcher gets.
pub(crate) type Watcher = mpsc::Sender<Result<pb::WatchEvent, Status>>;

/// The watcher went away.
struct Gone;

/// Sends a run's events after `after` until the run is over.
///
/// # Errors
/// [`LauncherError`], also when the controller stays away.
pub(crate) async fn watch(
    launcher: Arc<Launcher>,
    run: RunId,
    after: u64,
    watcher: Watcher,
) -> Result<(), LauncherError> {
    let mut feed = Feed { after, watcher };
    let layout = launcher.find(&run, None)?;
    if let Some(mut running) = launcher.running(&run) {
        if feed.live(&launcher, &mut running).await?.is_err() {
            return Ok(());
        }
        // So that whoever watched finds a closed run.
        drop(tokio::time::timeout(END_TIMEOUT, running.ended()).await);
    }
    drop(feed.stored(&layout).await?);
    Ok(())
}

struct Feed {
    after: u64,
    watcher: Watcher,
}

impl Feed {
    // Follows the controller until it says that nothing more comes, or the group has ended.
    async fn live(
        &mut self,
        launcher: &Launcher,
        running: &mut Running,
    ) -> Result<Result<(), Gone>, LauncherError> {
        let run = running.layout.run().clone();
        let mut failed = 0;
        loop {
            let before = self.after;
            let status = match self.follow(launcher, running).await? {
                Ok(Ok(())) => return Ok(Ok(())),
                Ok(Err(gone)) => return Ok(Err(gone)),
                Err(status) => status,
            };
            failed = if self.after > before { 1 } else { failed + 1 };
            let Some(wait) = Backoff::RESTART.wait_after(failed) else {
                return Err(controller_error(&run, &status));
            };
            let ended = tokio::time::timeout(wait, running.ended()).await;
            if ended.is_ok() {
                return Ok(Ok(()));
            }
        }
    }

    async fn follow(
        &mut self,
        launcher: &Launcher,
        running: &Running,
    ) -> Result<Result<Result<(), Gone>, Status>, LauncherError> {
        let mut client = launcher.control(running)?;
        let request = controller::WatchRequest {
            after_seq: self.after,
        };
        let mut stream = match client.watch(request).await {
            Ok(reply) => reply.into_inner(),
            Err(status) => return Ok(Err(status)),
        };
        loop {
            match stream.message().await {
                Ok(Some(event)) => {
                    let controller::WatchEvent {
                        seq,
                        at_ms,
                        hash,
                        event_json,
                    } = event;
                    let event = pb::WatchEvent {
                        seq,
                        at_ms,
                        hash,
                        event_json,
                    };
                    if let Err(gone) = self.send(event).await {
                        return Ok(Ok(Err(gone)));
                    }
                }
                Ok(None) => return Ok(Ok(Ok(()))),
                Err(status) => return Ok(Err(status)),
            }
        }
    }

    async fn stored(&mut self, layout: &RunLayout) -> Result<Result<(), Gone>, LauncherError> {
        let events = run_view::events(layout, self.after).await;
        for event in events.map_err(LauncherError::View)? {
            let StoredEvent {
                seq,
                batch: _,
                at,
                kind: _,
                node: _,
                json,
                prev: _,
                hash,
            } = event;
            let event = pb::WatchEvent {
                seq,
                at_ms: at.0,
                hash: hash.to_string(),
                event_json: json,
            };
            if let Err(gone) = self.send(event).await {
                return Ok(Err(gone));
            }
        }
        Ok(Ok(()))
    }

    async fn send(&mut self, event: pb::WatchEvent) -> Result<(), Gone> {
        self.after = self.after.max(event.seq);
        self.watcher.send(Ok(event)).await.map_err(|_| Gone)
    }
}
