//! The client against a socket that behaves and misbehaves.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use vec_llm::{ChatClient, ChatError, ChatRequest, Message, MessageRole, chat_chain};
use vec_types::NodeId;

fn request(timeout_ms: u64) -> ChatRequest {
    ChatRequest {
        model: "first".into(),
        messages: vec![Message {
            role: MessageRole::User,
            content: "hello".into(),
        }],
        max_tokens: 100,
        role: "researcher".into(),
        node: NodeId(7),
        attempt: 1,
        timeout: Duration::from_millis(timeout_ms),
    }
}

fn good(text: &str) -> String {
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":5,"completion_tokens":2}}}}"#
    );
    reply(200, &body)
}

fn reply(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Answers each connection with the next script entry; `None` = say nothing, keep the line open.
/// Returns what the last connection sent.
async fn serve(listener: UnixListener, script: Vec<Option<String>>) -> String {
    let mut seen = String::new();
    let mut silent = Vec::new();
    for entry in script {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let mut buffer = vec![0; 64 << 10];
        let read = stream.read(&mut buffer).await.expect("read");
        seen = String::from_utf8_lossy(&buffer[..read]).into_owned();
        match entry {
            Some(text) => stream.write_all(text.as_bytes()).await.expect("write"),
            None => silent.push(stream),
        }
    }
    if !silent.is_empty() {
        std::future::pending::<()>().await;
    }
    seen
}

struct Fixture {
    client: ChatClient,
    server: tokio::task::JoinHandle<String>,
    _folder: tempfile::TempDir,
}

fn fixture(script: Vec<Option<String>>) -> Fixture {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("bind");
    let run = "20261130-101010-diabetes-abcd".parse().expect("id");
    Fixture {
        client: ChatClient::new(socket, run),
        server: tokio::spawn(serve(listener, script)),
        _folder: folder,
    }
}

#[tokio::test]
async fn a_call_carries_its_accounting_and_returns_raw_bytes() {
    let fixture = fixture(vec![Some(good("hi"))]);
    let attempt = fixture.client.chat(&request(5_000)).await;
    let answer = attempt.result.expect("replies");
    assert_eq!((answer.text.as_str(), answer.usage.input_tokens), ("hi", 5));
    assert_eq!(attempt.status, Some(200));
    assert!(attempt.reply.starts_with(b"{\"choices\""));
    let seen = fixture.server.await.expect("server").to_lowercase();
    for needed in [
        "post /v1/chat/completions",
        "x-vec-run: 20261130-101010-diabetes-abcd",
        "x-vec-node: 7",
        "x-vec-role: researcher",
        "x-vec-attempt: 1",
        "content-length: ",
    ] {
        assert!(seen.contains(needed), "{needed} not in {seen}");
    }
    assert!(seen.ends_with(&String::from_utf8_lossy(&attempt.request).to_lowercase()));
}

#[tokio::test]
async fn failures_are_typed_and_keep_what_came() {
    let half = "HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n{\"choices\"";
    let huge = format!(
        "HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{}",
        vec_llm::REPLY_BYTES_MAX + 1,
        "x".repeat(100)
    );
    let cases: [(Option<String>, &str); 6] = [
        (
            Some(reply(
                403,
                r#"{"error":{"type":"model_not_allowed","message":"m"}}"#,
            )),
            "403 (model_not_allowed)",
        ),
        (Some(reply(200, "<html></html>")), "damaged: no JSON"),
        (Some(half.to_owned()), "read from"),
        (Some(huge), "read from"),
        (Some("SSH-2.0-OpenSSH\r\n".to_owned()), "send to"),
        (None, "did not end within 0.2 s"),
    ];
    for (script, expected) in cases {
        let fixture = fixture(vec![script.clone()]);
        let limit = if script.is_some() { 20_000 } else { 200 };
        let attempt = fixture.client.chat(&request(limit)).await;
        let error = attempt.result.expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        if script.as_deref() == Some(half) {
            assert_eq!(attempt.reply, b"{\"choices\"", "what came is kept");
        }
    }
    let gone = ChatClient::new("/nonexistent/s".into(), fixture(vec![]).run());
    let error = gone.chat(&request(200)).await.result.expect_err("gone");
    assert!(
        matches!(&error, ChatError::Transport(text) if text.contains("/nonexistent/s")),
        "{error}"
    );
}

impl Fixture {
    fn run(&self) -> vec_types::RunId {
        "20261130-101010-diabetes-abcd".parse().expect("id")
    }
}

#[tokio::test]
async fn the_chain_goes_on_after_a_failure_and_stops_at_a_reply_or_the_quota() {
    let models = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let broken = Some(reply(
        502,
        r#"{"error":{"type":"upstream_malformed","message":"m"}}"#,
    ));
    let fixture_1 = fixture(vec![broken.clone(), Some(good("from b"))]);
    let outcome = chat_chain(&fixture_1.client, &models, &request(5_000)).await;
    assert_eq!(outcome.reply().expect("replies").text, "from b");
    let asked: Vec<&str> = outcome.attempts.iter().map(|a| a.model.as_str()).collect();
    assert_eq!(asked, ["a", "b"]);
    let sent: serde_json::Value =
        serde_json::from_slice(&outcome.attempts[1].request).expect("JSON");
    assert_eq!(sent["model"], "b");

    let quota = Some(reply(
        429,
        r#"{"error":{"type":"request_quota","message":"m"}}"#,
    ));
    let fixture_2 = fixture(vec![quota]);
    let outcome = chat_chain(&fixture_2.client, &models, &request(5_000)).await;
    assert_eq!(outcome.attempts.len(), 1);
    assert!(outcome.reply().is_none() && outcome.error().is_some());

    let fixture_3 = fixture(vec![broken.clone(), broken.clone(), broken]);
    let outcome = chat_chain(&fixture_3.client, &models, &request(5_000)).await;
    assert_eq!(outcome.attempts.len(), 3);
    assert!(
        chat_chain(&fixture_3.client, &[], &request(1))
            .await
            .attempts
            .is_empty()
    );
}
