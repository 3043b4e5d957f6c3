//! What agents can call: a query on half A (charged) and a format check (free). The socket is the
//! identity; nothing that a client sends chooses whose quota is used or which rows are scored.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};
use vec_daemon::chain;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::client_server::Client;
use vec_proto::{Weights, report_to_pb};
use vec_types::Digest;

use crate::owner::{Answered, ClientVerb, OwnerHandle};
use crate::problem::FormatProblem;
use crate::scoring::{Predictions, RowChoice, rounded};
use crate::status::{owner_status, score_error};
use crate::upload::{Assembler, Received, receive};
use crate::work::Work;

/// Uploads of one client at a time; others wait.
pub const CLIENT_UPLOADS_MAX: usize = 4;

/// Uploads of all clients at a time; bounds memory.
pub const UPLOADS_MAX: usize = 8;

/// Longest wait for a place among the uploads.
const PLACE_WAIT: Duration = Duration::from_secs(60);

/// What all client services share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) owner: OwnerHandle,
    pub(crate) work: Arc<Work>,
    pub(crate) tasks: TaskTracker,
    pub(crate) uploads: Arc<Semaphore>,
}

/// The service on one client's socket.
#[derive(Debug)]
pub(crate) struct ClientService {
    shared: Shared,
    client: String,
    own_uploads: Arc<Semaphore>,
}

/// Places of one upload, held while its bytes are in memory.
struct Places(#[expect(dead_code, reason = "held, not read")] [OwnedSemaphorePermit; 2]);

impl ClientService {
    pub(crate) fn new(shared: Shared, client: String) -> Self {
        let own_uploads = Arc::new(Semaphore::new(CLIENT_UPLOADS_MAX));
        Self {
            shared,
            client,
            own_uploads,
        }
    }

    async fn places(&self) -> Result<Places, Status> {
        // The client's own place first: a client that waits does not hold one of all.
        let wait = async {
            let own = Arc::clone(&self.own_uploads).acquire_owned().await?;
            let shared = Arc::clone(&self.shared.uploads).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(Places([own, shared]))
        };
        match timeout(PLACE_WAIT, wait).await {
            Ok(Ok(places)) => Ok(places),
            Ok(Err(_)) => Err(Status::unavailable("the scorer is stopping")),
            Err(_) => Err(Status::unavailable("the scorer is busy; try again")),
        }
    }

    async fn upload(&self, request: Request<Streaming<pb::Upload>>) -> Result<Received, Status> {
        let work = &self.shared.work;
        let assembler = Assembler::new(work.scoring.views(), work.parser.bytes_max);
        receive(&mut request.into_inner(), assembler).await
    }

    /// Reads and checks an upload; the inner error is the file's fault.
    async fn checked(
        &self,
        received: Received,
    ) -> Result<Result<Predictions, FormatProblem>, Status> {
        let files = match received.files {
            Ok(files) => files,
            Err(problem) => return Ok(Err(problem)),
        };
        self.shared.work.read(files).await.map_err(|failure| {
            tracing::error!(client = %self.client, error = %chain(&failure), "format check failed");
            score_error()
        })
    }

    async fn note(&self, refused: bool) -> Result<u32, Status> {
        let note = |answer| ClientVerb::NoteCheck(refused, answer);
        let noted = self.shared.owner.client(&self.client, note);
        noted.await.map_err(owner_status)
    }
}

#[tonic::async_trait]
impl Client for ClientService {
    async fn query(
        &self,
        request: Request<Streaming<pb::Upload>>,
    ) -> Result<Response<pb::QueryReply>, Status> {
        let places = self.places().await?;
        let received = self.upload(request).await?;
        let input = received.input;
        let predictions = match self.checked(received).await? {
            Ok(predictions) => predictions,
            Err(problem) => {
                let remaining = self.note(true).await?;
                let result = Some(pb::query_reply::Result::InvalidFormat(problem_to_pb(
                    problem,
                )));
                return Ok(Response::new(pb::QueryReply { result, remaining }));
            }
        };
        let (shared, client) = (self.shared.clone(), self.client.clone());
        // From admission on the query runs to its end, whether or not the asker waits.
        let query = self.shared.tasks.spawn(async move {
            let _places = places;
            admitted(shared, client, input, predictions).await
        });
        query.await.map_err(|_| score_error())?.map(Response::new)
    }

    async fn check(
        &self,
        request: Request<Streaming<pb::Upload>>,
    ) -> Result<Response<pb::CheckReply>, Status> {
        let _places = self.places().await?;
        let received = self.upload(request).await?;
        let problem = self.checked(received).await?.err().map(problem_to_pb);
        let remaining = self.note(false).await?;
        Ok(Response::new(pb::CheckReply {
            ok: problem.is_none(),
            problem,
            remaining,
        }))
    }
}

async fn admitted(
    shared: Shared,
    client: String,
    input: Digest,
    predictions: Predictions,
) -> Result<pb::QueryReply, Status> {
    let Shared { owner, work, .. } = shared;
    let admit = |answer| ClientVerb::Admit(input, answer);
    let query = owner.client(&client, admit).await.map_err(owner_status)?;
    let began = Instant::now();
    match work.score(RowChoice::HalfA, predictions).await {
        Ok(report) => {
            let report = rounded(report);
            let message = report_to_pb(report.clone(), &Weights::new());
            let score_bytes = message.encoded_len() as u64;
            let elapsed_ms = elapsed_ms(began);
            let answered = Answered {
                query,
                report,
                score_bytes,
                elapsed_ms,
            };
            let finish = |answer| ClientVerb::Finish(answered, answer);
            let remaining = owner.client(&client, finish).await.map_err(owner_status)?;
            let result = Some(pb::query_reply::Result::Report(message));
            Ok(pb::QueryReply { result, remaining })
        }
        Err(failure) => {
            tracing::error!(%client, query, error = %chain(&failure), "query failed; refunding it");
            let refund = |answer| ClientVerb::Refund(query, answer);
            owner.client(&client, refund).await.map_err(owner_status)?;
            Err(score_error())
        }
    }
}

pub(crate) fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn problem_to_pb(problem: FormatProblem) -> pb::InvalidFormat {
    let FormatProblem { code, detail } = problem;
    pb::InvalidFormat {
        code: code.as_str().to_owned(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;
    use tonic::Code;
    use vec_clock::SystemClock;

    use super::*;
    use crate::journal::Journal;
    use crate::owner;
    use crate::parser::Parser;
    use crate::scoring::tests::prepared;
    use crate::state::State;

    fn service() -> ClientService {
        let null = std::fs::File::open("/dev/null").expect("/dev/null");
        let clock = Arc::new(SystemClock);
        let failed = CancellationToken::new();
        let started = owner::start(State::default(), Journal::of(null), clock, failed);
        let parser = Parser::of_this_program(100).expect("parser");
        let shared = Shared {
            owner: started.expect("owner").0,
            work: Arc::new(Work::new(prepared(), parser, 1)),
            tasks: TaskTracker::new(),
            uploads: Arc::new(Semaphore::new(UPLOADS_MAX)),
        };
        ClientService::new(shared, "1-0".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_gets_some_places_all_together_get_more_and_waiting_ends() {
        let one = service();
        let mut held = Vec::new();
        for _ in 0..CLIENT_UPLOADS_MAX {
            held.push(one.places().await.expect("own place"));
        }
        let busy = one.places().await.err().expect("no own place left");
        assert_eq!(busy.code(), Code::Unavailable);
        let mut others = 0;
        for _ in 0..UPLOADS_MAX {
            let other = ClientService::new(one.shared.clone(), "2-0".to_owned());
            match other.places().await {
                Ok(places) => held.push(places),
                Err(status) => {
                    assert_eq!(status.code(), Code::Unavailable);
                    others += 1;
                }
            }
        }
        assert_eq!(held.len(), UPLOADS_MAX);
        assert_eq!(others, CLIENT_UPLOADS_MAX);
        held.pop();
        assert!(one.places().await.is_err(), "its own places are still held");
        held.clear();
        assert!(one.places().await.is_ok());
    }
}
