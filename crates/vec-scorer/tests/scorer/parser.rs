//! The parser process by itself: what it accepts, and what it cannot do.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use vec_scorer::{FormatCode, Matrix, Parser, ParserFailure};

use super::stage::own_parser;

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vec-scorer"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawn");
    let mut stdin = child.stdin.take().expect("stdin");
    // A parser that has seen enough hangs up.
    drop(stdin.write_all(input));
    drop(stdin);
    child.wait_with_output().expect("output")
}

#[test]
fn the_process_speaks_the_flat_form_and_typed_codes() {
    let good = run(&["parse", "100", "2"], b"id,prediction\n9,1.5\n3,-2\n");
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let matrix = Matrix::decode(&good.stdout).expect("matrix");
    assert_eq!(
        (matrix.ids(), matrix.get(9)),
        ([3, 9].as_slice(), Some(1.5))
    );
    let bad = run(&["parse", "100", "2"], b"id,prediction\n9,nan\n");
    assert_eq!(bad.status.code(), Some(65));
    assert!(bad.stdout.is_empty());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("\"code\":\"not_finite\""));
    for args in [
        &["parse"][..],
        &["parse", "1"],
        &["parse", "1", "x"],
        &["parse", "1", "2", "3"],
        &["x"],
    ] {
        assert_eq!(run(args, b"").status.code(), Some(64), "{args:?}");
    }
}

#[tokio::test]
async fn hostile_files_are_one_code_each_through_the_process() {
    let parser = own_parser(32 << 20);
    let wide = [
        b"id,prediction\n1,".as_slice(),
        &vec![b','; 1_000_000],
        b"\n",
    ]
    .concat();
    let rows = [b"id,prediction\n".as_slice(), &b"5,1\n".repeat(5_000_000)].concat();
    let quoted = [b"id,prediction\n\"".as_slice(), &vec![b'x'; 8 << 20]].concat();
    for (file, code) in [
        (wide, FormatCode::BadRow),
        (rows, FormatCode::ExtraRows),
        (quoted, FormatCode::BadRow),
        (b"id,prediction\n1,1e999\n".to_vec(), FormatCode::NotFinite),
        (vec![0; 1 << 20], FormatCode::BadHeader),
        (vec![b'1'; (32 << 20) + 1], FormatCode::TooLarge),
    ] {
        match parser.parse(&file, 100).await {
            Err(ParserFailure::Format(problem)) => assert_eq!(problem.code, code),
            other => panic!("{code:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn deaths_are_the_files_fault_only_where_a_file_can_cause_them() {
    let with = |script: &str| Parser {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into(), "sh".into()],
        bytes_max: 100,
        timeout: Duration::from_secs(10),
    };
    for signal in ["XCPU", "ABRT", "SEGV"] {
        match with(&format!("kill -{signal} $$")).parse(b"x", 1).await {
            Err(ParserFailure::Format(problem)) => assert_eq!(problem.code, FormatCode::ReaderDied),
            other => panic!("{signal}: {other:?}"),
        }
    }
    for script in [
        "kill -KILL $$",
        "exit 3",
        "echo no JSON >&2; exit 65",
        "yes | head -c 9999999 >&2; exit 71",
    ] {
        let failure = with(script).parse(b"x", 1).await.expect_err(script);
        assert!(
            matches!(failure, ParserFailure::Ended { .. }),
            "{script}: {failure:?}"
        );
        assert!(failure.to_string().len() < 5_000);
    }
    for script in ["echo garbage", "yes | head -c 9999999", "true"] {
        let failure = with(script).parse(b"x", 1).await.expect_err(script);
        assert!(
            matches!(failure, ParserFailure::Output(_)),
            "{script}: {failure:?}"
        );
    }
    let absent = Parser {
        program: "/nonexistent".into(),
        ..with("")
    };
    assert!(matches!(
        absent.parse(b"x", 1).await,
        Err(ParserFailure::Process { .. })
    ));
}

#[tokio::test]
async fn a_process_that_does_not_end_is_killed() {
    let dir = tempfile::tempdir().expect("dir");
    let pid_file = dir.path().join("pid");
    let parser = Parser {
        program: "/bin/sh".into(),
        args: vec![
            "-c".into(),
            format!("echo $$ > {}; exec sleep 600", pid_file.display()).into(),
        ],
        bytes_max: 100,
        timeout: Duration::from_millis(500),
    };
    let failure = parser.parse(b"x", 1).await.expect_err("timeout");
    assert!(matches!(failure, ParserFailure::Timeout(_)), "{failure:?}");
    let pid: i32 = std::fs::read_to_string(pid_file)
        .expect("pid")
        .trim()
        .parse()
        .expect("number");
    let gone = async {
        // Reaped by the runtime after the kill.
        while nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("killed");
}

/// Limits and filter of a confined process as the kernel reports them.
#[test]
fn the_process_has_given_everything_up_before_it_reads() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vec-scorer"))
        .args(["parse", "1000", "10"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("spawn");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(b"id,prediction\n").expect("write");
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).expect(name);
    let field = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .expect("line")
            .to_owned();
        line[name.len()..]
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while field(&read("status"), "Seccomp:")[0] != "2" {
        assert!(std::time::Instant::now() < end, "never confined");
        std::thread::yield_now();
    }
    assert_eq!(field(&read("status"), "NoNewPrivs:")[0], "1");
    let limits = read("limits");
    assert_eq!(field(&limits, "Max open files")[..2], ["0", "0"]);
    assert_eq!(field(&limits, "Max file size")[..2], ["0", "0"]);
    assert_eq!(field(&limits, "Max cpu time")[..2], ["5", "6"]);
    assert_eq!(field(&limits, "Max core file size")[..2], ["0", "0"]);
    assert_ne!(field(&limits, "Max address space")[0], "unlimited");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(Matrix::decode(&output.stdout), Matrix::new([]));
}
