//! The gateway in process, between a client and upstreams that behave and misbehave.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use vec_clock::ManualClock;
use vec_daemon::spec::{Common, EgressSpec, UpstreamSpec};
use vec_egress::{Evidence, Gateway, serve};
use vec_types::{Digest, UnixMs};

const BODY_MAX: u64 = 10_000;
const GOOD: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

/// What an upstream does with one connection.
#[derive(Clone)]
enum Act {
    /// Sends this and closes.
    Say(Vec<u8>),
    /// Sends this, then nothing more, line open.
    Hang(Vec<u8>),
    /// Sends this again and again, never ending.
    Drip(Vec<u8>),
}

fn http(status: u16, body: &str) -> Act {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Act::Say([head.as_bytes(), body.as_bytes()].concat())
}

async fn upstream(listener: UnixListener, act: Act) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let act = act.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            let _ = stream.read(&mut buffer).await;
            match act {
                Act::Say(bytes) => drop(stream.write_all(&bytes).await),
                Act::Hang(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    std::future::pending::<()>().await;
                }
                Act::Drip(bytes) => while stream.write_all(&bytes).await.is_ok() {},
            }
        });
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<()>,
}

struct Setup {
    act: Act,
    requests_max: u64,
    total_ms: u64,
    uid: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            act: http(200, GOOD),
            requests_max: 100,
            total_ms: 20_000,
            uid: own_uid(),
        }
    }
}

fn own_uid() -> u32 {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("proc"))
}

fn spec(socket: PathBuf, setup: &Setup) -> EgressSpec {
    EgressSpec {
        common: Common {
            version: 1,
            run: "20261130-101010-diabetes-abcd".parse().expect("id"),
            start: 0,
            peer_uids: vec![setup.uid],
        },
        models: [("scripted".to_owned(), UpstreamSpec::Playbook { socket })].into(),
        requests_max: setup.requests_max,
        body_bytes_max: BODY_MAX,
        total_timeout_ms: setup.total_ms,
        idle_timeout_ms: 150,
    }
}

fn log_file(path: &Path) -> File {
    File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .expect("log")
}

impl Fixture {
    fn start(setup: &Setup) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let model = folder.path().join("model.s");
        let listener = UnixListener::bind(&model).expect("bind");
        tokio::spawn(upstream(listener, setup.act.clone()));
        Self::serve(folder, setup)
    }

    fn serve(folder: tempfile::TempDir, setup: &Setup) -> Self {
        let socket = folder.path().join("http.s");
        let _ = std::fs::remove_file(&socket);
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bind");
        let (evidence, calls) =
            Evidence::open(log_file(&folder.path().join("log"))).expect("log opens");
        let spec = spec(folder.path().join("model.s"), setup);
        let clock = Arc::new(ManualClock::new(UnixMs(1_000)));
        let gateway = Arc::new(Gateway::new(spec, evidence, calls, clock));
        let stop = CancellationToken::new();
        let token = stop.clone();
        let server = tokio::spawn(async move {
            serve(gateway, listener, token).await.expect("serves");
        });
        Self {
            folder,
            stop,
            server,
        }
    }

    /// Sends raw bytes on one connection and reads one reply to its end.
    async fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = UnixStream::connect(self.folder.path().join("http.s"))
            .await
            .expect("connect");
        let _ = stream.write_all(request).await;
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        let text = String::from_utf8_lossy(&reply).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or(0), body.to_owned())
    }

    async fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-vec-run: r\r\nx-vec-node: 7\r\nx-vec-role: analyst\r\nx-vec-attempt: 0\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, body) = self.raw(request.as_bytes()).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    async fn chat(&self) -> (u16, Value) {
        self.post("/v1/chat/completions", &chat("scripted")).await
    }

    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).expect("log");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON line"))
            .collect()
    }
}

fn chat(model: &str) -> String {
    json!({"model": model, "messages": [{"role": "user", "content": "hello"}]}).to_string()
}

#[tokio::test]
async fn a_good_call_goes_through_and_leaves_two_lines() {
    let fixture = Fixture::start(&Setup::default());
    let (status, reply) = fixture.chat().await;
    assert_eq!(
        (status, reply),
        (200, serde_json::from_str(GOOD).expect("JSON"))
    );
    let log = fixture.log();
    assert_eq!(log.len(), 2);
    let request =
        json!({"sha256": Digest::of(chat("scripted").as_bytes()), "bytes": chat("scripted").len()});
    let caller = json!({"run": "r", "node": "7", "role": "analyst", "attempt": "0"});
    assert_eq!(
        log[0],
        json!({"event": "start", "at": 1000, "call": 0, "model": "scripted", "caller": caller, "request": request})
    );
    let end = &log[1];
    assert_eq!(end["request"], request);
    assert_eq!(end["reply"]["sha256"], json!(Digest::of(GOOD.as_bytes())));
    assert_eq!(
        (&end["input_tokens"], &end["output_tokens"]),
        (&json!(3), &json!(1))
    );
    assert_eq!((&end["status"], &end["error"]), (&json!(200), &Value::Null));
    assert!(end["ms"].is_u64());

    let (status, health) = fixture
        .raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    let health: Value = serde_json::from_str(&health).expect("JSON");
    assert_eq!(
        (status, &health["ok"], &health["requests"]),
        (200, &json!(true), &json!(1))
    );
    assert_eq!(fixture.log().len(), 2, "health is no call");
}

#[tokio::test]
async fn wrong_requests_are_refused_with_one_shape_and_logged() {
    let fixture = Fixture::start(&Setup::default());
    let path = "/v1/chat/completions";
    let long = "x".repeat(BODY_MAX as usize + 1);
    let stream = json!({"model": "scripted", "messages": [{}], "stream": true}).to_string();
    for (path, body, status, kind) in [
        ("/v1/models", "{}".to_owned(), 404, "not_found"),
        ("/", "{}".to_owned(), 404, "not_found"),
        (path, "hello".to_owned(), 400, "invalid_request"),
        (path, "{}".to_owned(), 400, "invalid_request"),
        (
            path,
            "{\"model\": \"scripted\"}".to_owned(),
            400,
            "invalid_request",
        ),
        (path, stream, 400, "invalid_request"),
        (path, chat("gpt"), 403, "model_not_allowed"),
        (path, long, 413, "body_too_large"),
    ] {
        let before = fixture.log().len();
        let (got, reply) = fixture.post(path, &body).await;
        assert_eq!(
            (got, reply["error"]["type"].as_str()),
            (status, Some(kind)),
            "{path} {reply}"
        );
        assert!(!reply["error"]["message"].as_str().expect("text").is_empty());
        let log = fixture.log();
        assert_eq!(log.len(), before + 1);
        assert_eq!(
            (&log[before]["event"], &log[before]["error"]),
            (&json!("refused"), &json!(kind))
        );
    }
    let get = b"GET /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(fixture.raw(get).await.0, 405);
    let slow = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10\r\n\r\n{";
    assert_eq!(fixture.raw(slow).await.0, 408);
    let chunked = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4000\r\n{}\r\n0\r\n\r\n",
        "x".repeat(0x4000)
    );
    assert_eq!(fixture.raw(chunked.as_bytes()).await.0, 413);
    assert!(fixture.log().iter().all(|line| line["event"] == "refused"));
}

#[tokio::test]
async fn bad_upstreams_become_clean_errors_in_time() {
    let no_finish = GOOD.replace(r#","finish_reason":"stop""#, "");
    let half = b"HTTP/1.1 200 X\r\ncontent-length: 500\r\n\r\n{\"choices\"".to_vec();
    let huge = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", 1_u64 << 40).into_bytes();
    let mut huge_body = huge.clone();
    huge_body.extend(vec![b'x'; BODY_MAX as usize + 10]);
    for (act, status, kind) in [
        (http(200, "<html>busy</html>"), 502, "upstream_malformed"),
        (http(200, ""), 502, "upstream_malformed"),
        (http(200, "{}"), 502, "upstream_malformed"),
        (http(200, &no_finish), 502, "upstream_malformed"),
        (
            http(500, "{\"error\":{\"message\":\"boom\"}}"),
            502,
            "upstream_status",
        ),
        (http(401, "<html>"), 502, "upstream_status"),
        (Act::Say(vec![]), 502, "upstream_malformed"),
        (
            Act::Say(b"garbage\r\n\r\n".to_vec()),
            502,
            "upstream_malformed",
        ),
        (Act::Say(half.clone()), 502, "upstream_malformed"),
        (Act::Hang(vec![]), 504, "upstream_timeout"),
        (Act::Hang(half), 504, "upstream_timeout"),
        (Act::Say(huge_body), 502, "upstream_too_large"),
    ] {
        let fixture = Fixture::start(&Setup {
            act,
            ..Setup::default()
        });
        let (got, reply) = fixture.chat().await;
        assert_eq!(
            (got, reply["error"]["type"].as_str()),
            (status, Some(kind)),
            "{reply}"
        );
        let log = fixture.log();
        assert_eq!(
            (&log[1]["event"], &log[1]["error"]),
            (&json!("end"), &json!(kind))
        );
    }
    let chunk = b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let endless = Setup {
        act: Act::Drip(chunk),
        ..Setup::default()
    };
    assert_eq!(Fixture::start(&endless).chat().await.0, 502);
    let dripping = Setup {
        act: Act::Drip(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        total_ms: 300,
        ..Setup::default()
    };
    let (status, _) = Fixture::start(&dripping).chat().await;
    assert!(matches!(status, 502 | 504), "{status}");
    let nobody = Fixture::start(&Setup::default());
    std::fs::remove_file(nobody.folder.path().join("model.s")).expect("remove");
    assert_eq!(
        nobody.chat().await.1["error"]["type"],
        "upstream_unreachable"
    );
}

#[tokio::test]
async fn the_count_of_calls_survives_a_restart() {
    let setup = Setup {
        requests_max: 3,
        ..Setup::default()
    };
    let fixture = Fixture::start(&setup);
    for _ in 0..2 {
        assert_eq!(fixture.chat().await.0, 200);
    }
    fixture.stop.cancel();
    fixture.server.await.expect("stops");
    let again = Fixture::serve(fixture.folder, &setup);
    assert_eq!(again.chat().await.0, 200);
    let (status, reply) = again.chat().await;
    assert_eq!(
        (status, reply["error"]["type"].as_str()),
        (429, Some("request_quota"))
    );
    let calls: Vec<Value> = again
        .log()
        .iter()
        .filter(|l| l["event"] == "start")
        .map(|l| l["call"].clone())
        .collect();
    assert_eq!(calls, [json!(0), json!(1), json!(2)]);
}

#[tokio::test]
async fn parallel_calls_never_pass_the_cap() {
    let setup = Setup {
        requests_max: 5,
        ..Setup::default()
    };
    let fixture = Arc::new(Fixture::start(&setup));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let fixture = Arc::clone(&fixture);
        calls.spawn(async move { fixture.chat().await.0 });
    }
    let statuses = calls.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 15);
}

#[tokio::test]
async fn other_uids_are_not_served_and_no_log_means_no_answer() {
    let foreign = Fixture::start(&Setup {
        uid: own_uid() + 1,
        ..Setup::default()
    });
    assert_eq!(
        foreign.chat().await.0,
        0,
        "the connection closes without a reply"
    );
    assert!(foreign.log().is_empty());

    let folder = tempfile::tempdir().expect("folder");
    let log = folder.path().join("log");
    std::fs::write(&log, "").expect("write");
    let read_only = File::open(&log).expect("open");
    let (evidence, calls) = Evidence::open(read_only).expect("opens");
    let socket = folder.path().join("http.s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bind");
    let spec = spec(folder.path().join("model.s"), &Setup::default());
    let clock = Arc::new(ManualClock::new(UnixMs(0)));
    let gateway = Arc::new(Gateway::new(spec, evidence, calls, clock));
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve(gateway, listener, stop.clone()));
    let fixture = Fixture {
        folder,
        stop: stop.clone(),
        server: tokio::spawn(async {}),
    };
    let (status, reply) = fixture.chat().await;
    assert_eq!(
        (status, reply["error"]["type"].as_str()),
        (503, Some("log_unavailable"))
    );
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .expect("stops in time")
        .expect("no panic")
        .expect("stops");
}

#[tokio::test]
async fn our_client_talks_through_the_gateway() {
    let fixture = Fixture::start(&Setup::default());
    let run = "20261130-101010-diabetes-abcd".parse().expect("id");
    let client = vec_llm::ChatClient::new(fixture.folder.path().join("http.s"), run);
    let attempt = client
        .chat(&vec_llm::ChatRequest {
            model: "scripted".into(),
            messages: vec![vec_llm::Message {
                role: vec_llm::MessageRole::User,
                content: "x".into(),
            }],
            max_tokens: 10,
            role: "reviewer".into(),
            node: vec_types::NodeId(3),
            attempt: 2,
            timeout: Duration::from_secs(20),
        })
        .await;
    assert_eq!(attempt.result.expect("replies").text, "hi");
    let log = fixture.log();
    assert_eq!(
        log[0]["caller"],
        json!({"run": "20261130-101010-diabetes-abcd", "node": "3", "role": "reviewer", "attempt": "2"})
    );
    assert_eq!(
        log[0]["request"]["sha256"],
        json!(Digest::of(&attempt.request))
    );
    assert_eq!(log[1]["reply"]["sha256"], json!(Digest::of(&attempt.reply)));
}
