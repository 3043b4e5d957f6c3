//! Composition: truth and journal in, two services out. `open` does everything that can be wrong
//! with spec, truth and journal before the daemon says that it listens.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server as GrpcServer;
use vec_clock::Clock;
use vec_daemon::spec::{ScorerSpec, ScoringSpec};
use vec_daemon::{InheritError, PeerCheck, Peers, chain};
use vec_proto::pb::scorer::v1::scorer_server::ScorerServer;
use vec_types::{Digest, TruthHalf};

use crate::client_service::{Shared, UPLOADS_MAX};
use crate::journal::{Journal, JournalError};
use crate::listeners::{Listeners, MESSAGE_BYTES_MAX};
use crate::owner;
use crate::parser::Parser;
use crate::record::Record;
use crate::scoring::{PrepareError, Scoring};
use crate::service::ScorerService;
use crate::truth::{TruthError, TruthRows, half_name, parse_truth, read_half};
use crate::work::Work;

/// Journal version.
const JOURNAL_VERSION: u32 = 1;

/// Longest wait for calls in flight when the daemon stops; a parser process lives at most as long.
const STOP_GRACE: Duration = Duration::from_secs(12);

/// Why the scorer cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The truth is not there, not the locked one, or malformed.
    #[error("load the truth")]
    Truth(#[source] TruthError),
    /// Board and truth do not rank predictions.
    #[error("prepare the board's truth")]
    Prepare(#[source] PrepareError),
    /// The journal is no use.
    #[error("use the journal")]
    Journal(#[source] JournalError),
    /// A thread or a listener cannot be started.
    #[error("start {what}")]
    Start {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The launcher is gone.
    #[error("tell the launcher that the scorer listens")]
    Ready(#[source] InheritError),
    /// The gRPC server failed.
    #[error("serve the scorer's socket")]
    Serve(#[source] tonic::transport::Error),
    /// The owner thread panicked or did not end in time.
    #[error("the owner of the journal did not end in order")]
    Owner,
}

/// Constructor arguments that tests replace.
#[derive(Debug)]
pub struct Deps {
    /// Time of journal lines.
    pub clock: Arc<dyn Clock>,
    /// Parser processes.
    pub parser: Parser,
}

/// An opened scorer.
#[derive(Debug)]
pub struct Server {
    work: Work,
    peers: Peers,
    clients_dir: PathBuf,
    clients: Vec<(String, PathBuf)>,
    owner: owner::OwnerHandle,
    thread: JoinHandle<Result<(), JournalError>>,
    failed: CancellationToken,
}

/// Reads both halves, checks them against the digests of `spec` and parses them.
///
/// # Errors
/// [`TruthError`].
pub fn load_truth(directory: &impl AsFd, spec: &ScoringSpec) -> Result<TruthRows, TruthError> {
    let load = |half| {
        let name = half_name(half);
        let locked = *spec
            .truth_sha256
            .get(name)
            .ok_or(TruthError::NoDigest { half: name })?;
        let bytes = read_half(directory, half)?;
        let found = Digest::of(&bytes);
        if found != locked {
            let file = format!("{name}/truth.csv");
            return Err(TruthError::Digest {
                file,
                found,
                locked,
            });
        }
        Ok(bytes)
    };
    parse_truth(&load(TruthHalf::A)?, &load(TruthHalf::B)?)
}

impl Server {
    /// Loads truth, reads the journal back and starts its owner.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn open(
        spec: ScorerSpec,
        truth: &impl AsFd,
        journal: File,
        deps: Deps,
    ) -> Result<Self, ServerError> {
        let rows = load_truth(truth, &spec.scoring).map_err(ServerError::Truth)?;
        let scoring = Scoring::prepare(&spec.scoring, &rows).map_err(ServerError::Prepare)?;
        drop(rows);
        let (mut journal, mut state) = Journal::open(journal).map_err(ServerError::Journal)?;
        let start = Record::Start {
            at: deps.clock.now(),
            version: JOURNAL_VERSION,
            run: spec.common.run,
            board: spec.scoring.board,
            start: spec.common.start,
            fingerprint: scoring.fingerprint(),
        };
        Journal::line(&start)
            .and_then(|line| journal.append(&line))
            .map_err(ServerError::Journal)?;
        state
            .apply(&start)
            .map_err(|source| ServerError::Journal(JournalError::Corrupt { line: 0, source }))?;
        let clients = state
            .open_clients()
            .map(|(name, client)| (name.clone(), client.dir.clone()))
            .collect();
        let failed = CancellationToken::new();
        let (owner, thread) =
            owner::start(state, journal, deps.clock, failed.clone()).map_err(|source| {
                ServerError::Start {
                    what: "the owner thread",
                    source,
                }
            })?;
        Ok(Self {
            work: Work::new(scoring, deps.parser, spec.workers),
            peers: Peers::Uids(spec.common.peer_uids),
            clients_dir: spec.clients_dir,
            clients,
            owner,
            thread,
            failed,
        })
    }

    /// Opens the sockets of known clients again, calls `ready`, serves until `stop`, then ends calls
    /// in flight within a bounded time.
    ///
    /// # Errors
    /// [`ServerError`]; also when the journal failed, after which nothing was answered any more.
    pub async fn serve(
        self,
        listener: UnixListener,
        ready: impl FnOnce() -> Result<(), InheritError>,
        stop: CancellationToken,
    ) -> Result<(), ServerError> {
        let Self {
            work,
            peers,
            clients_dir,
            clients,
            owner,
            thread,
            failed,
        } = self;
        let incoming = vec_daemon::incoming(listener).map_err(|source| ServerError::Start {
            what: "the scorer's listener",
            source,
        })?;
        let tasks = TaskTracker::new();
        let stopping = owner.clone();
        let shared = Shared {
            owner,
            work: Arc::new(work),
            tasks: tasks.clone(),
            uploads: Arc::new(Semaphore::new(UPLOADS_MAX)),
        };
        let listeners = Arc::new(Listeners::new(clients_dir, shared.clone()));
        for (client, dir) in clients {
            // The directory may be gone with its session; closing the client still works.
            if let Err(error) = listeners.open(&client, &dir) {
                tracing::warn!(%client, error = %chain(&error), "cannot open a client's socket again");
            }
        }
        ready().map_err(ServerError::Ready)?;
        let service = ScorerService {
            shared,
            listeners: Arc::clone(&listeners),
        };
        let service = ScorerServer::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let ended = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = failed.cancelled() => {}
            }
        };
        let (ending, end) = tokio::sync::oneshot::channel::<()>();
        let serving = GrpcServer::builder()
            .add_service(InterceptedService::new(service, PeerCheck::new(peers)))
            .serve_with_incoming_shutdown(incoming, async { drop(end.await) });
        let mut serving = std::pin::pin!(serving);
        let mut served = tokio::select! {
            served = &mut serving => Some(served),
            () = ended => None,
        };
        listeners.close_all();
        tasks.close();
        drop(ending);
        let drained = timeout(STOP_GRACE, async {
            if served.is_none() {
                served = Some(serving.await);
            }
            tasks.wait().await;
        });
        if drained.await.is_err() {
            tracing::warn!("calls in flight did not end in time; they are cut");
        }
        // Connections that were cut may still hold handles; the owner does not wait for them.
        stopping.stop().await;
        join(thread).await?;
        served.unwrap_or(Ok(())).map_err(ServerError::Serve)
    }
}

async fn join(thread: JoinHandle<Result<(), JournalError>>) -> Result<(), ServerError> {
    let joined = tokio::task::spawn_blocking(move || thread.join());
    match timeout(STOP_GRACE, joined).await {
        Ok(Ok(Ok(result))) => result.map_err(ServerError::Journal),
        _ => Err(ServerError::Owner),
    }
}
