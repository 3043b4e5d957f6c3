//! Composition: from a launch spec to a closed run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use vec_clock::{Clock, SystemClock};
use vec_daemon::spec::ControllerSpec;
use vec_daemon::{Inherited, PeerCheck, Peers, incoming};
use vec_exec::Weights;
use vec_proto::pb::controller::v1::control_server::ControlServer;
use vec_search::Event;
use vec_store::{RunLayout, Store, StoredEvent};
use vec_types::StopReason;

use crate::closing;
use crate::context::Context;
use crate::control::ControlService;
use crate::disk;
use crate::driver::Driver;
use crate::error::ControllerError;
use crate::fault::{Fault, FaultWatch, die};
use crate::feed::{Feed, FeedReader};
use crate::run::{Fact, Registering, Run};
use crate::spool::{remove, scratch};
use crate::supervised;

/// Stop requests that may wait; one is enough to stop.
const STOP_QUEUE_LEN: usize = 4;

/// Runs the controller to the end of its run.
///
/// # Errors
/// [`ControllerError`]; the launcher restarts the controller as resume.
pub async fn serve(
    mut inherited: Inherited,
    stop: CancellationToken,
) -> Result<(), ControllerError> {
    let spec: ControllerSpec = inherited.spec().map_err(ControllerError::Inherit)?;
    let listener = inherited
        .listener
        .try_clone()
        .map_err(ControllerError::Listen)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let fault = Fault::parse(spec.fault.as_deref())
        .map_err(|error| ControllerError::NotResumable(error.to_string()))?;
    let registering = Registering::default();
    let (store, stored) = open(&spec, &fault, clock.as_ref(), &registering).await?;
    let layout = store.layout().clone();
    remove_scratch(&layout)?;
    disk::keep_ballast(&layout);
    let weights = weights(&store, &fault);
    let context = Context::load(&spec, layout.clone(), Arc::clone(&clock), weights)?;
    let context = Arc::new(context);
    supervised::reap(&context).await;
    let (feed, reader) = Feed::new();
    let watch = FaultWatch::new(fault, &stored);
    let run = Run::fold(store, &stored, Arc::clone(&clock), watch, feed, registering)?;
    run.publish();
    let (stop_sender, stop_requests) = mpsc::channel(STOP_QUEUE_LEN);
    let serving = control(&spec, listener, reader, stop_sender, layout.archive())?;
    inherited.ready().map_err(ControllerError::Inherit)?;
    tracing::info!(run = %spec.common.run, start = spec.common.start, events = stored.len(), "controller is up");
    let result = whole_run(&spec, run, &stored, &context, stop, stop_requests).await;
    serving.end().await;
    result
}

async fn open(
    spec: &ControllerSpec,
    fault: &Fault,
    clock: &dyn Clock,
    registering: &Registering,
) -> Result<(Store, Vec<StoredEvent>), ControllerError> {
    let at = clock.now();
    let opened = if spec.reopen {
        Store::reopen(&spec.run_dir, at).await
    } else {
        Store::open(&spec.run_dir, at).await
    };
    let (mut store, recovery) = opened.map_err(ControllerError::Store)?;
    if !recovery.orphans.is_empty() || !recovery.missing.is_empty() || recovery.torn_tail.is_some()
    {
        tracing::warn!(?recovery, "the run directory was recovered");
    }
    if *fault != Fault::None {
        let (fault, run_dir) = (fault.clone(), spec.run_dir.clone());
        let registering = Arc::clone(registering);
        store.set_fault_hook(Arc::new(move |step| {
            if fault.is_at_store_step(step, registering.load(Ordering::SeqCst)) {
                die(&run_dir, &json!({ "step": step }));
            }
        }));
    }
    let stored = store.events().await.map_err(ControllerError::Store)?;
    Ok((store, stored))
}

/// The run's weights as the ledger knows them.
fn weights(store: &Store, fault: &Fault) -> Weights {
    let layout = store.layout().clone();
    let run_dir = layout.run_dir().to_owned();
    let weights = Weights::new(layout, store.registered_below("artifacts"));
    if *fault == Fault::None {
        return weights;
    }
    let fault = fault.clone();
    weights.with_hook(Arc::new(move |step| {
        if fault.is_at_training_step(step) {
            die(&run_dir, &json!({ "step": step }));
        }
    }))
}

async fn whole_run(
    spec: &ControllerSpec,
    run: Run,
    stored: &[StoredEvent],
    context: &Arc<Context>,
    stop: CancellationToken,
    stop_requests: mpsc::Receiver<String>,
) -> Result<(), ControllerError> {
    let Some(first) = first_fact(spec, &run, stored, context)? else {
        // A crash between the Stop event and the close: only the closing is left.
        return closing::close(run, context).await;
    };
    let (run, result) = Driver::new(run, Arc::clone(context))
        .drive(first, stop, stop_requests)
        .await;
    match result {
        Ok(()) => closing::close(run, context).await,
        Err(error) if error.is_no_space() => stop_on_full_disk(spec, run, context, &error).await,
        Err(error) => Err(error),
    }
}

fn first_fact(
    spec: &ControllerSpec,
    run: &Run,
    stored: &[StoredEvent],
    context: &Context,
) -> Result<Option<Fact>, ControllerError> {
    let fact = |event| {
        Ok(Some(Fact {
            event,
            files: Vec::new(),
        }))
    };
    if stored.is_empty() {
        let policy = Box::new(vec_config::policy(&context.lock));
        return fact(Event::RunStart {
            run: spec.common.run.clone(),
            policy,
        });
    }
    if run.state().outcome().is_some() {
        if !spec.reopen {
            return Ok(None);
        }
        run.state()
            .resumable(run.now())
            .map_err(|refused| ControllerError::NotResumable(refused.to_string()))?;
    }
    let resumes = stored
        .iter()
        .filter(|event| event.kind == "run_resume")
        .count();
    let start = u32::try_from(resumes + 1).unwrap_or(u32::MAX);
    fact(Event::RunResume { start })
}

// Everything written so far is valid; the ballast makes room to say why the run ends.
async fn stop_on_full_disk(
    spec: &ControllerSpec,
    run: Run,
    context: &Arc<Context>,
    error: &ControllerError,
) -> Result<(), ControllerError> {
    let detail = vec_daemon::chain(error).to_string();
    tracing::error!(detail, "no space left: stopping the run");
    let (_, store, feed) = run.into_parts();
    disk::drop_ballast(&context.layout);
    remove_scratch(&context.layout)?;
    // The failed write has broken this store; what counts is that its lock is free.
    if let Err(error) = store.release().await {
        tracing::info!(error = %vec_daemon::chain(&error), "the store was given up");
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (mut store, _) = Store::open(&spec.run_dir, clock.now())
        .await
        .map_err(ControllerError::Store)?;
    let stored = store.events().await.map_err(ControllerError::Store)?;
    let watch = FaultWatch::new(Fault::None, &stored);
    let mut run = Run::fold(store, &stored, clock, watch, feed, Registering::default())?;
    if run.state().outcome().is_none() {
        let event = Event::StopRequested {
            reason: StopReason::Infra,
            detail,
        };
        run.turn(Some(Fact {
            event,
            files: Vec::new(),
        }))
        .await?;
    }
    closing::close(run, context).await
}

// Scratch of an earlier start is of no use: every effect begins anew.
fn remove_scratch(layout: &RunLayout) -> Result<(), ControllerError> {
    let path = scratch(layout);
    remove(&path).map_err(|source| ControllerError::Read { path, source })
}

/// The control service in its task.
struct Serving {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    async fn end(self) {
        self.stop.cancel();
        // Watchers that do not read are dropped after this.
        let bound = std::time::Duration::from_secs(2);
        if tokio::time::timeout(bound, self.task).await.is_err() {
            tracing::debug!("a watcher did not leave in time");
        }
    }
}

fn control(
    spec: &ControllerSpec,
    listener: std::os::unix::net::UnixListener,
    feed: FeedReader,
    stop_requests: mpsc::Sender<String>,
    archive: PathBuf,
) -> Result<Serving, ControllerError> {
    let peers = PeerCheck::new(Peers::Uids(spec.common.peer_uids.clone()));
    let service = ControlService::new(feed, stop_requests, archive);
    let connections = incoming(listener).map_err(ControllerError::Listen)?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let served = Server::builder()
            .add_service(ControlServer::with_interceptor(service, peers))
            .serve_with_incoming_shutdown(connections, stopped.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(error = %vec_daemon::chain(&error), "control service failed");
        }
    });
    Ok(Serving { stop, task })
}
