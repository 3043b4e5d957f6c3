//! What the controller can call: half B and the lives of clients. Convert, ask, convert.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt;
use tonic::{Request, Response, Status, Streaming};
use vec_daemon::chain;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::scorer_server::Scorer;
use vec_proto::{ProtocolError, RowSet, ScoreCall, Weights, report_to_pb};
use vec_types::Digest;

use crate::client_service::{Shared, elapsed_ms, problem_to_pb};
use crate::listeners::{ListenError, Listeners};
use crate::owner::{Begin, ClientVerb, Command};
use crate::record::{Outcome, Record};
use crate::scoring::RowChoice;
use crate::status::{owner_status, score_error};
use crate::upload::{Assembler, Received, UPLOAD_TIMEOUT, next_item, receive};
use crate::work::WorkFailure;

/// Longest wait of a settlement (SCO-08).
pub const SETTLE_WAIT_MAX: Duration = Duration::from_secs(90);

/// Longest client name.
const CLIENT_LEN_MAX: usize = 32;

/// Longest request id.
const REQUEST_LEN_MAX: usize = 128;

/// The daemon's service.
#[derive(Debug)]
pub(crate) struct ScorerService {
    pub(crate) shared: Shared,
    pub(crate) listeners: Arc<Listeners>,
}

#[tonic::async_trait]
impl Scorer for ScorerService {
    async fn score(
        &self,
        request: Request<Streaming<pb::ScoreRequest>>,
    ) -> Result<Response<pb::ScoreReply>, Status> {
        use pb::score_request::Item;
        let mut stream = request.into_inner();
        let end = Instant::now() + UPLOAD_TIMEOUT;
        let first = next_item(&mut stream, end)
            .await?
            .and_then(|message| message.item);
        let Some(Item::Header(header)) = first else {
            return Err(ProtocolError::Missing("header as first message").into());
        };
        let call = ScoreCall::try_from(header)?;
        if call.request_id.len() > REQUEST_LEN_MAX {
            return Err(Status::invalid_argument("request_id is too long"));
        }
        let rows = row_choice(&call);
        let work = &self.shared.work;
        if !work.scoring.choices().any(|known| known == rows) {
            return Err(Status::invalid_argument(format!(
                "the lock knows no rows {rows}"
            )));
        }
        let assembler = Assembler::new(work.scoring.views(), work.parser.bytes_max);
        let mut uploads = stream.map(|message| match message?.item {
            Some(Item::Upload(upload)) => Ok(upload),
            Some(Item::Header(_)) | None => Err(Status::invalid_argument("expected an upload")),
        });
        let received = receive(&mut uploads, assembler).await?;
        // Runs to its end and is stored, whether or not the controller still waits.
        let scoring = self
            .shared
            .tasks
            .spawn(score(self.shared.clone(), call, rows, received));
        let outcome = scoring.await.map_err(|_| score_error())??;
        Ok(Response::new(outcome_to_pb(outcome)))
    }

    async fn register_client(
        &self,
        request: Request<pb::RegisterClientRequest>,
    ) -> Result<Response<pb::RegisterClientReply>, Status> {
        let pb::RegisterClientRequest { client, dir, quota } = request.into_inner();
        check_name(&client)?;
        let dir = PathBuf::from(dir);
        self.listeners
            .check_dir(&dir)
            .map_err(|error| listen_status(&error))?;
        let place = dir.clone();
        let register = |answer| ClientVerb::Register(place, quota, answer);
        let registered = self.shared.owner.client(&client, register);
        registered.await.map_err(owner_status)?;
        self.listeners
            .open(&client, &dir)
            .map_err(|error| listen_status(&error))?;
        Ok(Response::new(pb::RegisterClientReply {}))
    }

    async fn close_client(
        &self,
        request: Request<pb::CloseClientRequest>,
    ) -> Result<Response<pb::CloseClientReply>, Status> {
        let pb::CloseClientRequest { client } = request.into_inner();
        let closed = self.shared.owner.client(&client, ClientVerb::Close);
        let in_flight = closed.await.map_err(owner_status)?;
        self.listeners.close(&client);
        Ok(Response::new(pb::CloseClientReply { in_flight }))
    }

    async fn settle_client(
        &self,
        request: Request<pb::SettleClientRequest>,
    ) -> Result<Response<pb::SettleClientReply>, Status> {
        let pb::SettleClientRequest { client, wait_ms } = request.into_inner();
        let settle = self.shared.owner.client(&client, ClientVerb::Settle);
        let reply = match timeout(settle_wait(wait_ms), settle).await {
            Ok(used) => pb::SettleClientReply {
                settled: true,
                used: used.map_err(owner_status)?,
            },
            Err(_) => pb::SettleClientReply {
                settled: false,
                used: 0,
            },
        };
        Ok(Response::new(reply))
    }

    async fn health(
        &self,
        _request: Request<pb::HealthRequest>,
    ) -> Result<Response<pb::HealthReply>, Status> {
        let scored = self.shared.owner.ask(Command::Scored);
        let scored = scored.await.map_err(owner_status)?;
        Ok(Response::new(pb::HealthReply {
            scoring_fingerprint: self.shared.work.scoring.fingerprint().to_string(),
            scored,
            rss_kib: resident_kib().unwrap_or(0),
        }))
    }
}

/// Even a settlement without wait needs the time of one synced journal line.
const SETTLE_WAIT_MIN: Duration = Duration::from_secs(1);

fn settle_wait(wait_ms: u32) -> Duration {
    Duration::from_millis(u64::from(wait_ms)).clamp(SETTLE_WAIT_MIN, SETTLE_WAIT_MAX)
}

const fn row_choice(call: &ScoreCall) -> RowChoice {
    match call.rows {
        RowSet::Search => RowChoice::Search(call.scoring_seed.0),
        RowSet::Guard => RowChoice::Guard(call.scoring_seed.0),
    }
}

async fn score(
    shared: Shared,
    call: ScoreCall,
    rows: RowChoice,
    received: Received,
) -> Result<Outcome, Status> {
    let ScoreCall {
        request_id,
        node,
        exec,
        scoring_seed: _,
        rows: _,
    } = call;
    let input = Digest::of(format!("{rows} {node} {exec} {}", received.input).as_bytes());
    let request = request_id.clone();
    let begin = |answer| Command::BeginScore(request, input, answer);
    match shared.owner.ask(begin).await.map_err(owner_status)? {
        Begin::Stored(outcome) => return Ok(outcome),
        Begin::Wait(first) => {
            let lost = |_| Status::unavailable("the first try of this request failed; try again");
            return first.await.map_err(lost);
        }
        Begin::Run => {}
    }
    let began = Instant::now();
    let outcome = match outcome(&shared, rows, received).await {
        Ok(outcome) => outcome,
        Err(failure) => {
            tracing::error!(request = %request_id, error = %chain(&failure), "scoring failed");
            shared.owner.abandon(request_id).await;
            return Err(score_error());
        }
    };
    let at = shared.owner.clock.now();
    let reply = Box::new(Record::Reply {
        at,
        request: request_id,
        input,
        node,
        exec,
        rows: rows.to_string(),
        outcome: outcome.clone(),
        elapsed_ms: elapsed_ms(began),
    });
    let finish = |answer| Command::FinishScore(reply, answer);
    shared.owner.ask(finish).await.map_err(owner_status)?;
    Ok(outcome)
}

async fn outcome(
    shared: &Shared,
    rows: RowChoice,
    received: Received,
) -> Result<Outcome, WorkFailure> {
    let files = match received.files {
        Ok(files) => files,
        Err(problem) => return Ok(Outcome::InvalidFormat { problem }),
    };
    match shared.work.read(files).await? {
        Ok(predictions) => {
            let report = shared.work.score(rows, predictions).await?;
            Ok(Outcome::Report { report })
        }
        Err(problem) => Ok(Outcome::InvalidFormat { problem }),
    }
}

fn outcome_to_pb(outcome: Outcome) -> pb::ScoreReply {
    use pb::score_reply::Result as Reply;
    let result = match outcome {
        Outcome::Report { report } => Reply::Report(report_to_pb(report, &Weights::new())),
        Outcome::InvalidFormat { problem } => Reply::InvalidFormat(problem_to_pb(problem)),
    };
    pb::ScoreReply {
        result: Some(result),
    }
}

// The name is journaled and logged.
fn check_name(client: &str) -> Result<(), Status> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if client.is_empty() || client.len() > CLIENT_LEN_MAX || !client.bytes().all(plain) {
        return Err(Status::invalid_argument(format!(
            "client name must be 1 to {CLIENT_LEN_MAX} of a-z A-Z 0-9 _ -"
        )));
    }
    Ok(())
}

fn listen_status(error: &ListenError) -> Status {
    match error {
        ListenError::Directory { .. } | ListenError::Path(_) => {
            Status::invalid_argument(error.to_string())
        }
        ListenError::Bind { .. } => {
            tracing::error!(error = %chain(error), "cannot bind a client socket");
            Status::internal(error.to_string())
        }
    }
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let fields: BTreeMap<&str, &str> = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .collect();
    fields
        .get("VmRSS")?
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settlements_wait_within_bounds() {
        assert_eq!(settle_wait(0), SETTLE_WAIT_MIN);
        assert_eq!(settle_wait(5_000), Duration::from_secs(5));
        assert_eq!(settle_wait(90_001), SETTLE_WAIT_MAX);
        assert_eq!(settle_wait(u32::MAX), SETTLE_WAIT_MAX);
    }

    #[test]
    fn this_process_has_a_size() {
        assert!(resident_kib().is_some_and(|kib| kib > 100));
    }
}
