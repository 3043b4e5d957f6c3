//! Memory work directories, listeners, two ids.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsFd;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;
use vec_sandbox::{
    HostLayout, Limits, OutputCaps, PayloadExit, RunControl, RunOptions, SandboxPlan, SetupStep,
    TimeLimits, TmpfsSize, WorkKind, WorkerInputs, collect,
};

use crate::support::{LONG, Place, both_modes, started_by_root};

const SIZE: TmpfsSize = TmpfsSize {
    bytes: 4 << 20,
    inodes: 64,
};

fn in_memory(place: &Place, script: &str, fill: bool) -> SandboxPlan {
    let mut plan = place.plan(script, &[]);
    plan.work.kind = WorkKind::Memory {
        size: SIZE,
        fill: fill.then(|| place.path("out")),
    };
    plan
}

both_modes! {
    async fn results_outlive_the_sandbox_by_descriptor(place) {
        std::fs::create_dir(place.path("out/deep")).unwrap();
        std::fs::write(place.path("out/deep/given"), "given").unwrap();
        let script = r#"
import os
open("/out/deep/given", "a").write(" and changed")
open("/out/made", "w").write(f"{os.getuid()} {os.stat('/out/deep/given').st_uid} {os.stat('/out').st_uid}")
"#;
        let run = place.run(&in_memory(&place, script, true)).await;
        assert!(run.report.succeeded(), "{:?} {}", run.report, String::from_utf8_lossy(&run.stderr.bytes));
        let work = run.work.expect("a directory");
        let take = |name: &str| {
            let dest = place.path(name.replace('/', "-"));
            collect::copy_file(work.as_fd(), &name.parse().unwrap(), &dest, 1 << 20).unwrap();
            std::fs::read_to_string(dest).unwrap()
        };
        assert_eq!(take("deep/given"), "given and changed");
        assert_eq!(take("made"), "1000 1000 1000", "everything is the payload's");
        let before = std::fs::read_to_string(place.path("out/deep/given")).unwrap();
        assert_eq!(before, "given", "the host's own copy is untouched");
        assert!(!place.path("out/made").exists());
        assert_eq!(run.report.ids, if started_by_root() { 2 } else { 1 });
    }
}

both_modes! {
    async fn bytes_and_files_are_bounded_together(place) {
        let script = r#"
import errno, json
def until(act):
    for n in range(200):
        try:
            act(n)
        except OSError as error:
            return [n, errno.errorcode[error.errno]]
    return "never"
files = until(lambda n: open(f"/out/i{n}", "w").close())
data = until(lambda n: open("/out/i0", "ab", buffering=0).write(b"x" * (1 << 20)))
print(json.dumps({"files": files, "data": data}))
"#;
        let run = place.run(&in_memory(&place, script, false)).await;
        let seen: serde_json::Value = serde_json::from_slice(&run.stdout.bytes).unwrap();
        assert_eq!(seen["files"][1], json!("ENOSPC"), "{seen}");
        assert!(seen["files"][0].as_u64().unwrap() < SIZE.inodes, "{seen}");
        assert_eq!(seen["data"], json!([4, "ENOSPC"]), "{seen}");
    }
}

both_modes! {
    async fn what_does_not_fit_or_is_no_file_is_refused(place) {
        std::fs::write(place.path("out/large"), vec![1; 8 << 20]).unwrap();
        let run = place.run(&in_memory(&place, "", true)).await;
        let error = run.report.setup_error.expect("refused");
        assert_eq!((error.step, run.report.exit), (SetupStep::Fill, PayloadExit::NotStarted));
        assert!(error.message.contains("large"), "{error}");
        std::fs::remove_file(place.path("out/large")).unwrap();
        std::os::unix::fs::symlink("/etc/shadow", place.path("out/link")).unwrap();
        let run = place.run(&in_memory(&place, "", true)).await;
        let error = run.report.setup_error.expect("refused");
        assert_eq!(error.step, SetupStep::Fill);
        assert!(error.message.contains("link"), "{error}");
    }
}

both_modes! {
    async fn a_listener_is_opened_inside_and_answered_outside(place) {
        let script = r#"
import socket
with socket.create_connection(("127.0.0.1", 18080), timeout=10) as s:
    print(s.recv(16).decode())
try:
    socket.create_server(("127.0.0.1", 18080))
    print("stolen")
except OSError:
    print("taken")
"#;
        let mut plan = place.plan(script, &[]);
        plan.listeners = vec![18_080];
        let (started, announced) = oneshot::channel();
        let options = RunOptions {
            started: Some(started),
            ..RunOptions::default()
        };
        let serving = async {
            let mut started = announced.await.unwrap();
            assert!(started.init > 1);
            let (port, listener) = started.listeners.remove(0);
            assert_eq!(port, 18_080);
            let listener = TcpListener::from(listener);
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"from outside").await.unwrap();
            // Whoever serves it keeps it: the port stays taken.
            listener
        };
        let running = place.runner.run_with(&plan, RunControl::new(), options);
        let both = async { tokio::join!(running, serving) };
        let (run, _listener) = tokio::time::timeout(LONG, both).await.unwrap();
        let run = run.unwrap();
        let mut text = String::new();
        run.stdout.bytes.as_slice().read_to_string(&mut text).unwrap();
        assert_eq!(text, "from outside\ntaken\n", "{:?}", run.report);
    }
}

both_modes! {
    /// A worker sees its program, libraries and inputs: no shell and no interpreter.
    async fn a_worker_has_libraries_and_nothing_else_of_the_system(place) {
        for name in ["ls", "true"] {
            std::fs::copy(format!("/bin/{name}"), place.path(name)).unwrap();
        }
        let run = async |name: &str, args: &[&str]| {
            let inputs = WorkerInputs {
                program: place.path(name),
                inputs: vec![("given.csv".to_owned(), place.path("view/train.csv"))],
                out: SIZE,
                args: args.iter().map(|&arg| arg.to_owned()).collect(),
                env: BTreeMap::new(),
                limits: Limits::of_memory(256 << 20, 1 << 20, 1),
                time: TimeLimits {
                    deadline_ms: 20_000,
                    grace_ms: 500,
                },
                output: OutputCaps::standard(),
            };
            let mut plan = SandboxPlan::worker(&inputs, &HostLayout::detect().unwrap()).unwrap();
            plan.resolve_sources().unwrap();
            let run = place.run(&plan).await;
            assert!(run.report.setup_error.is_none(), "{:?}", run.report);
            (run.report.succeeded(), String::from_utf8_lossy(&run.stdout.bytes).into_owned())
        };
        assert!(run("true", &[]).await.0, "control: a worker runs");
        let (_, listed) = run("ls", &["/usr", "/in"]).await;
        assert!(listed.contains("lib") && listed.contains("given.csv"), "{listed}");
        assert!(!listed.lines().any(|line| ["bin", "sbin", "share"].contains(&line)), "{listed}");
        assert!(!run("ls", &["/bin/sh"]).await.0);
    }
}

both_modes! {
    /// Where both share an id the payload can take init's descriptors away. It then has failed.
    async fn disturbing_init_is_no_excuse(place) {
        let script = r#"
import os, resource, sys, time
try:
    resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
except OSError:
    sys.exit(3)
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os._exit(0)
time.sleep(10)
"#;
        let run = place.run(&place.plan(script, &[])).await;
        assert!(run.report.setup_error.is_none(), "{:?}", run.report);
        assert!(!run.report.timed_out && !run.report.succeeded(), "{:?}", run.report);
        assert!(matches!(run.report.exit, PayloadExit::Code(code) if code != 0), "{:?}", run.report);
    }
}

both_modes! {
    /// What init may do to the payload, the payload may not do to init.
    async fn init_has_an_id_of_its_own_where_two_can_be_mapped(place) {
        let script = r#"
import json, os, resource
def attempt(act):
    try:
        act()
        return "done"
    except OSError as error:
        return error.strerror
print(json.dumps([attempt(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE)), attempt(lambda: os.kill(1, 15))]))
"#;
        let seen = place.inside(script, &[]).await;
        let wanted = if started_by_root() { "Operation not permitted" } else { "done" };
        assert_eq!(seen, json!([wanted, wanted]), "a TERM from inside ends nothing");
    }
}
