//! A small board with marker values in its truth, and a scorer on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::Channel;
use vec_clock::SystemClock;
use vec_daemon::spec::{Common, RulerSpec, ScorerSpec, ScoringSpec};
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::client_client::ClientClient;
use vec_proto::pb::scorer::v1::scorer_client::ScorerClient;
use vec_proto::{connect, pieces};
use vec_scorer::{Deps, Parser, Server, ServerError};
use vec_types::{Digest, ProgramSeed};

pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// Test ids 0..ROWS: even ids in half A, the rest of half B.
pub(crate) const ROWS: u64 = 120;

/// Starts every truth value; predictions never hold it.
pub(crate) const MARKER: &str = "7351";

pub(crate) const FLOOR: f64 = 735_150_000.0;

pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) spec: ScorerSpec,
    pub(crate) parser: Parser,
}

/// A running scorer; dropping it without [`Running::stop`] is as abrupt as a kill.
pub(crate) struct Running {
    pub(crate) scorer: ScorerClient<Channel>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ServerError>>,
}

pub(crate) fn truth_value(id: u64) -> String {
    format!("{MARKER}{:05}.{}", (id * 7919) % 100_000, id % 10)
}

pub(crate) fn prediction(value: impl Fn(u64) -> f64) -> Vec<u8> {
    let mut text = String::from("id,prediction\n");
    for id in 0..ROWS {
        writeln!(text, "{id},{}", value(id)).expect("write");
    }
    text.into_bytes()
}

pub(crate) fn perfect() -> Vec<u8> {
    prediction(|id| truth_value(id).parse().expect("number"))
}

pub(crate) fn own_parser(bytes_max: u64) -> Parser {
    Parser {
        program: env!("CARGO_BIN_EXE_vec-scorer").into(),
        args: vec!["parse".into()],
        bytes_max,
        timeout: vec_scorer::PARSE_TIMEOUT,
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("vs")
            .tempdir_in("/tmp")
            .expect("dir");
        let root = dir.path();
        let (mut a, mut b) = ("id,target\n".to_owned(), "id,target,rows\n".to_owned());
        for id in 0..ROWS {
            let value = truth_value(id);
            match id % 4 {
                0 | 2 => writeln!(a, "{id},{value}"),
                1 => writeln!(b, "{id},{value},search"),
                _ => writeln!(b, "{id},{value},guard"),
            }
            .expect("write");
        }
        let mut truth_sha256 = BTreeMap::new();
        for (half, text) in [("A", &a), ("B", &b)] {
            fs::create_dir_all(root.join("truth").join(half)).expect("truth dir");
            fs::write(root.join("truth").join(half).join("truth.csv"), text).expect("truth");
            truth_sha256.insert(half.to_owned(), Digest::of(text.as_bytes()));
        }
        fs::create_dir(root.join("c")).expect("clients dir");
        let ruler = RulerSpec {
            view: "main".parse().expect("view"),
            weight: 1.0,
            metric: "rmse".to_owned(),
        };
        let spec = ScorerSpec {
            common: Common {
                version: 1,
                run: "20261130-101010-tiny-abcd".parse().expect("run"),
                start: 0,
                peer_uids: vec![nix::unistd::getuid().as_raw()],
            },
            scoring: ScoringSpec {
                board: "tiny".parse().expect("board"),
                rulers: BTreeMap::from([("main".parse().expect("ruler"), ruler)]),
                truth_fraction: 0.5,
                guard_seeds: (3..8).map(ProgramSeed).collect(),
                truth_sha256,
                floor_prediction: FLOOR,
            },
            prediction_bytes_max: 1 << 20,
            workers: 2,
            clients_dir: root.join("c"),
        };
        Self {
            parser: own_parser(spec.prediction_bytes_max),
            dir,
            spec,
        }
    }

    pub(crate) fn truth(&self) -> File {
        File::open(self.dir.path().join("truth")).expect("truth directory")
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.dir.path().join("scorer.jsonl")
    }

    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.journal_path()).expect("journal")
    }

    pub(crate) fn journal_kinds(&self, kind: &str) -> usize {
        self.journal()
            .matches(&format!("\"kind\":\"{kind}\""))
            .count()
    }

    pub(crate) fn open(&self) -> Result<Server, ServerError> {
        let mut options = OpenOptions::new();
        let journal = options
            .read(true)
            .append(true)
            .create(true)
            .open(self.journal_path());
        let deps = Deps {
            clock: Arc::new(SystemClock),
            parser: self.parser.clone(),
        };
        Server::open(
            self.spec.clone(),
            &self.truth(),
            journal.expect("journal"),
            deps,
        )
    }

    pub(crate) async fn run(&self) -> Running {
        let server = self.open().expect("opens");
        let path = self.dir.path().join("s");
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).expect("bind");
        let stop = CancellationToken::new();
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let ready = move || {
            ready.send(()).expect("the test waits");
            Ok(())
        };
        let task = tokio::spawn(server.serve(listener, ready, stop.clone()));
        is_ready.await.expect("ready");
        let channel = connect(&path, WAIT).await.expect("connect");
        Running {
            scorer: ScorerClient::new(channel),
            stop,
            task,
        }
    }

    /// Makes and registers a client; returns the directory of its socket.
    pub(crate) async fn client(&self, running: &Running, name: &str, quota: u32) -> PathBuf {
        let dir = self.dir.path().join("c").join(name);
        fs::create_dir_all(&dir).expect("client dir");
        running.register(name, &dir, quota).await.expect("register");
        dir
    }
}

impl Running {
    pub(crate) async fn register(
        &self,
        client: &str,
        dir: &Path,
        quota: u32,
    ) -> Result<(), Status> {
        let request = pb::RegisterClientRequest {
            client: client.to_owned(),
            dir: dir.to_str().expect("text").to_owned(),
            quota,
        };
        self.scorer.clone().register_client(request).await.map(drop)
    }

    pub(crate) async fn close(&self, client: &str) -> Result<u32, Status> {
        let request = pb::CloseClientRequest {
            client: client.to_owned(),
        };
        self.scorer
            .clone()
            .close_client(request)
            .await
            .map(|r| r.into_inner().in_flight)
    }

    pub(crate) async fn settle(&self, client: &str, wait_ms: u32) -> Result<Option<u32>, Status> {
        let request = pb::SettleClientRequest {
            client: client.to_owned(),
            wait_ms,
        };
        let reply = self
            .scorer
            .clone()
            .settle_client(request)
            .await?
            .into_inner();
        Ok(reply.settled.then_some(reply.used))
    }

    pub(crate) async fn score(
        &self,
        id: &str,
        (rows, seed): (pb::RowSet, u32),
        file: &[u8],
    ) -> Result<pb::score_reply::Result, Status> {
        use pb::score_request::Item;
        let header = pb::ScoreHeader {
            request_id: id.to_owned(),
            node: 3,
            exec: format!("seed{seed}"),
            scoring_seed: seed,
            rows: rows.into(),
        };
        let mut messages = vec![Item::Header(header)];
        messages.extend(
            pieces(&"main".parse().expect("view"), file)
                .into_iter()
                .map(Item::Upload),
        );
        let messages = messages
            .into_iter()
            .map(|item| pb::ScoreRequest { item: Some(item) });
        let stream = tokio_stream::iter(messages.collect::<Vec<_>>());
        let reply = self.scorer.clone().score(stream).await?.into_inner();
        Ok(reply.result.expect("result"))
    }

    pub(crate) async fn stop(self) -> Result<(), ServerError> {
        drop(self.scorer);
        self.stop.cancel();
        tokio::time::timeout(WAIT, self.task)
            .await
            .expect("stops in time")
            .expect("no panic")
    }

    /// Ends the server's task between two polls, without any goodbye.
    pub(crate) async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

pub(crate) async fn agent(dir: &Path) -> ClientClient<Channel> {
    ClientClient::new(connect(&dir.join("scorer.s"), WAIT).await.expect("connect"))
}

pub(crate) async fn query(
    client: &mut ClientClient<Channel>,
    file: &[u8],
) -> Result<pb::QueryReply, Status> {
    let uploads = pieces(&"main".parse().expect("view"), file);
    client
        .query(tokio_stream::iter(uploads))
        .await
        .map(tonic::Response::into_inner)
}

pub(crate) fn report(reply: pb::QueryReply) -> pb::Report {
    match reply.result {
        Some(pb::query_reply::Result::Report(report)) => report,
        other => panic!("no report: {other:?}"),
    }
}
