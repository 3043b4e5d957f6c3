//! Clients: quota, refunds, closing, settling, restarts, hostile ones, and that no truth leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use prost::Message as _;
use tonic::Code;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pieces;
use vec_scorer::{CLIENT_CONNECTIONS_MAX, Parser};

use super::stage::{FLOOR, MARKER, Stage, WAIT, agent, perfect, prediction, query, report};

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_rounded_charged_and_end_with_the_quota() {
    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "12-0", 2).await;
    let mode = fs::metadata(dir.join("scorer.s"))
        .expect("socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o666);
    let mut client = agent(&dir).await;

    let reply = query(&mut client, b"id,prediction\n1,x\n")
        .await
        .expect("answered");
    assert_eq!(reply.remaining, 2, "a format error was charged");
    let reply = query(&mut client, &prediction(|id| FLOOR + id as f64 / 7.0))
        .await
        .expect("first");
    assert_eq!(reply.remaining, 1);
    let report_ = report(reply);
    let part = &report_.parts[0];
    for number in [
        report_.total,
        report_.components[0].score,
        part.raw,
        part.skill,
        part.points,
    ] {
        assert_eq!((number * 1e4).round() / 1e4, number);
    }
    let reply = query(&mut client, &perfect()).await.expect("second");
    assert_eq!((reply.remaining, report(reply).total), (0, 100.0));
    let error = query(&mut client, &perfect()).await.expect_err("third");
    assert_eq!(error.code(), Code::ResourceExhausted);
    let check = client.check(tokio_stream::iter(pieces(
        &"main".parse().expect("view"),
        b"",
    )));
    let check = check.await.expect("checks are free").into_inner();
    assert_eq!(
        (check.ok, check.problem.expect("problem").code.as_str()),
        (false, "empty")
    );
    assert!(
        stage
            .journal()
            .contains(&format!("\"score_bytes\":{}", report_.encoded_len()))
    );
    running.stop().await.expect("stops");
    assert!(!dir.join("scorer.s").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_never_pass_the_quota() {
    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 20).await;
    let other = stage.client(&running, "2-0", 3).await;
    let tasks: Vec<_> = (0..50)
        .map(|k| {
            let dir = if k % 10 == 0 {
                other.clone()
            } else {
                dir.clone()
            };
            tokio::spawn(async move {
                let mut client = agent(&dir).await;
                query(&mut client, &prediction(|id| FLOOR + (id + k) as f64)).await
            })
        })
        .collect();
    let (mut answered, mut exhausted) = (0, 0);
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(_) => answered += 1,
            Err(status) if status.code() == Code::ResourceExhausted => exhausted += 1,
            Err(status) => panic!("{status:?}"),
        }
    }
    assert_eq!((answered, exhausted), (20 + 3, 50 - 23));
    assert_eq!(
        (stage.journal_kinds("charge"), stage.journal_kinds("query")),
        (23, 23)
    );
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_scorer_remembers_charges_and_opens_sockets_again() {
    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 2).await;
    let closed = stage.client(&running, "2-0", 2).await;
    query(&mut agent(&dir).await, &perfect())
        .await
        .expect("first");
    assert_eq!(running.close("2-0").await.expect("close"), 0);
    running.kill().await;

    // A kill between charge and answer: the charge stands.
    let charge = format!(
        "{{\"at\":1,\"client\":\"1-0\",\"input\":\"{}\",\"kind\":\"charge\",\"query\":1}}\n{{\"at\":",
        "0".repeat(64)
    );
    let journal = stage.journal();
    fs::write(stage.journal_path(), format!("{journal}{charge}")).expect("write");
    let running = stage.run().await;
    let error = query(&mut agent(&dir).await, &perfect())
        .await
        .expect_err("both are used");
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(!closed.join("scorer.s").exists());
    assert_eq!(
        running.register("1-0", &dir, 2).await.map_err(|s| s.code()),
        Ok(())
    );
    let error = running
        .register("2-0", &closed, 2)
        .await
        .expect_err("closed");
    assert_eq!(error.code(), Code::FailedPrecondition);
    running.close("1-0").await.expect("close");
    assert_eq!(running.settle("1-0", 0).await.expect("settle"), Some(2));
    running.stop().await.expect("stops");
}

fn slow_parser(stage: &Stage) -> Parser {
    let gate = stage.dir.path().join("gate");
    // Waits for the gate, then is the real parser.
    let script = format!(
        "while ! [ -e {0} ]; do sleep 0.02; done; exec {1} parse \"$@\"",
        gate.display(),
        env!("CARGO_BIN_EXE_vec-scorer")
    );
    Parser {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into(), "sh".into()],
        ..stage.parser.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_was_not_admitted_before_closing_is_refused_and_never_charged() {
    let mut stage = Stage::new();
    stage.parser = slow_parser(&stage);
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 5).await;
    let mut client = agent(&dir).await;
    let waiting = tokio::spawn(async move { query(&mut client, &perfect()).await });
    let error = running.settle("1-0", 0).await.expect_err("open");
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert_eq!(running.close("1-0").await.expect("close"), 0);
    assert_eq!(running.close("1-0").await.expect("again"), 0);
    assert!(!dir.join("scorer.s").exists());
    assert_eq!(running.settle("1-0", 0).await.expect("settle"), Some(0));
    fs::write(stage.dir.path().join("gate"), "").expect("gate");
    let status = waiting.await.expect("no panic").expect_err("closed");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(running.settle("1-0", 0).await.expect("settle"), Some(0));
    assert_eq!(
        (stage.journal_kinds("settle"), stage.journal_kinds("charge")),
        (1, 0)
    );
    let error = running.close("9-9").await.expect_err("unknown");
    assert_eq!(error.code(), Code::NotFound);
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parser_killed_from_outside_is_our_fault_and_costs_nothing() {
    let mut stage = Stage::new();
    stage.parser = Parser {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "kill -9 $$".into(), "sh".into()],
        ..stage.parser.clone()
    };
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 1).await;
    let error = query(&mut agent(&dir).await, &perfect())
        .await
        .expect_err("killed");
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().starts_with("score_error"), "{error}");
    let error = running
        .score("r", (pb::RowSet::Search, 0), &perfect())
        .await
        .expect_err("killed");
    assert_eq!(error.code(), Code::Internal);
    assert_eq!(
        (stage.journal_kinds("charge"), stage.journal_kinds("reply")),
        (0, 0)
    );
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_outside_the_runtime_directory_are_refused() {
    let stage = Stage::new();
    let running = stage.run().await;
    let root = stage.dir.path();
    let inside = root.join("c/1-0");
    fs::create_dir(&inside).expect("dir");
    let long = root.join("c").join("x".repeat(100));
    fs::create_dir(&long).expect("dir");
    std::os::unix::fs::symlink(root, root.join("c/link")).expect("link");
    let out = root.join("c/1-0/../..");
    for dir in [
        root,
        &root.join("c"),
        &root.join("c/none"),
        &root.join("c/link"),
        &out,
    ] {
        let error = running.register("1-0", dir, 1).await.expect_err("outside");
        assert_eq!(error.code(), Code::InvalidArgument, "{}", dir.display());
    }
    let error = running.register("1-0", &long, 1).await.expect_err("long");
    assert!(error.message().contains("at most 107"), "{error}");
    for (name, quota) in [
        ("", 1),
        ("a/b", 1),
        (&"x".repeat(33) as &str, 1),
        ("1-0", 1_001),
    ] {
        let error = running
            .register(name, &inside, quota)
            .await
            .expect_err(name);
        assert_eq!(error.code(), Code::InvalidArgument, "{name}");
    }
    running.register("1-0", &inside, 1).await.expect("fits");
    running
        .register("1-0", &inside, 1)
        .await
        .expect("idempotent");
    let error = running
        .register("1-0", &inside, 2)
        .await
        .expect_err("other quota");
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(stage.journal_kinds("register"), 1);
    running.stop().await.expect("stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_uploads_are_cut_and_connections_are_bounded() {
    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 5).await;
    let mut client = agent(&dir).await;
    let piece = |view: &str, len| pb::Upload {
        view: view.to_owned(),
        data: vec![b'7'; len],
    };
    let mib = 1 << 20;
    // Too long: told so. Endless: cut off. A piece beyond the limit, no view: refused.
    let reply = client
        .query(tokio_stream::iter([piece("main", mib), piece("", 1)]))
        .await
        .expect("told");
    let Some(pb::query_reply::Result::InvalidFormat(problem)) = reply.into_inner().result else {
        panic!("scored");
    };
    assert_eq!(problem.code, "too_large");
    let endless =
        std::iter::once(piece("main", mib)).chain(std::iter::repeat_with(move || piece("", mib)));
    assert!(client.query(tokio_stream::iter(endless)).await.is_err());
    for pieces in [
        vec![piece("main", mib + 1)],
        vec![piece("", 1)],
        vec![piece("a/b", 1)],
    ] {
        let error = client
            .query(tokio_stream::iter(pieces))
            .await
            .expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
    }
    let error = client
        .query(tokio_stream::iter([piece("main", 2 * mib)]))
        .await
        .expect_err("message");
    assert_eq!(error.code(), Code::OutOfRange, "{error:?}");
    drop(client);

    let mut held = Vec::new();
    for _ in 0..CLIENT_CONNECTIONS_MAX + 8 {
        held.push(
            tokio::net::UnixStream::connect(dir.join("scorer.s"))
                .await
                .expect("connect"),
        );
    }
    let mut closed = 0;
    for stream in &held[CLIENT_CONNECTIONS_MAX..] {
        // A served connection stays silent or speaks HTTP/2; a surplus one ends at once.
        stream.readable().await.expect("readable");
        let mut byte = [0];
        closed += usize::from(matches!(stream.try_read(&mut byte), Ok(0)));
    }
    assert_eq!(closed, 8);
    drop(held);
    assert_eq!(stage.journal_kinds("charge"), 0);
    running.stop().await.expect("stops");
}

/// Descriptors of this process, which the scorer runs in.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("listable").count()
}

/// Writes until the other side has enough; how much it took.
async fn flood(stream: &mut tokio::net::UnixStream, head: &[u8], most: usize) -> usize {
    use tokio::io::AsyncWriteExt as _;
    let block = vec![b'x'; 1 << 16];
    let mut taken = 0;
    if stream.write_all(head).await.is_err() {
        return taken;
    }
    while taken < most {
        match tokio::time::timeout(WAIT, stream.write(&block)).await {
            Ok(Ok(count)) => taken += count,
            // Refused, or never read.
            Ok(Err(_)) | Err(_) => break,
        }
    }
    taken
}

/// Attack case 24 (`docs/attacks.md`): descriptors, a line of a gigabyte and half-open connections
/// at a client's socket; nothing is kept, and others are served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn descriptors_floods_and_half_open_connections() {
    use std::io::IoSlice;
    use std::os::fd::AsRawFd as _;

    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 5).await;
    let other = stage.client(&running, "2-0", 5).await;
    let socket = dir.join("scorer.s");
    let nulls: Vec<fs::File> = (0..50)
        .map(|_| fs::File::open("/dev/null").expect("opens"))
        .collect();
    let raw: Vec<i32> = nulls.iter().map(fs::File::as_raw_fd).collect();
    let rights = |stream: &std::os::unix::net::UnixStream| {
        let part = [IoSlice::new(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")];
        let messages = [ControlMessage::ScmRights(&raw)];
        sendmsg::<()>(
            stream.as_raw_fd(),
            &part,
            &messages,
            MsgFlags::empty(),
            None,
        )
    };
    let before = descriptors();
    let mut senders = Vec::new();
    for _ in 0..4 {
        let sender = std::os::unix::net::UnixStream::connect(&socket).expect("connects");
        rights(&sender).expect("sent");
        senders.push(sender);
    }
    // An honest client is served between them.
    query(&mut agent(&dir).await, &perfect())
        .await
        .expect("served");
    for mut sender in senders {
        sender.set_read_timeout(Some(WAIT)).expect("a time limit");
        // The server's own settings frame: it has read ours, and the descriptors with it.
        let mut byte = [0];
        std::io::Read::read_exact(&mut sender, &mut byte).expect("an answer");
        assert!(descriptors() <= before + 16, "descriptors were kept");
    }
    // Control: a receiver that wants them gets them.
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    rights(&ours).expect("sent");
    let received = received_descriptors(&theirs);
    assert_eq!(received, raw.len());

    for head in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = tokio::net::UnixStream::connect(&socket)
            .await
            .expect("connect");
        let taken = flood(&mut stream, head, 1 << 30).await;
        assert!(taken < 16 << 20, "{taken} bytes were taken");
    }
    let mut half_open = Vec::new();
    for _ in 0..CLIENT_CONNECTIONS_MAX {
        let stream = std::os::unix::net::UnixStream::connect(&socket).expect("connects");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("half closed");
        half_open.push(stream);
    }
    query(&mut agent(&other).await, &perfect())
        .await
        .expect("another client is served meanwhile");
    drop(half_open);
    running.stop().await.expect("stops");
}

/// Receives what was passed along, and how many descriptors it was.
fn received_descriptors(stream: &std::os::unix::net::UnixStream) -> usize {
    use std::io::IoSliceMut;
    use std::os::fd::AsRawFd as _;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

    let mut bytes = [0; 64];
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let mut space = nix::cmsg_space!([i32; 64]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags);
    let message = message.expect("received");
    let messages = message.cmsgs().expect("messages");
    let count = messages.map(|message| match message {
        ControlMessageOwned::ScmRights(fds) => fds.len(),
        _ => 0,
    });
    count.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_truth_value_is_in_any_reply_journal_or_error() {
    let stage = Stage::new();
    let running = stage.run().await;
    let dir = stage.client(&running, "1-0", 20).await;
    let mut client = agent(&dir).await;
    let mut seen = Vec::new();
    let good = prediction(|id| id as f64);
    let missing = b"id,prediction\n1,2\n".to_vec();
    for file in [
        good.clone(),
        missing,
        b"id,prediction\n1,2\n1,2\n".to_vec(),
        b"\0\xff".to_vec(),
    ] {
        match query(&mut client, &file).await {
            Ok(reply) => {
                seen.push(format!("{reply:?}"));
                seen.push(String::from_utf8_lossy(&reply.encode_to_vec()).into_owned());
            }
            Err(status) => seen.push(format!("{status:?}")),
        }
        for (rows, seed) in [
            (pb::RowSet::Search, 0),
            (pb::RowSet::Guard, 4),
            (pb::RowSet::Guard, 9),
        ] {
            let id = format!("{seed}-{}", file.len());
            seen.push(format!(
                "{:?}",
                running.score(&id, (rows, seed), &file).await
            ));
        }
    }
    seen.push(stage.journal());
    running.stop().await.expect("stops");
    // Scores of a prediction near 0 are about the truth's own size: digits of an rmse may look like
    // the marker's first ones, so whole marked values are searched.
    let truth: Vec<String> = (0..super::stage::ROWS)
        .map(super::stage::truth_value)
        .collect();
    assert!(truth.iter().all(|value| value.starts_with(MARKER)));
    for text in &seen {
        assert!(!truth.iter().any(|value| text.contains(value)), "{text}");
    }
    // The search itself works.
    let planted = format!("{{\"detail\":\"{}\"}}", truth[5]);
    assert!(truth.iter().any(|value| planted.contains(value)));
}
