//! The one call: connect, upload, wait, and say how it ended.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use tonic::{Code, Request, Status};
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::client_client::ClientClient;
use vec_proto::{connect, pieces};

use crate::args::{Args, Verb};
use crate::files;

/// Where the scorer listens inside a sandbox.
const SOCKET: &str = "/run/vec/scorer.s";

/// Overrides [`SOCKET`].
const SOCKET_VARIABLE: &str = "VEC_SCORER_SOCKET";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for an answer: the scorer's own longest queue and parsing, with room.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(150);

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// Half A's scores.
    Scored { report: pb::Report, remaining: u32 },
    /// The file can be scored.
    Valid { remaining: u32 },
    /// The file cannot be scored.
    Invalid {
        problem: pb::InvalidFormat,
        remaining: u32,
    },
    /// No queries left.
    Exhausted(String),
    /// Anything else, in one line.
    Failed(String),
}

/// Does what `args` ask for.
pub(crate) async fn call(args: &Args) -> Answer {
    let files = match files::load(&args.files) {
        Ok(files) => files,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    let uploads: Vec<pb::Upload> = files
        .iter()
        .flat_map(|(view, bytes)| pieces(view, bytes))
        .collect();
    let socket = std::env::var_os(SOCKET_VARIABLE).unwrap_or_else(|| SOCKET.into());
    let channel = match connect(&PathBuf::from(socket), CONNECT_TIMEOUT).await {
        Ok(channel) => channel,
        Err(error) => return Answer::Failed(format!("the scorer does not answer: {error}")),
    };
    let mut client = ClientClient::new(channel);
    let request = Request::new(tokio_stream::iter(uploads));
    let answer = async {
        match args.verb {
            Verb::Score => client
                .query(request)
                .await
                .map(|reply| scored(reply.into_inner())),
            Verb::Check => client
                .check(request)
                .await
                .map(|reply| checked(reply.into_inner())),
        }
    };
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(status)) => refused(&status),
        Err(_) => Answer::Failed(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())),
    }
}

fn scored(reply: pb::QueryReply) -> Answer {
    let pb::QueryReply { result, remaining } = reply;
    match result {
        Some(pb::query_reply::Result::Report(report)) => Answer::Scored { report, remaining },
        Some(pb::query_reply::Result::InvalidFormat(problem)) => {
            Answer::Invalid { problem, remaining }
        }
        None => Answer::Failed("the scorer sent an empty answer".to_owned()),
    }
}

fn checked(reply: pb::CheckReply) -> Answer {
    match reply {
        pb::CheckReply {
            ok: true,
            problem: None,
            remaining,
        } => Answer::Valid { remaining },
        pb::CheckReply {
            problem: Some(problem),
            remaining,
            ..
        } => Answer::Invalid { problem, remaining },
        pb::CheckReply {
            ok: false,
            problem: None,
            ..
        } => Answer::Failed("the scorer sent an empty answer".to_owned()),
    }
}

fn refused(status: &Status) -> Answer {
    match status.code() {
        Code::ResourceExhausted => Answer::Exhausted(status.message().to_owned()),
        code => Answer::Failed(format!("{}: {}", code.description(), status.message())),
    }
}
