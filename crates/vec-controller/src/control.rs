//! The Control service: status, watch, stop. It reads the feed and asks for a stop; it decides
//! nothing.

use std::path::PathBuf;
use std::pin::Pin;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use vec_proto::pb::controller::v1 as pb;
use vec_proto::pb::controller::v1::control_server::Control;
use vec_store::{Archive, StoredEvent};

use crate::feed::FeedReader;

/// Events on their way to one watcher.
const WATCH_QUEUE_LEN: usize = 64;

/// The service.
#[derive(Debug)]
pub(crate) struct ControlService {
    feed: FeedReader,
    stop_requests: mpsc::Sender<String>,
    archive: PathBuf,
}

impl ControlService {
    /// Serves what `feed` shows; stop requests go to `stop_requests`.
    pub(crate) const fn new(
        feed: FeedReader,
        stop_requests: mpsc::Sender<String>,
        archive: PathBuf,
    ) -> Self {
        Self {
            feed,
            stop_requests,
            archive,
        }
    }
}

type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::WatchEvent, Status>> + Send>>;

#[tonic::async_trait]
impl Control for ControlService {
    async fn status(
        &self,
        _: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusReply>, Status> {
        let latest = self.feed.latest();
        let json = String::from_utf8(latest.status_json)
            .map_err(|_| Status::internal("status is not UTF-8"))?;
        Ok(Response::new(pb::StatusReply { json }))
    }

    type WatchStream = WatchStream;

    async fn watch(
        &self,
        request: Request<pb::WatchRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        let after = request.into_inner().after_seq;
        let (sender, receiver) = mpsc::channel(WATCH_QUEUE_LEN);
        let (feed, archive) = (self.feed.clone(), self.archive.clone());
        tokio::spawn(async move {
            if let Err(status) = feed_watcher(feed, archive, after, &sender).await {
                // The watcher may have gone; nobody else needs to know.
                drop(sender.send(Err(status)).await);
            }
        });
        let stream = ReceiverStream::new(receiver).map(|item| item.map(message));
        Ok(Response::new(Box::pin(stream)))
    }

    async fn stop(
        &self,
        request: Request<pb::StopRequest>,
    ) -> Result<Response<pb::StopReply>, Status> {
        let why = request.into_inner().why;
        let why = if why.is_empty() {
            "vecctl stop".to_owned()
        } else {
            why
        };
        match self.stop_requests.try_send(why) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(Response::new(pb::StopReply {})),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(Status::failed_precondition("the run has stopped already"))
            }
        }
    }
}

async fn feed_watcher(
    mut feed: FeedReader,
    archive: PathBuf,
    mut after: u64,
    sender: &mpsc::Sender<Result<StoredEvent, Status>>,
) -> Result<(), Status> {
    loop {
        let is_over = feed.latest().is_over;
        let events = match feed.after(after) {
            Some(events) => events,
            None => from_archive(&archive, after).await?,
        };
        for event in events {
            after = event.seq;
            if sender.send(Ok(event)).await.is_err() {
                return Ok(());
            }
        }
        if is_over || !feed.changed().await {
            return Ok(());
        }
    }
}

async fn from_archive(archive: &std::path::Path, after: u64) -> Result<Vec<StoredEvent>, Status> {
    let failed = |error: vec_store::StoreError| {
        Status::unavailable(format!("read the archive: {}", vec_daemon::chain(&error)))
    };
    let mut reader = Archive::open_read_only(archive).await.map_err(failed)?;
    reader.events_after(after).await.map_err(failed)
}

fn message(event: StoredEvent) -> pb::WatchEvent {
    pb::WatchEvent {
        seq: event.seq,
        at_ms: event.at.0,
        hash: event.hash.to_string(),
        event_json: event.json,
    }
}
