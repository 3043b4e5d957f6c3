//! The daemon as a real process with inherited descriptors: readiness, SIGKILL, SIGTERM.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use vec_proto::connect;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::scorer_client::ScorerClient;

use super::stage::{MARKER, Stage, WAIT, agent, perfect, query};

/// Killed when a test ends, however it ends.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Most have ended by now.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the daemon with descriptors 3 to 7 through a shell, because safe code cannot choose
/// numbers; the listener goes over stdin.
fn spawn(stage: &Stage, listener: UnixListener, number: u32) -> Daemon {
    let root = stage.dir.path();
    let spec = root.join("spec.json");
    let mut launch = stage.spec.clone();
    launch.common.start = number;
    fs::write(&spec, serde_json::to_vec(&launch).expect("spec")).expect("write");
    let script = format!(
        "exec 5<&0 0</dev/null 3<{} 4>&1 1>/dev/null 6<>{} 7<{}; exec {}",
        spec.display(),
        stage.journal_path().display(),
        root.join("truth").display(),
        env!("CARGO_BIN_EXE_vec-scorer"),
    );
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .open(root.join("stderr"));
    let child = Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
        .stdout(Stdio::piped())
        .stderr(stderr.expect("stderr"))
        .spawn();
    Daemon(child.expect("spawn"))
}

fn wait_ready(Daemon(child): &mut Daemon) {
    let mut byte = [0];
    let mut ready = child.stdout.take().expect("readiness pipe");
    ready.read_exact(&mut byte).expect("ready");
    assert_eq!(byte, *b"\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_and_restart_lose_nothing_and_double_nothing() {
    let stage = Stage::new();
    let path = stage.dir.path().join("s");
    let listener = UnixListener::bind(&path).expect("bind");
    let mut child = spawn(&stage, listener.try_clone().expect("clone"), 0);
    wait_ready(&mut child);
    let dir = stage.dir.path().join("c/1-0");
    fs::create_dir(&dir).expect("dir");
    let request = pb::RegisterClientRequest {
        client: "1-0".into(),
        dir: dir.to_str().expect("text").into(),
        quota: 3,
    };
    let mut scorer = ScorerClient::new(connect(&path, WAIT).await.expect("connect"));
    scorer.register_client(request).await.expect("register");
    assert_eq!(
        query(&mut agent(&dir).await, &perfect())
            .await
            .expect("query")
            .remaining,
        2
    );
    child.0.kill().expect("SIGKILL");
    child.0.wait().expect("reaped");
    assert!(
        dir.join("scorer.s").exists(),
        "a killed scorer leaves its socket"
    );

    let mut child = spawn(&stage, listener.try_clone().expect("clone"), 1);
    wait_ready(&mut child);
    let reply = query(&mut agent(&dir).await, &perfect())
        .await
        .expect("query after restart");
    assert_eq!(reply.remaining, 1);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.0.id()).expect("pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("SIGTERM");
    let status = child.0.wait().expect("ends");
    let said = fs::read_to_string(stage.dir.path().join("stderr")).expect("stderr");
    assert_eq!((status.code(), status.signal()), (Some(0), None), "{said}");
    assert!(!dir.join("scorer.s").exists());
    assert_eq!(stage.journal_kinds("start"), 2);
    assert_eq!(
        (stage.journal_kinds("charge"), stage.journal_kinds("query")),
        (2, 2)
    );
    assert!(!said.contains(MARKER), "{said}");
}

#[test]
fn a_bad_launch_spec_or_truth_is_exit_78() {
    for bad in ["spec", "truth", "journal"] {
        let mut stage = Stage::new();
        match bad {
            "spec" => stage.spec.scoring.rulers.clear(),
            "truth" => stage.spec.scoring.truth_sha256.clear(),
            _ => fs::write(stage.journal_path(), "no record\n").expect("write"),
        }
        drop(
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(stage.journal_path()),
        );
        let listener = UnixListener::bind(stage.dir.path().join("s")).expect("bind");
        let status = spawn(&stage, listener, 0).0.wait().expect("ends");
        let mut said = String::new();
        let mut stderr = File::open(stage.dir.path().join("stderr")).expect("stderr");
        stderr.read_to_string(&mut said).expect("read");
        assert_eq!(status.code(), Some(78), "{bad}: {said}");
        assert!(!said.contains(MARKER), "{said}");
    }
    let by_hand = Command::new(env!("CARGO_BIN_EXE_vec-scorer"))
        .stderr(Stdio::piped())
        .output()
        .expect("run");
    assert_eq!(by_hand.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains("started by vec-launcher only"));
}
