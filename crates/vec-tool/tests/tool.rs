//! The binary against a double of the scorer's client service on a temporary socket.

use std::path::Path;
use std::process::Output;

use tokio::net::UnixListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, Streaming};
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::client_server::{Client, ClientServer};

/// Scores the number of bytes of every view; refuses by content.
#[derive(Debug)]
struct Double;

async fn collect(
    request: Request<Streaming<pb::Upload>>,
) -> Result<Vec<(String, Vec<u8>)>, Status> {
    let mut stream = request.into_inner();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    while let Some(upload) = stream.next().await {
        let pb::Upload { view, data } = upload?;
        if !view.is_empty() {
            files.push((view, Vec::new()));
        }
        files.last_mut().expect("view first").1.extend(data);
    }
    Ok(files)
}

fn problem(files: &[(String, Vec<u8>)]) -> Option<pb::InvalidFormat> {
    let empty = files.iter().any(|(_, bytes)| bytes.is_empty());
    empty.then(|| pb::InvalidFormat {
        code: "empty".into(),
        detail: "the file is empty".into(),
    })
}

#[tonic::async_trait]
impl Client for Double {
    async fn query(
        &self,
        request: Request<Streaming<pb::Upload>>,
    ) -> Result<Response<pb::QueryReply>, Status> {
        let files = collect(request).await?;
        if files.iter().any(|(_, bytes)| bytes.starts_with(b"exhaust")) {
            return Err(Status::resource_exhausted(
                "quota exhausted: all 20 queries are used",
            ));
        }
        if files.iter().any(|(_, bytes)| bytes.starts_with(b"fail")) {
            return Err(Status::internal("score_error"));
        }
        let result = match problem(&files) {
            Some(problem) => pb::query_reply::Result::InvalidFormat(problem),
            None => pb::query_reply::Result::Report(pb::Report {
                total: files.iter().map(|(_, bytes)| bytes.len() as f64).sum(),
                components: Vec::new(),
                parts: files
                    .iter()
                    .map(|(view, bytes)| pb::Part {
                        ruler: view.clone(),
                        metric: "bytes".into(),
                        raw: bytes.len() as f64,
                        skill: 0.5,
                        points: 50.0,
                        weight: 1.0,
                    })
                    .collect(),
            }),
        };
        Ok(Response::new(pb::QueryReply {
            result: Some(result),
            remaining: 4,
        }))
    }

    async fn check(
        &self,
        request: Request<Streaming<pb::Upload>>,
    ) -> Result<Response<pb::CheckReply>, Status> {
        let problem = problem(&collect(request).await?);
        Ok(Response::new(pb::CheckReply {
            ok: problem.is_none(),
            problem,
            remaining: 4,
        }))
    }
}

fn serve(dir: &Path) {
    let listener = UnixListener::bind(dir.join("scorer.s")).expect("bind");
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(ClientServer::new(Double))
            .serve_with_incoming(UnixListenerStream::new(listener)),
    );
}

async fn tool(dir: &Path, args: &[&str]) -> Output {
    tokio::process::Command::new(env!("CARGO_BIN_EXE_vec-tool"))
        .args(args)
        .env("VEC_SCORER_SOCKET", dir.join("scorer.s"))
        .env("VEC_VIEWS_DIR", dir.join("views"))
        .current_dir(dir)
        .output()
        .await
        .expect("run")
}

fn stage() -> tempfile::TempDir {
    let temporary = tempfile::tempdir().expect("dir");
    let dir = temporary.path();
    serve(dir);
    std::fs::create_dir_all(dir.join("views/main")).expect("views");
    let big = vec![b'1'; (2 << 20) + 5];
    for (name, bytes) in [
        ("good", b"12345".as_slice()),
        ("empty", b""),
        ("exhaust", b"exhaust"),
        ("fail", b"fail"),
        ("big", &big),
    ] {
        std::fs::write(dir.join(name), bytes).expect("write");
    }
    let sparse = std::fs::File::create(dir.join("sparse")).expect("create");
    sparse.set_len((1 << 30) + 1).expect("length");
    temporary
}

#[tokio::test]
async fn every_end_has_its_exit_code() {
    let dir = stage();
    let dir = dir.path();
    for (args, code, said) in [
        (
            &["vec-score", "sparse"][..],
            1,
            "longer than 1073741824 bytes",
        ),
        (
            &["vec-score", "--file", "good"][..],
            0,
            "main   bytes   5.0000",
        ),
        (&["vec-score", "big"], 0, "2097157.0000"),
        (
            &["vec-score", "--view", "a=good", "--view", "b=good"],
            0,
            "total 10.0000",
        ),
        (&["vec-score", "good", "--json"], 0, "\"remaining\":4"),
        (
            &["vec-score", "empty"],
            2,
            "vec-score: invalid format: empty: the file is empty",
        ),
        (
            &["vec-score", "empty", "--json"],
            2,
            "\"status\":\"invalid_format\"",
        ),
        (
            &["vec-score", "exhaust"],
            3,
            "quota exhausted: all 20 queries are used",
        ),
        (
            &["vec-score", "exhaust", "--json"],
            3,
            "\"status\":\"quota_exhausted\"",
        ),
        (&["vec-score", "fail"], 1, "score_error"),
        (&["vec-check", "good"], 0, "format ok; queries left: 4"),
        (&["vec-check", "empty"], 2, "empty"),
        (
            &["vec-score", "none"],
            1,
            "cannot read prediction file none",
        ),
        (
            &["vec-score"],
            1,
            "cannot read prediction file /box/pred.csv",
        ),
        (&["vec-score", "--nope"], 1, "unknown argument \"--nope\""),
        (&["--help"], 0, "usage: vec-score"),
    ] {
        let output = tool(dir, args).await;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

#[tokio::test]
async fn an_absent_scorer_and_unclear_views_are_one_line() {
    let dir = tempfile::tempdir().expect("dir");
    let dir = dir.path();
    std::fs::write(dir.join("good"), "1").expect("write");
    for views in [0, 1, 2] {
        if views > 0 {
            std::fs::create_dir_all(dir.join(format!("views/v{views}"))).expect("views");
        }
        let output = tool(dir, &["vec-score", "good"]).await;
        let text = String::from_utf8(output.stderr).expect("text");
        let expected = [
            "cannot list the views",
            "the scorer does not answer",
            "holds 2 views",
        ];
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains(expected[views]) && text.lines().count() == 1,
            "{text}"
        );
    }
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_at_once() {
    let dir = stage();
    let dir = dir.path();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.join("fifo"))
        .status();
    assert!(made.expect("mkfifo").success());
    for name in ["fifo", "views"] {
        let args = ["vec-score", name];
        let ended = tool(dir, &args);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(20), ended).await;
        let output = ended.expect("does not block");
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{text}");
        let said = format!("prediction file {name} is not a regular file");
        assert!(text.contains(&said), "{text}");
    }
}
