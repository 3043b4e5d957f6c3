//! The Engineer's layout: work directory, brief, tools, client sockets, terminals.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::{Value, json};
use vec_sandbox::{
    EngineerInputs, HostLayout, Limits, OutputCaps, PythonBinds, SandboxPlan, TimeLimits, ViewBind,
    WorkKind, candidate_env,
};

use crate::support::{Place, both_modes, mode};

const AGENT: &str = r##"#!/usr/bin/python3
import errno, json, os, pty, socket, subprocess
def attempt(act):
    try:
        return act()
    except OSError as e:
        return errno.errorcode[e.errno]
def ask():
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/vec/scorer.s")
    s.sendall(b"score me\n")
    return s.recv(100).decode()
with open("solution/run.py", "a") as f:
    f.write("# better\n")
master, slave = pty.openpty()
print(json.dumps({
    "cwd": os.getcwd(),
    "brief": open("/brief/BRIEF.json").read(),
    "brief_write": attempt(lambda: open("/brief/x", "w").name),
    "answer": attempt(ask),
    "steal": attempt(lambda: os.unlink("/run/vec/scorer.s")),
    "others": sorted(os.listdir("/run/vec")),
    "escape": attempt(lambda: os.listdir("/run/vec/../../../run")),
    "tool": subprocess.run(["/opt/vec/bin/vec-score", "--half", "A"], capture_output=True, text=True).stdout,
    "terminal": os.ttyname(slave),
    "named": os.environ["VEC_NODE"],
}))
"##;

fn plan(place: &Place) -> SandboxPlan {
    let make = |path: &Path, text: &str, bits| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, mode(bits)).unwrap();
    };
    for dir in ["brief", "client", "out/solution"] {
        std::fs::create_dir(place.path(dir)).unwrap();
        std::fs::set_permissions(place.path(dir), mode(0o755)).unwrap();
    }
    make(&place.path("brief/BRIEF.json"), "{}", 0o644);
    make(&place.path("out/solution/run.py"), "# first\n", 0o600);
    make(
        &place.path("tool"),
        "#!/bin/sh\necho \"$(basename $0) $*\"\n",
        0o755,
    );
    make(&place.path("agent"), AGENT, 0o755);
    let mut env = candidate_env(1, false, None);
    env.insert("VEC_NODE".to_owned(), "3".to_owned());
    let inputs = EngineerInputs {
        work: WorkKind::Host {
            source: place.path("out"),
        },
        listeners: Vec::new(),
        brief: place.path("brief"),
        views: vec![ViewBind {
            id: "main".parse().unwrap(),
            source: place.path("view"),
        }],
        client_dir: place.path("client"),
        tool: place.path("tool"),
        tool_names: vec!["vec-score".to_owned(), "vec-check".to_owned()],
        agent: place.path("agent"),
        python: PythonBinds::default(),
        argv: vec!["/opt/vec/agent/agent".to_owned()],
        env,
        limits: Limits::of_memory(512 << 20, 16 << 20, 1),
        time: TimeLimits {
            deadline_ms: 10_000,
            grace_ms: 500,
        },
        output: OutputCaps::standard(),
    };
    let mut plan = SandboxPlan::engineer(&inputs, &HostLayout::detect().unwrap()).unwrap();
    plan.resolve_sources().unwrap();
    plan
}

both_modes! {
    async fn an_engineer_works_with_its_tools_and_sockets(place) {
        let plan = plan(&place);
        let socket = place.path("client/scorer.s");
        let listener = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, mode(0o666)).unwrap();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut question = [0; 9];
            peer.read_exact(&mut question).unwrap();
            peer.write_all(b"61.5").unwrap();
            question
        });
        let run = place.run(&plan).await;
        let stderr = String::from_utf8_lossy(&run.stderr.bytes);
        assert!(run.report.succeeded(), "{:?} {stderr}", run.report);
        assert_eq!(&server.join().unwrap(), b"score me\n");
        let seen: Value = serde_json::from_slice(&run.stdout.bytes).unwrap();
        assert_eq!(seen, json!({
            "cwd": "/box", "brief": "{}", "brief_write": "EROFS", "answer": "61.5", "steal": "EROFS",
            "others": ["scorer.s"], "escape": ["vec"], "tool": "vec-score --half A\n",
            "terminal": "/dev/pts/0", "named": "3",
        }));
        let edited = std::fs::read_to_string(place.path("out/solution/run.py")).unwrap();
        assert_eq!(edited, "# first\n# better\n");
    }
}
